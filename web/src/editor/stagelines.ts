// stagelines: the look of a stage's lines: the colour of their source line, highlighted lines, lines without a source.
import { type Extension, RangeSet, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, type EditorView, gutter, GutterMarker, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import type { Light } from "../state/selection";
import type { SourceMap, StageLinks } from "../state/sourcemap";
import { BANDS } from "./links";

export interface LineState {
  map: SourceMap | null;
  links: StageLinks | null;
  hover: Light | null;
  selected: Light | null;
}

export const setLines = StateEffect.define<{ map: SourceMap; links: StageLinks }>();
export const setLineLights = StateEffect.define<{ hover: Light | null; selected: Light | null }>();

export const lineField = StateField.define<LineState>({
  create: () => ({ map: null, links: null, hover: null, selected: null }),
  update(state, tr) {
    let next = state;
    for (const effect of tr.effects) {
      if (effect.is(setLines)) next = { ...effect.value, hover: null, selected: null };
      else if (effect.is(setLineLights)) next = { ...next, ...effect.value };
    }
    return tr.docChanged && next === state ? { map: null, links: null, hover: null, selected: null } : next;
  },
});

const decorations = new Map<string, Decoration>();

function lineDeco(cls: string): Decoration {
  let deco = decorations.get(cls);
  if (!deco) decorations.set(cls, (deco = Decoration.line({ class: cls })));
  return deco;
}

function classOfLine(s: LineState, index: number): string {
  const { map, links } = s;
  const places = links?.places[index];
  if (!map || !links || !places) return "";
  const op = links.lineOp[index] ?? -1;
  const band = map.bandOfPlaces(places);
  const classes = [band === null ? "nosource" : `band band-${band % BANDS}`];
  if (s.selected?.map === map && s.selected.ops.has(op)) classes.push(s.selected.best === op ? "lit-selected lit-best" : "lit-selected");
  if (s.hover?.map === map && s.hover.ops.has(op)) classes.push("lit-hover");
  return classes.join(" ");
}

class Lines {
  decorations: DecorationSet;

  constructor(view: EditorView) {
    this.decorations = this.build(view);
  }

  update(u: ViewUpdate): void {
    if (u.docChanged || u.viewportChanged || u.startState.field(lineField) !== u.state.field(lineField))
      this.decorations = this.build(u.view);
  }

  private build(view: EditorView): DecorationSet {
    const builder = new RangeSetBuilder<Decoration>();
    const state = view.state.field(lineField);
    for (const { from, to } of view.visibleRanges) {
      for (let pos = from; pos <= to; ) {
        const line = view.state.doc.lineAt(pos);
        const cls = classOfLine(state, line.number - 1);
        if (cls !== "") builder.add(line.from, line.from, lineDeco(cls));
        pos = line.to + 1;
      }
    }
    return builder.finish();
  }
}

class PlaceMarker extends GutterMarker {
  override readonly elementClass: string;
  constructor(
    private readonly text: string,
    private readonly title: string,
    band: number | null,
  ) {
    super();
    this.elementClass = band === null ? "nosource" : `band band-${band % BANDS}`;
  }
  override eq(other: PlaceMarker): boolean {
    return this.text === other.text && this.elementClass === other.elementClass;
  }
  override toDOM(): Node {
    const span = document.createElement("span");
    span.className = "place-mark";
    span.textContent = this.text;
    span.title = this.title;
    return span;
  }
}

/** The bar in the line's colour, which stays visible when a long line is scrolled, and the number of source places. */
function placeMarker(s: LineState, index: number): GutterMarker | null {
  const places = s.links?.places[index];
  if (!places || !s.map) return null;
  const band = s.map.bandOfPlaces(places);
  if (places.length > 1) return new PlaceMarker(`×${places.length}`, `made from ${places.length} places`, band);
  if ((places[0]?.length ?? 0) > 1) return new PlaceMarker("↳", "reached through a call", band);
  return new PlaceMarker("", places.length === 0 ? "no source: the compiler made it" : "", band);
}

const placeGutter = gutter({
  class: "cm-places",
  lineMarker: (view, block) => placeMarker(view.state.field(lineField), view.state.doc.lineAt(block.from).number - 1),
  lineMarkerChange: (u) => u.startState.field(lineField).links !== u.state.field(lineField).links,
  initialSpacer: () => new PlaceMarker("×8", "", null),
  markers: () => RangeSet.empty,
});

export function stageLines(): Extension {
  return [lineField, ViewPlugin.fromClass(Lines, { decorations: (p) => p.decorations }), placeGutter];
}
