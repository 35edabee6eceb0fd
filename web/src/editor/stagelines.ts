// stagelines: the look of a stage's rows: the colour of their source line, highlighted lines, lines without a source.
import { type Extension, RangeSet, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, type EditorView, gutter, GutterMarker, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import type { Light } from "../state/selection";
import type { SourceMap, StageLinks } from "../state/sourcemap";
import { BANDS } from "./links";
import type { Rows } from "./rows";

export interface LineState {
  rows: Rows | null;
  map: SourceMap | null;
  links: StageLinks | null;
  hover: Light | null;
  selected: Light | null;
}

/** Lines of a text: what they belong to. */
export const setLines = StateEffect.define<{ map: SourceMap; links: StageLinks }>();
/** The rows that show them. */
export const setRows = StateEffect.define<Rows>();
export const setLineLights = StateEffect.define<{ hover: Light | null; selected: Light | null }>();

const NOTHING: LineState = { rows: null, map: null, links: null, hover: null, selected: null };

export const lineField = StateField.define<LineState>({
  create: () => NOTHING,
  update(state, tr) {
    let next = state;
    for (const effect of tr.effects) {
      if (effect.is(setLines)) next = { ...next, ...effect.value, hover: null, selected: null };
      else if (effect.is(setRows)) next = { ...next, rows: effect.value };
      else if (effect.is(setLineLights)) next = { ...next, ...effect.value };
    }
    return tr.docChanged && next === state ? NOTHING : next;
  },
});

const decorations = new Map<string, Decoration>();

function lineDeco(cls: string): Decoration {
  let deco = decorations.get(cls);
  if (!deco) decorations.set(cls, (deco = Decoration.line({ class: cls })));
  return deco;
}

/** True if a line of the row has one of the light's operations; with `best`, the one that says most about the selection. */
function isLit(light: Light | null, s: LineState, row: number, best = false): boolean {
  if (!light || !s.rows || !s.links || light.map !== s.map) return false;
  const { first, end } = s.rows.linesOf(row);
  for (let line = first; line < end; line++) {
    const op = s.links.lineOp[line - 1] ?? -1;
    if (best ? light.best === op : light.ops.has(op)) return true;
  }
  return false;
}

function classOfRow(s: LineState, row: number): string {
  const { map, links, rows } = s;
  if (!map || !links || !rows) return "";
  if (rows.isHead(row)) return "folded";
  const places = links.places[rows.lineOf(row) - 1];
  const classes: string[] = [];
  // a fold has lines of many sources
  if (rows.folds.has(row)) classes.push("folded");
  else if (places) {
    const band = map.bandOfPlaces(places);
    classes.push(band === null ? "nosource" : `band band-${band % BANDS}`);
  }
  if (isLit(s.selected, s, row)) classes.push("lit-selected");
  if (isLit(s.selected, s, row, true)) classes.push("lit-best");
  if (isLit(s.hover, s, row)) classes.push("lit-hover");
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
        const cls = classOfRow(state, line.number);
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
function placeMarker(s: LineState, row: number): GutterMarker | null {
  if (!s.rows || s.rows.isHead(row) || s.rows.folds.has(row)) return null;
  const places = s.links?.places[s.rows.lineOf(row) - 1];
  if (!places || !s.map) return null;
  const band = s.map.bandOfPlaces(places);
  if (places.length > 1) return new PlaceMarker(`×${places.length}`, `made from ${places.length} places`, band);
  if ((places[0]?.length ?? 0) > 1) return new PlaceMarker("↳", "reached through a call", band);
  return new PlaceMarker("", places.length === 0 ? "no source: the compiler made it" : "", band);
}

const placeGutter = gutter({
  class: "cm-places",
  lineMarker: (view, block) => placeMarker(view.state.field(lineField), view.state.doc.lineAt(block.from).number),
  lineMarkerChange: (u) => {
    const [before, now] = [u.startState.field(lineField), u.state.field(lineField)];
    return before.links !== now.links || before.rows !== now.rows;
  },
  initialSpacer: () => new PlaceMarker("×8", "", null),
  markers: () => RangeSet.empty,
});

export function stageLines(): Extension {
  return [lineField, ViewPlugin.fromClass(Lines, { decorations: (p) => p.decorations }), placeGutter];
}
