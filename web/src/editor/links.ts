// links: the source maps in the source editor: a coloured band for each line, marks on exact ranges, and the ranges at a
// position.
//
// Ranges move with edits: they stay on their expressions until the next outcome replaces them.
import { type Extension, RangeSet, RangeSetBuilder, RangeValue, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, gutterLineClass, GutterMarker } from "@codemirror/view";
import { BANDS } from "../highlight/bands";
import type { Light } from "../state/selection";
import type { SourceMap } from "../state/sourcemap";
import { spanOfRange, type Span } from "./positions";

export { BANDS };

class LinkRange extends RangeValue {
  constructor(readonly n: number) {
    super();
  }
  override eq(other: LinkRange): boolean {
    return this.n === other.n;
  }
}

/** The bar in the line's colour, in the gutter, which does not scroll sideways. */
class BandMarker extends GutterMarker {
  override readonly elementClass: string;
  constructor(readonly band: number) {
    super();
    this.elementClass = `band band-${band}`;
  }
  override eq(other: BandMarker): boolean {
    return this.band === other.band;
  }
}

const bandMarkers = Array.from({ length: BANDS }, (_, i) => new BandMarker(i));
const bandLines = bandMarkers.map((m) => Decoration.line({ class: m.elementClass }));

interface Links {
  map: SourceMap | null;
  ranges: RangeSet<LinkRange>;
  spans: Map<number, Span>;
  bands: DecorationSet;
  bars: RangeSet<GutterMarker>;
}

const setMap = StateEffect.define<{ map: SourceMap; file: string }>();
const setLights = StateEffect.define<{ hover: Light | null; selected: Light | null }>();

function spansOf(ranges: RangeSet<LinkRange>): Map<number, Span> {
  const spans = new Map<number, Span>();
  for (const it = ranges.iter(); it.value; it.next()) spans.set(it.value.n, { from: it.from, to: it.to });
  return spans;
}

/** The links of one file of the map. */
function buildLinks(map: SourceMap, file: string, doc: Text): Links {
  const found = map.ranges.flatMap((range, n) => {
    const span = map.isShown(n) && range.file === file ? spanOfRange(doc, range) : null;
    return span && span.to > span.from ? [new LinkRange(n).range(span.from, span.to)] : [];
  });
  const ranges = RangeSet.of(found, true);
  const bands = new RangeSetBuilder<Decoration>();
  const bars = new RangeSetBuilder<GutterMarker>();
  for (const [line, band] of [...map.bands(file)].sort((a, b) => a[0] - b[0])) {
    if (line > doc.lines) continue;
    const { from } = doc.line(line);
    bands.add(from, from, bandLines[band % BANDS] as Decoration);
    bars.add(from, from, bandMarkers[band % BANDS] as BandMarker);
  }
  return { map, ranges, spans: spansOf(ranges), bands: bands.finish(), bars: bars.finish() };
}

const linkField = StateField.define<Links>({
  create: () => ({ map: null, ranges: RangeSet.empty, spans: new Map(), bands: Decoration.none, bars: RangeSet.empty }),
  update(links, tr) {
    for (const effect of tr.effects) if (effect.is(setMap)) return buildLinks(effect.value.map, effect.value.file, tr.newDoc);
    if (!tr.docChanged) return links;
    const ranges = links.ranges.map(tr.changes);
    const [bands, bars] = [links.bands.map(tr.changes), links.bars.map(tr.changes)];
    return { map: links.map, ranges, spans: spansOf(ranges), bands, bars };
  },
  provide: (f) => [
    EditorView.decorations.from(f, (links) => links.bands),
    gutterLineClass.from(f, (links) => links.bars),
  ],
});

function marksOf(links: Links, light: Light | null, cls: string): { from: number; to: number; deco: Decoration }[] {
  if (!light || light.map !== links.map) return [];
  const marks: { from: number; to: number; deco: Decoration }[] = [];
  const add = (numbers: ReadonlySet<number>, name: string) => {
    for (const n of numbers) {
      const span = links.spans.get(n);
      if (span && span.to > span.from) marks.push({ ...span, deco: Decoration.mark({ class: name }) });
    }
  };
  add(light.callers, `${cls}-caller`);
  add(light.ranges, light.ops.size > 0 ? cls : `${cls} lit-alone`);
  return marks;
}

interface Lights {
  hover: Light | null;
  selected: Light | null;
}

const lightField = StateField.define<Lights>({
  create: () => ({ hover: null, selected: null }),
  update(lights, tr) {
    for (const effect of tr.effects) if (effect.is(setLights)) return effect.value;
    return lights;
  },
  provide: (f) =>
    EditorView.decorations.compute([f, linkField], (state) => {
      const links = state.field(linkField);
      const { hover, selected } = state.field(f);
      const marks = [...marksOf(links, selected, "lit-selected"), ...marksOf(links, hover, "lit-hover")];
      return Decoration.set(
        marks.map((m) => m.deco.range(m.from, m.to)),
        true,
      );
    }),
});

export function sourceLinks(): Extension {
  return [linkField, lightField];
}

export function showMap(view: EditorView, map: SourceMap, file: string): void {
  view.dispatch({ effects: setMap.of({ map, file }) });
}

export function showLights(view: EditorView, hover: Light | null, selected: Light | null): void {
  const now = view.state.field(lightField);
  if (now.hover !== hover || now.selected !== selected) view.dispatch({ effects: setLights.of({ hover, selected }) });
}

export function mapShown(view: EditorView): SourceMap | null {
  return view.state.field(linkField).map;
}

/** The numbers of the ranges that contain a position; if there are none, of those that begin on its line. */
export function rangesAt(view: EditorView, pos: number): { exact: boolean; ranges: number[] } {
  const { ranges } = view.state.field(linkField);
  const around: number[] = [];
  ranges.between(pos, pos, (from, to, value) => {
    // the end is exclusive
    if (from <= pos && pos < to) around.push(value.n);
  });
  if (around.length > 0) return { exact: true, ranges: around };
  const line = view.state.doc.lineAt(pos);
  const onLine: number[] = [];
  ranges.between(line.from, line.to, (from, _to, value) => {
    if (from >= line.from) onLine.push(value.n);
  });
  return { exact: false, ranges: onLine };
}

export function spanOf(view: EditorView, n: number): Span | null {
  return view.state.field(linkField).spans.get(n) ?? null;
}
