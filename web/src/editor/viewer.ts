// viewer: a stage's text, read only, with its lines tied to the source.
//
// Only visible lines are decorated, so that the cost of a stage does not depend on its length.
import { standardKeymap } from "@codemirror/commands";
import { highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search";
import { Annotation, Compartment, EditorSelection, EditorState, Text } from "@codemirror/state";
import { BlockType, drawSelection, EditorView, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import type { Stage } from "../api/types";
import { tokenizeHlo } from "../highlight/hlo";
import { tokenizeMlir } from "../highlight/mlir";
import type { Light } from "../state/selection";
import type { SourceMap, StageLinks } from "../state/sourcemap";
import { notesAbove, notesEffect, type Notes } from "./notes";
import { lineField, type LineState, setLineLights, setLines, stageLines } from "./stagelines";
import { tokenColours, tokenizer } from "./tokens";

export interface ViewerEvents {
  /** The pointer is over a line (1-based); null: it has left. */
  point(line: number | null): void;
  clicked(line: number, add: boolean): void;
  caret(line: number): void;
  /** The tooltip for a line; null for none. */
  explain(line: number): HTMLElement | null;
}

/** What belongs to the lines of a text: ranges of the source, and the pass's remarks. */
export interface Ties {
  map: SourceMap;
  links: StageLinks;
  notes: Notes;
}

const fromPage = Annotation.define<boolean>();

function pointer(events: ViewerEvents) {
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
      events.clicked(view.state.doc.lineAt(block.from).number, e.ctrlKey || e.metaKey);
    },
  });
}

export class StageViewer {
  readonly view: EditorView;
  private readonly wrap = new Compartment();
  private readonly language = new Compartment();
  private readonly label = new Compartment();
  private stage: Stage | null = null;

  constructor(parent: HTMLElement, events: ViewerEvents) {
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        extensions: [
          EditorState.readOnly.of(true),
          EditorView.editable.of(false),
          lineNumbers(),
          drawSelection(),
          highlightSelectionMatches({ minSelectionLength: 2 }),
          search({ top: true }),
          keymap.of([...standardKeymap, ...searchKeymap]),
          stageLines(),
          notesAbove(),
          tokenColours(),
          this.wrap.of([]),
          this.language.of([]),
          this.label.of(EditorView.contentAttributes.of({ ...VIEWER_ATTRIBUTES, "aria-label": "IR" })),
          pointer(events),
          hoverTooltip(
            (view, pos) => {
              const line = view.state.doc.lineAt(pos);
              const dom = events.explain(line.number);
              return dom ? { pos: line.from, end: line.to, create: () => ({ dom }) } : null;
            },
            { hoverTime: 450 },
          ),
          EditorView.updateListener.of((u) => {
            const own = u.transactions.some((tr) => tr.annotation(fromPage));
            if (u.selectionSet && !own && u.transactions.some((tr) => tr.isUserEvent("select")))
              events.caret(u.state.doc.lineAt(u.state.selection.main.head).number);
          }),
        ],
      }),
    });
  }

  get shown(): Stage | null {
    return this.stage;
  }

  /** Replaces the text.  `follow` is a line of the new text; it is scrolled to where the line `from` is now. */
  show(stage: Stage, ties: Ties, label: string, follow: { from: number; to: number } | null): void {
    const { view } = this;
    const offset = follow && this.stage ? this.offsetOfLine(follow.from) : null;
    const doc = Text.of(stage.text.replace(/\n$/, "").split("\n"));
    this.stage = stage;
    const target = follow ? doc.line(Math.min(follow.to, doc.lines)) : doc.line(1);
    view.dispatch({
      changes: { from: 0, to: view.state.doc.length, insert: doc },
      selection: EditorSelection.cursor(target.from),
      effects: [
        setLines.of({ map: ties.map, links: ties.links }),
        notesEffect(ties.notes),
        this.language.reconfigure(tokenizer.of(stage.dialect === "hlo" ? tokenizeHlo : tokenizeMlir)),
        this.label.reconfigure(EditorView.contentAttributes.of({ ...VIEWER_ATTRIBUTES, "aria-label": label })),
        offset === null
          ? EditorView.scrollIntoView(target.from, { y: follow ? "center" : "start" })
          : EditorView.scrollIntoView(target.from, { y: "start", yMargin: Math.max(0, offset) }),
      ],
      annotations: fromPage.of(true),
    });
    if (!follow) view.scrollDOM.scrollTop = 0;
  }

  clear(): void {
    this.stage = null;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length }, annotations: fromPage.of(true) });
  }

  /** Pixels from the viewport's top to the line. */
  private offsetOfLine(line: number): number {
    const { view } = this;
    const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
    const block = view.lineBlockAt(at.from);
    // notes above the line belong to its block
    const text = Array.isArray(block.type) ? (block.type.find((b) => b.type === BlockType.Text) ?? block) : block;
    return text.top - view.scrollDOM.scrollTop;
  }

  /** The first and last visible line. */
  visibleLines(): { first: number; last: number } {
    const { view } = this;
    const top = view.scrollDOM.scrollTop;
    const lineAt = (height: number) => view.state.doc.lineAt(view.lineBlockAtHeight(height).from).number;
    return { first: lineAt(top), last: lineAt(top + view.scrollDOM.clientHeight - 1) };
  }

  showLights(hover: Light | null, selected: Light | null): void {
    const now: LineState = this.view.state.field(lineField);
    if (now.hover !== hover || now.selected !== selected) this.view.dispatch({ effects: setLineLights.of({ hover, selected }) });
  }

  reveal(line: number): void {
    const { doc } = this.view.state;
    if (line < 1 || line > doc.lines) return;
    const { first, last } = this.visibleLines();
    if (line > first && line < last) return;
    this.view.dispatch({ effects: EditorView.scrollIntoView(doc.line(line).from, { y: "center" }) });
  }

  caretLine(): number {
    return this.view.state.doc.lineAt(this.view.state.selection.main.head).number;
  }

  setWrap(on: boolean): void {
    this.view.dispatch({ effects: this.wrap.reconfigure(on ? EditorView.lineWrapping : []) });
  }

  find(): void {
    openSearchPanel(this.view);
  }
}

const VIEWER_ATTRIBUTES: Record<string, string> = {
  tabindex: "0",
  role: "textbox",
  "aria-readonly": "true",
  "aria-multiline": "true",
  "data-pane": "ir",
};
