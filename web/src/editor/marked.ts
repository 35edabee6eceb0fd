// marked: the lines that a link points at, and clicks on line numbers, which mark them.
import { type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view";

export interface Rows {
  first: number;
  last: number;
}

const setMarked = StateEffect.define<Rows | null>();
const deco = Decoration.line({ class: "line-marked" });

const field = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marked, tr) {
    for (const effect of tr.effects) {
      if (!effect.is(setMarked)) continue;
      if (!effect.value) return Decoration.none;
      const doc = tr.newDoc;
      const { first, last } = effect.value;
      const lines = [];
      for (let n = Math.max(first, 1); n <= Math.min(last, doc.lines); n++) lines.push(deco.range(doc.line(n).from));
      return Decoration.set(lines);
    }
    return tr.docChanged ? marked.map(tr.changes) : marked;
  },
  provide: (f) => EditorView.decorations.from(f),
});

export function markedLines(): Extension {
  return field;
}

export function showMarked(view: EditorView, rows: Rows | null): void {
  view.dispatch({ effects: setMarked.of(rows) });
}

/** Calls `run` with the row whose number was clicked; extend: with Shift. */
export function onNumber(view: EditorView, run: (row: number, extend: boolean) => void): void {
  view.dom.addEventListener("mousedown", (e) => {
    const target = e.target instanceof Element ? e.target.closest(".cm-lineNumbers .cm-gutterElement") : null;
    if (!target || e.button !== 0) return;
    e.preventDefault();
    const block = view.lineBlockAtHeight(e.clientY - view.documentTop);
    run(view.state.doc.lineAt(block.from).number, e.shiftKey);
  });
}
