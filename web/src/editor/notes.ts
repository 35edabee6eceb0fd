// notes: the remarks of passes, shown above the lines of a stage and after the lines of the source.
import { type Extension, RangeSetBuilder, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";

/** Texts by line, from 1. */
export type Notes = ReadonlyMap<number, readonly string[]>;

/** More rows of a line are only counted there; the list and the tooltip show all texts. */
const MANY = 3;
/** Short texts share a row of at most so many characters. */
const ROW = 96;

function rowsOf(texts: readonly string[]): string[][] {
  const rows: string[][] = [];
  let length = 0;
  for (const text of texts) {
    const row = rows.at(-1);
    if (row && length + text.length + 3 <= ROW) {
      row.push(text);
      length += text.length + 3;
    } else {
      rows.push([text]);
      length = text.length;
    }
  }
  return rows;
}

function shortened(texts: readonly string[]): string[] {
  const rows = rowsOf(texts);
  const kept = rows.length > MANY ? rows.slice(0, MANY - 1) : rows;
  const rest = rows.slice(kept.length).flat().length;
  return [...kept.map((row) => row.join(" · ")), ...(rest > 0 ? [`and ${rest} more`] : [])];
}

class NoteWidget extends WidgetType {
  constructor(
    private readonly texts: readonly string[],
    private readonly indent: number,
  ) {
    super();
  }
  override eq(other: NoteWidget): boolean {
    return this.indent === other.indent && this.texts.join("\n") === other.texts.join("\n");
  }
  override toDOM(): HTMLElement {
    const box = document.createElement("div");
    box.className = "note-above";
    box.style.setProperty("--indent", `${this.indent}ch`);
    for (const text of this.texts) {
      const row = document.createElement("div");
      row.textContent = text;
      box.append(row);
    }
    return box;
  }
  override get estimatedHeight(): number {
    return this.texts.length * 18;
  }
  override ignoreEvent(): boolean {
    return false; // a click on a note counts as a click on its line
  }
}

function inOrder(notes: Notes, doc: Text): [number, readonly string[]][] {
  return [...notes].filter(([line]) => line >= 1 && line <= doc.lines).sort((a, b) => a[0] - b[0]);
}

function above(notes: Notes, doc: Text): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (const [number, texts] of inOrder(notes, doc)) {
    const line = doc.line(number);
    const indent = line.text.length - line.text.trimStart().length;
    builder.add(line.from, line.from, Decoration.widget({ widget: new NoteWidget(shortened(texts), indent), block: true, side: -1 }));
  }
  return builder.finish();
}

/** An attribute that the style sheet shows, so that the text of the line does not change. */
function behind(notes: Notes, doc: Text): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (const [number, texts] of inOrder(notes, doc)) {
    const { from } = doc.line(number);
    builder.add(from, from, Decoration.line({ class: "noted", attributes: { "data-note": shortened(texts).join(" · ") } }));
  }
  return builder.finish();
}

const setNotes = StateEffect.define<Notes>();

function field(build: (notes: Notes, doc: Text) => DecorationSet): Extension {
  return StateField.define<DecorationSet>({
    create: () => Decoration.none,
    update(notes, tr) {
      for (const effect of tr.effects) if (effect.is(setNotes)) return build(effect.value, tr.newDoc);
      return tr.docChanged ? notes.map(tr.changes) : notes;
    },
    provide: (f) => EditorView.decorations.from(f),
  });
}

export const notesAbove = (): Extension => field(above);
export const notesBehind = (): Extension => field(behind);

/** Part of the transaction that replaces the text, so that it is drawn once. */
export function notesEffect(notes: Notes): StateEffect<Notes> {
  return setNotes.of(notes);
}

export function showNotes(view: EditorView, notes: Notes): void {
  view.dispatch({ effects: setNotes.of(notes) });
}
