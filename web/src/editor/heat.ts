// heat: beside each source line, what it costs of the simulated run: microseconds of the critical path, and a bar.
import { RangeSet, RangeSetBuilder, StateEffect, StateField, type Extension } from "@codemirror/state";
import { type EditorView, gutter, GutterMarker } from "@codemirror/view";
import { time } from "../state/units";

export interface Heat {
  line: number;
  us: number;
  /** Of the whole run. */
  share: number;
}

class HeatMarker extends GutterMarker {
  constructor(
    private readonly text: string,
    private readonly share: number,
  ) {
    super();
  }

  override eq(other: HeatMarker): boolean {
    return other.text === this.text && other.share === this.share;
  }

  override toDOM(): Node {
    const box = document.createElement("span");
    box.className = "heat";
    box.title = `${this.text} of the critical path, ${(this.share * 100).toFixed(1)} %`;
    const bar = document.createElement("span");
    bar.className = "heat-bar";
    bar.style.width = `${Math.round(Math.min(this.share, 1) * 28)}px`;
    box.append(this.text, bar);
    return box;
  }
}

const setHeat = StateEffect.define<readonly Heat[]>();

const heatField = StateField.define<RangeSet<GutterMarker>>({
  create: () => RangeSet.empty,
  update(set, tr) {
    // the figures are those of the text that was run
    let next = tr.docChanged ? set.map(tr.changes) : set;
    for (const e of tr.effects) {
      if (!e.is(setHeat)) continue;
      const builder = new RangeSetBuilder<GutterMarker>();
      for (const h of [...e.value].sort((a, b) => a.line - b.line)) {
        if (h.line < 1 || h.line > tr.state.doc.lines) continue;
        const { from } = tr.state.doc.line(h.line);
        builder.add(from, from, new HeatMarker(time(h.us), h.share));
      }
      next = builder.finish();
    }
    return next;
  },
});

export function heatGutter(): Extension {
  return [heatField, gutter({ class: "cm-heat", markers: (view) => view.state.field(heatField) })];
}

export function showHeat(view: EditorView, lines: readonly Heat[]): void {
  const now = view.state.field(heatField, false);
  if (now && (lines.length > 0 || now.size > 0)) view.dispatch({ effects: setHeat.of(lines) });
}
