// values: lights the value at the caret: its definition and its uses among the visible rows.
import { type EditorState, type Extension, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, type EditorView, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import { definitionOf, type Definition } from "../nisa/defuse";
import { lineField } from "./stagelines";
import { tokenizer } from "./tokens";

/** A value as the full text names it. */
export interface Value extends Definition {
  name: string;
}

/** What the caret is on; null: nothing that has a name. */
export const setValue = StateEffect.define<Value | null>();

const valueField = StateField.define<Value | null>({
  create: () => null,
  update(value, tr) {
    for (const effect of tr.effects) if (effect.is(setValue)) return effect.value;
    return tr.docChanged ? null : value;
  },
});

/** The name in the full text: the compact form writes loop counters without "%". */
function fullName(text: string, isCompact: boolean): string {
  const name = text.replace(/[:#]\d+$/, "");
  return isCompact && !name.startsWith("%") ? `%${name}` : name;
}

/** The value at a position of the view. */
export function valueAt(state: EditorState, pos: number, lines: readonly string[]): Value | null {
  const { rows } = state.field(lineField);
  const row = state.doc.lineAt(pos);
  const col = pos - row.from;
  const token = state.facet(tokenizer)(row.text).find((t) => t.cls === "value" && t.from <= col && col <= t.to);
  if (!token || !rows) return null;
  const name = fullName(row.text.slice(token.from, token.to), rows.isCompact);
  return { name, ...definitionOf(lines, name, rows.lineOf(row.number)) };
}

const marks = { def: Decoration.mark({ class: "value-def" }), use: Decoration.mark({ class: "value-use" }) };

class Values {
  decorations: DecorationSet;

  constructor(view: EditorView) {
    this.decorations = this.build(view);
  }

  update(u: ViewUpdate): void {
    if (u.docChanged || u.viewportChanged || u.startState.field(valueField) !== u.state.field(valueField))
      this.decorations = this.build(u.view);
  }

  private build(view: EditorView): DecorationSet {
    const value = view.state.field(valueField);
    const { rows } = view.state.field(lineField);
    if (!value || !rows) return Decoration.none;
    const builder = new RangeSetBuilder<Decoration>();
    const tokenize = view.state.facet(tokenizer);
    for (const { from, to } of view.visibleRanges) {
      for (let pos = from; pos <= to; ) {
        const row = view.state.doc.lineAt(pos);
        pos = row.to + 1;
        const line = rows.lineOf(row.number);
        if (rows.linesOf(row.number).end <= value.line || line >= value.end) continue;
        let isFirst = rows.linesOf(row.number).first <= value.line;
        for (const t of tokenize(row.text)) {
          if (t.cls !== "value" || fullName(row.text.slice(t.from, t.to), rows.isCompact) !== value.name) continue;
          builder.add(row.from + t.from, row.from + t.to, isFirst ? marks.def : marks.use);
          isFirst = false;
        }
      }
    }
    return builder.finish();
  }
}

export function values(): Extension {
  return [valueField, ViewPlugin.fromClass(Values, { decorations: (p) => p.decorations })];
}
