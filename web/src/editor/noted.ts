// noted: how many notes a line has, after its text; a click opens them.
import { type Extension, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";

class Count extends WidgetType {
  constructor(
    private readonly count: number,
    private readonly open: () => void,
  ) {
    super();
  }

  override eq(other: Count): boolean {
    return other.count === this.count;
  }

  override toDOM(): HTMLElement {
    const b = document.createElement("button");
    b.type = "button";
    b.className = "noted";
    b.textContent = this.count === 1 ? "1 note" : `${this.count} notes`;
    b.title = "Show the notes on this line";
    b.addEventListener("mousedown", (e) => {
      e.preventDefault();
      e.stopPropagation();
    });
    b.addEventListener("click", () => this.open());
    return b;
  }
}

const setNoted = StateEffect.define<ReadonlyMap<number, number>>();

/** open: called with the row, from 1. */
export function notedRows(open: (row: number) => void): Extension {
  return StateField.define<DecorationSet>({
    create: () => Decoration.none,
    update(noted, tr) {
      for (const effect of tr.effects) {
        if (!effect.is(setNoted)) continue;
        const doc = tr.newDoc;
        const rows = [...effect.value].filter(([row]) => row >= 1 && row <= doc.lines).sort(([a], [b]) => a - b);
        return Decoration.set(rows.map(([row, count]) => Decoration.widget({ widget: new Count(count, () => open(row)), side: 2 }).range(doc.line(row).to)));
      }
      return tr.docChanged ? noted.map(tr.changes) : noted;
    },
    provide: (f) => EditorView.decorations.from(f),
  });
}

/** counts: of notes, by row. */
export function showNoted(view: EditorView, counts: ReadonlyMap<number, number>): void {
  view.dispatch({ effects: setNoted.of(counts) });
}
