// viewer: a stage's text, read only, with its lines tied to the source.
//
// Everything outside speaks of lines of the stage's text; here they are shown as rows, in the compact form or in full.  Only
// visible rows are decorated, so that the cost of a stage does not depend on its length.
import { standardKeymap } from "@codemirror/commands";
import { codeFolding, foldedRanges, foldGutter, foldKeymap, foldService, unfoldEffect } from "@codemirror/language";
import { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search";
import { Annotation, Compartment, EditorSelection, EditorState, type StateEffect, Text } from "@codemirror/state";
import { BlockType, drawSelection, EditorView, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import type { Stage } from "../api/types";
import { tokenizeCompact } from "../highlight/compact";
import { tokenizerOf } from "../highlight/dialect";
import type { Tokenizer } from "../highlight/token";
import type { Light } from "../state/selection";
import type { SourceMap, StageLinks } from "../state/sourcemap";
import { cardTip, closeTips, isTipOpen, toggleTip } from "./cardtip";
import { notesAbove, notesEffect, type Notes } from "./notes";
import { type Detail, linesOfStage, type Rows, rowsOfStage } from "./rows";
import { lineField, type LineState, setLineLights, setLines, setRows, stageLines } from "./stagelines";
import { useAfter } from "../nisa/defuse";
import { tokenColours, tokenizer } from "./tokens";
import { setValue, type Value, valueAt, values } from "./values";

export interface ViewerEvents {
  /** The pointer is over a line (1-based); null: it has left. */
  point(line: number | null): void;
  clicked(line: number, add: boolean): void;
  caret(line: number): void;
  /** The tooltip for a line; null for none. */
  explain(line: number): HTMLElement | null;
  /** Whether a resting pointer opens a tooltip. */
  hovers(): boolean;
  /** What the operation of a line does; null for none. */
  card(line: number): HTMLElement | null;
}

/** What belongs to the lines of a text: ranges of the source, and the pass's remarks. */
export interface Ties {
  map: SourceMap;
  links: StageLinks;
  notes: Notes;
}

const fromPage = Annotation.define<boolean>();

/** What the pointer does, in rows. */
interface RowEvents {
  point(row: number | null): void;
  clicked(row: number, add: boolean, pos: number | null): void;
}

function pointer(events: RowEvents) {
  let frame = 0;
  let y = 0;
  return EditorView.domEventHandlers({
    mousemove(e, view) {
      y = e.clientY;
      if (frame !== 0) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        const top = y - view.documentTop;
        const block = top >= 0 && top < view.contentHeight ? view.lineBlockAtHeight(top) : null;
        events.point(block ? view.state.doc.lineAt(block.from).number : null);
      });
    },
    mouseleave() {
      cancelAnimationFrame(frame);
      frame = 0;
      events.point(null);
    },
    click(e, view) {
      if (e.button !== 0 || !view.state.selection.main.empty) return;
      const block = view.lineBlockAtHeight(e.clientY - view.documentTop);
      const pos = view.posAtCoords({ x: e.clientX, y: e.clientY });
      events.clicked(view.state.doc.lineAt(block.from).number, e.ctrlKey || e.metaKey, pos);
    },
  });
}

export class StageViewer {
  readonly view: EditorView;
  private readonly wrap = new Compartment();
  private readonly language = new Compartment();
  private readonly label = new Compartment();
  private stage: Stage | null = null;
  private ties: Ties | null = null;
  private detail: Detail = { full: true, attributes: true };
  private rows: Rows | null = null;
  private tokens: Tokenizer | null = null;
  private labelled = "";
  /** The first lines of the folds that are open. */
  private opened: ReadonlySet<number> = new Set();

  constructor(
    parent: HTMLElement,
    private readonly events: ViewerEvents,
  ) {
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        extensions: [
          EditorState.readOnly.of(true),
          EditorView.editable.of(false),
          lineNumbers({ formatNumber: (row) => this.numberOf(row) }),
          drawSelection(),
          highlightSelectionMatches({ minSelectionLength: 2 }),
          search({ top: true }),
          keymap.of([
            { key: "Enter", run: () => this.toggleFold(this.caretRow()) },
            { key: "F12", run: () => this.goToDefinition() },
            ...foldKeymap,
            ...standardKeymap,
            ...searchKeymap,
          ]),
          cardTip(),
          stageLines(),
          codeFolding({ placeholderText: "…" }),
          foldGutter({ openText: "▾", closedText: "▸" }),
          foldService.of((state, from) => {
            const row = state.doc.lineAt(from);
            const end = this.rows?.regionEnd(row.number) ?? row.number;
            return end > row.number ? { from: row.to, to: state.doc.line(Math.min(end, state.doc.lines)).to } : null;
          }),
          notesAbove(),
          tokenColours(),
          values(),
          this.wrap.of([]),
          this.language.of([]),
          this.label.of(EditorView.contentAttributes.of({ ...VIEWER_ATTRIBUTES, "aria-label": "IR" })),
          pointer({
            point: (row) => events.point(row === null ? null : this.lineOf(row)),
            clicked: (row, add, pos) => {
              if (this.toggleFold(row)) return;
              this.showValue(pos);
              // Ctrl+click on the name of another operation's result goes there
              if (add && pos !== null && this.goTo(this.valueAt(pos), this.lineOf(row), false)) return;
              events.clicked(this.lineOf(row), add);
            },
          }),
          hoverTooltip(
            (view, pos) => {
              const row = view.state.doc.lineAt(pos);
              const dom = isTipOpen(view) || !events.hovers() ? null : this.tip(row.number);
              return dom ? { pos: row.from, end: row.to, create: () => ({ dom }) } : null;
            },
            { hoverTime: 700, hideOnChange: true },
          ),
          EditorView.updateListener.of((u) => {
            const own = u.transactions.some((tr) => tr.annotation(fromPage));
            if (!u.selectionSet || own || !u.transactions.some((tr) => tr.isUserEvent("select"))) return;
            const { head } = u.state.selection.main;
            // not while the button is down: a redrawn row would lose its click
            if (!u.transactions.some((tr) => tr.isUserEvent("select.pointer"))) queueMicrotask(() => this.showValue(head));
            events.caret(this.lineOf(u.state.doc.lineAt(u.state.selection.main.head).number));
          }),
        ],
      }),
    });
  }

  /** All that is known of a row; null for nothing. */
  private tip(row: number): HTMLElement | null {
    if (!this.rows || this.rows.folds.has(row)) return null;
    const parts = [this.events.card(this.lineOf(row)), this.events.explain(this.lineOf(row))].filter((p) => p !== null);
    if (parts.length === 0) return null;
    const dom = document.createElement("div");
    dom.className = "tips";
    dom.append(...parts);
    return dom;
  }

  /** Opens or closes what hovering shows, for the caret's row. */
  toggleCard(): void {
    toggleTip(this.view, () => this.tip(this.caretRow()));
  }

  closeTips(): boolean {
    return closeTips(this.view);
  }

  get shown(): Stage | null {
    return this.stage;
  }

  /** Replaces the text.  `follow` is a line of the new text; it is scrolled to where the line `from` is now. */
  show(stage: Stage, ties: Ties, label: string, follow: { from: number; to: number } | null): void {
    const { view } = this;
    const offset = follow && this.stage ? this.offsetOfLine(follow.from) : null;
    this.stage = stage;
    this.ties = ties;
    this.opened = new Set();
    const old = this.rows?.texts;
    const rows = this.takeRows();
    // after most keys the text is what it was: it is not laid out again
    if (!follow && old?.length === rows.texts.length && old.every((text, i) => text === rows.texts[i]) && view.scrollDOM.scrollTop === 0) {
      view.dispatch({
        selection: EditorSelection.cursor(0),
        effects: [setLines.of({ map: ties.map, links: ties.links }), setValue.of(null), ...this.rowEffects(rows, ties), ...this.labelEffects(label)],
        annotations: fromPage.of(true),
      });
      return;
    }
    const doc = Text.of(rows.texts as string[]);
    const target = doc.line(follow ? rows.rowOf(Math.min(follow.to, rows.lineCount)) : 1);
    view.dispatch({
      changes: { from: 0, to: view.state.doc.length, insert: doc },
      selection: EditorSelection.cursor(target.from),
      effects: [
        setLines.of({ map: ties.map, links: ties.links }),
        ...this.rowEffects(rows, ties),
        ...this.labelEffects(label),
        offset === null
          ? EditorView.scrollIntoView(target.from, { y: follow ? "center" : "start" })
          : EditorView.scrollIntoView(target.from, { y: "start", yMargin: Math.max(0, offset) }),
      ],
      annotations: fromPage.of(true),
    });
    if (!follow) view.scrollDOM.scrollTop = 0;
  }

  private takeRows(): Rows {
    this.rows = rowsOfStage(this.stage as Stage, this.detail, this.opened);
    return this.rows;
  }

  private rowEffects(rows: Rows, ties: Ties) {
    const tokens = rows.isCompact ? tokenizeCompact : tokenizerOf(this.stage?.dialect);
    const language = tokens === this.tokens ? [] : [this.language.reconfigure(tokenizer.of(tokens))];
    this.tokens = tokens;
    return [setRows.of(rows), notesEffect(notesOfRows(ties.notes, rows)), ...language];
  }

  private labelEffects(label: string): StateEffect<unknown>[] {
    if (label === this.labelled) return [];
    this.labelled = label;
    return [this.label.reconfigure(EditorView.contentAttributes.of({ ...VIEWER_ATTRIBUTES, "aria-label": label }))];
  }

  /** A line that the user looks at: a selected one in sight, the caret's, or the first. */
  private lineInSight(): number {
    const { first, last } = this.visibleLines();
    const { selected, links } = this.view.state.field(lineField);
    for (let line = first; selected && links && line <= last; line++) if (selected.ops.has(links.lineOp[line - 1] ?? -1)) return line;
    const caret = this.caretLine();
    return caret >= first && caret <= last ? caret : first;
  }

  /** The same stage in other rows.  The caret's line and the line in sight stay where they are. */
  private redraw(): void {
    const { view, ties, rows: old } = this;
    if (!this.stage || !ties || !old) return;
    const caret = old.lineOf(this.caretRow());
    const kept = this.lineInSight();
    const offset = this.offsetOfLine(kept);
    const lights = view.state.field(lineField);
    const rows = this.takeRows();
    const doc = Text.of(rows.texts as string[]);
    view.dispatch({
      changes: changeOf(old.texts, rows.texts, view.state.doc, doc),
      effects: [
        ...this.rowEffects(rows, ties),
        setLineLights.of({ hover: null, selected: lights.selected }),
      ],
      selection: EditorSelection.cursor(doc.line(rows.rowOf(caret)).from),
      annotations: fromPage.of(true),
    });
    view.scrollDOM.scrollTop += this.offsetOfLine(kept) - offset;
  }

  /** How much of each line is shown. */
  setDetail(detail: Detail): void {
    if (detail.full === this.detail.full && detail.attributes === this.detail.attributes) return;
    this.detail = detail;
    this.redraw();
  }

  /** Opens or closes the fold of a row; false if it has none. */
  private toggleFold(row: number): boolean {
    const fold = this.rows?.folds.get(row);
    if (!fold || !this.rows) return false;
    const first = this.rows.lineOf(row);
    this.opened = new Set(fold.open ? [...this.opened].filter((f) => f !== first) : [...this.opened, first]);
    this.redraw();
    return true;
  }

  private showValue(pos: number | null): void {
    const { doc } = this.view.state;
    this.view.dispatch({ effects: setValue.of(pos === null || pos > doc.length ? null : this.valueAt(pos)) });
  }

  /** The name of the value at the caret, as the full text has it. */
  caretName(): string | null {
    return this.valueAt(this.view.state.selection.main.head)?.name ?? null;
  }

  private valueAt(pos: number): Value | null {
    return this.stage ? valueAt(this.view.state, pos, linesOfStage(this.stage)) : null;
  }

  /** Goes to the value's definition; from there to its next use, if `on`.  False if there is nowhere to go. */
  private goTo(value: Value | null, from: number, on: boolean): boolean {
    if (!value || !this.stage || value.line === 0) return false;
    const to = value.line !== from ? value.line : on ? useAfter(linesOfStage(this.stage), value.name, value, from) : 0;
    if (to === 0) return false;
    this.openLine(to, value.name);
    this.view.dispatch({ effects: setValue.of(value) });
    return true;
  }

  /** From a use to the definition of the value at the caret, and from the definition to the next use. */
  goToDefinition(): boolean {
    return this.goTo(this.valueAt(this.view.state.selection.main.head), this.caretLine(), true);
  }

  /** Puts the caret on a line, which is shown even if it is folded: at this name if it has it, or its first one. */
  openLine(line: number, name = "", takesFocus = true): void {
    const { view } = this;
    const row = this.rowOf(line);
    const fold = this.rows?.folds.get(row);
    if (fold && !fold.open) this.toggleFold(row);
    this.unfold(line);
    const at = view.state.doc.line(this.rowOf(line));
    const names = view.state.facet(tokenizer)(at.text).filter((t) => t.cls === "value");
    const own = names.find((t) => name !== "" && name.endsWith(at.text.slice(t.from, t.to))) ?? names[0];
    view.dispatch({
      selection: EditorSelection.cursor(at.from + (own?.from ?? 0)),
      effects: EditorView.scrollIntoView(at.from, { y: "center" }),
      annotations: fromPage.of(true),
    });
    if (takesFocus) view.focus();
  }

  /** Opens the regions that hide a line. */
  private unfold(line: number): void {
    const { view } = this;
    const { from } = view.state.doc.line(this.rowOf(line));
    const effects: StateEffect<unknown>[] = [];
    foldedRanges(view.state).between(from, from, (a, b) => {
      if (a < from) effects.push(unfoldEffect.of({ from: a, to: b }));
    });
    if (effects.length > 0) view.dispatch({ effects });
  }

  /** The line of the stage's text that a row is about. */
  lineOf(row: number): number {
    return this.rows?.lineOf(row) ?? row;
  }

  /** The text of the row that shows a line. */
  rowText(line: number): string {
    return this.rows?.texts[this.rowOf(line) - 1] ?? "";
  }

  /** The row that shows a line of the stage's text. */
  rowOf(line: number): number {
    return this.rows?.rowOf(line) ?? line;
  }

  /** The number in the margin: that of the line in the stage's text. */
  private numberOf(row: number): string {
    const { rows } = this;
    if (!rows) return String(row);
    if (row > rows.count) return "9".repeat(String(rows.lineCount).length); // for the margin's width
    return rows.isHead(row) ? "" : String(rows.lineOf(row));
  }

  clear(): void {
    this.stage = null;
    this.rows = null;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length }, annotations: fromPage.of(true) });
  }

  /** Pixels from the viewport's top to the line. */
  private offsetOfLine(line: number): number {
    const { view } = this;
    const at = view.state.doc.line(Math.min(Math.max(this.rowOf(line), 1), view.state.doc.lines));
    const block = view.lineBlockAt(at.from);
    // notes above the line belong to its block
    const text = Array.isArray(block.type) ? (block.type.find((b) => b.type === BlockType.Text) ?? block) : block;
    return text.top - view.scrollDOM.scrollTop;
  }

  /** The first and last visible row, of which only a part may be visible. */
  private visibleRows(): { first: number; last: number } {
    const { view } = this;
    const top = view.scrollDOM.scrollTop;
    const rowAt = (height: number) => view.state.doc.lineAt(view.lineBlockAtHeight(height).from).number;
    return { first: rowAt(top), last: rowAt(top + view.scrollDOM.clientHeight - 1) };
  }

  /** Whether all of the row of a line is visible. */
  isInSight(line: number): boolean {
    const { first, last } = this.visibleRows();
    const row = this.rowOf(line);
    return row > first && row < last;
  }

  /** The first and last visible line. */
  visibleLines(): { first: number; last: number } {
    const { first, last } = this.visibleRows();
    return this.rows ? { first: this.rows.linesOf(first).first, last: Math.max(this.rows.linesOf(last).end - 1, 1) } : { first, last };
  }

  showLights(hover: Light | null, selected: Light | null): void {
    const now: LineState = this.view.state.field(lineField);
    if (now.hover !== hover || now.selected !== selected) this.view.dispatch({ effects: setLineLights.of({ hover, selected }) });
  }

  reveal(line: number): void {
    const { doc } = this.view.state;
    if (!this.rows || line < 1 || line > this.rows.lineCount) return;
    this.unfold(line);
    if (this.isInSight(line)) return;
    this.view.dispatch({ effects: EditorView.scrollIntoView(doc.line(this.rowOf(line)).from, { y: "center" }) });
  }

  private caretRow(): number {
    return this.view.state.doc.lineAt(this.view.state.selection.main.head).number;
  }

  caretLine(): number {
    return this.lineOf(this.caretRow());
  }

  setWrap(on: boolean): void {
    this.view.dispatch({ effects: this.wrap.reconfigure(on ? EditorView.lineWrapping : []) });
  }

  find(): void {
    openSearchPanel(this.view);
  }
}

/** The notes of all lines of a row stand above it. */
function notesOfRows(notes: Notes, rows: Rows): Notes {
  const out = new Map<number, readonly string[]>();
  for (const [line, texts] of notes) {
    const row = rows.rowOf(line);
    out.set(row, [...(out.get(row) ?? []), ...texts]);
  }
  return out;
}

/** The change from one list of rows to another, without their equal beginnings and ends. */
function changeOf(old: readonly string[], now: readonly string[], from: Text, to: Text) {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  if (head + tail >= old.length || head + tail >= now.length) return { from: 0, to: from.length, insert: to };
  const first = (doc: Text) => doc.line(head + 1).from;
  const last = (doc: Text) => doc.line(doc.lines - tail).to;
  return { from: first(from), to: last(from), insert: to.slice(first(to), last(to)) };
}

const VIEWER_ATTRIBUTES: Record<string, string> = {
  tabindex: "0",
  role: "textbox",
  "aria-readonly": "true",
  "aria-multiline": "true",
  "data-pane": "ir",
};
