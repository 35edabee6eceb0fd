// source: the editor for the kernel.
import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic as Lint } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Annotation, Compartment, EditorState, type Extension, StateEffect } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  hoverTooltip,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import type { Diagnostic } from "../api/types";
import { heatGutter } from "./heat";
import { cardTip, closeTips, isTipOpen, toggleTip } from "./cardtip";
import { markedLines } from "./marked";
import { sourceLinks } from "./links";
import { notesBehind } from "./notes";
import { spanOfRange } from "./positions";
import { changeLanguage, sourceLanguage } from "./sourcelanguage";
import { typeOverSelection } from "./typing";

/** Marks a change that the page made, not the user. */
const fromPage = Annotation.define<boolean>();

const FROZEN: Extension = [
  EditorState.readOnly.of(true),
  EditorView.editable.of(false),
  EditorView.contentAttributes.of({ role: "textbox", "aria-readonly": "true", "aria-multiline": "true" }),
];

export interface SourceEvents {
  edited(text: string): void;
  /** The caret moved without an edit. */
  caret(pos: number): void;
  /** The pointer is over a character; null: it has left. */
  point(pos: number | null): void;
  clicked(pos: number): void;
  /** Files were dropped on the text. */
  dropped(files: File[]): void;
  /** What helps to write; loaded when the editor gets the focus for the first time. */
  writing(): Promise<Extension>;
  /** The tooltip for a character. */
  explain(pos: number): Promise<{ from: number; to: number; dom: HTMLElement } | null>;
}

/** When and where a button went down last.  No tip opens there for a while: the user has chosen, and needs no explanation. */
let pressed = { at: -Infinity, pos: -1 };
const QUIET_MS = 2000;

function pointer(events: SourceEvents) {
  let frame = 0;
  let at = { x: 0, y: 0 };
  let down = { x: 0, y: 0 };
  const locate = (view: EditorView) => {
    frame = 0;
    const pos = view.posAtCoords(at);
    // posAtCoords also answers for points beside the text; only a character under the pointer counts
    const box = pos === null ? null : view.coordsAtPos(pos, 1);
    const onText = box !== null && at.y >= box.top && at.y <= box.bottom;
    events.point(onText ? exactPos(view, pos as number, at.x) : null);
  };
  return EditorView.domEventHandlers({
    mousemove(e, view) {
      at = { x: e.clientX, y: e.clientY };
      if (frame === 0) frame = requestAnimationFrame(() => locate(view));
    },
    mouseleave() {
      cancelAnimationFrame(frame);
      frame = 0;
      events.point(null);
    },
    mousedown(e, view) {
      closeTips(view); // what it explains is chosen now
      pressed = { at: performance.now(), pos: view.posAtCoords({ x: e.clientX, y: e.clientY }) ?? -1 };
      down = { x: e.clientX, y: e.clientY };
    },
    mouseup(e, view) {
      const dragged = Math.abs(e.clientX - down.x) + Math.abs(e.clientY - down.y) > 4;
      if (dragged || e.button !== 0 || !view.state.selection.main.empty) return;
      const pos = view.posAtCoords({ x: e.clientX, y: e.clientY });
      if (pos !== null) events.clicked(exactPos(view, pos, e.clientX));
    },
    drop(e, view) {
      const files = [...(e.dataTransfer?.files ?? [])];
      if (files.length === 0 || view.state.readOnly) return false;
      e.preventDefault();
      events.dropped(files);
      return true;
    },
  });
}

/** The character under x; posAtCoords returns the nearest gap between two characters. */
function exactPos(view: EditorView, pos: number, x: number): number {
  const left = view.coordsAtPos(pos, 1);
  return left && x < left.left && pos > view.state.doc.lineAt(pos).from ? pos - 1 : pos;
}

interface Kept {
  state: EditorState;
  scroll: StateEffect<unknown>;
}

/** One view, with a state of its own for each file: text, history, folds, marks. */
export class SourceEditor {
  readonly view: EditorView;
  /** The key of the file that is shown; null: the main file. */
  private shown: string | null = null;
  private readonly kept = new Map<string | null, Kept>();
  private isFrozen = false;
  private writing: Extension = [];
  /** Keys that come before all others: Vim's. */
  private readonly keys = new Compartment();
  private ownKeys: Extension = [];
  /** What a session adds to the text of each file. */
  private added: (key: string | null) => Extension = () => [];

  constructor(
    parent: HTMLElement,
    private readonly events: SourceEvents,
  ) {
    this.view = new EditorView({ parent, state: this.newState(null, "", "nkipy") });
    this.view.contentDOM.addEventListener("focus", () => void this.helpToWrite(), { once: true });
  }

  private async helpToWrite(): Promise<void> {
    this.writing = await this.events.writing();
    const effects = StateEffect.appendConfig.of(this.writing);
    this.view.dispatch({ effects });
    for (const kept of this.kept.values()) kept.state = kept.state.update({ effects }).state;
  }

  private newState(key: string | null, doc: string, language: string): EditorState {
    return EditorState.create({ doc, extensions: [this.added(key), this.extensions(language), this.writing, this.isFrozen ? FROZEN : []] });
  }

  private extensions(language: string): Extension {
    return [
      this.keys.of(this.ownKeys),
      heatGutter(),
      lintGutter(),
      lineNumbers(),
      highlightActiveLineGutter(),
      foldGutter({ openText: "⌄", closedText: "›" }),
      highlightSpecialChars(),
      history(),
      drawSelection(),
      EditorState.allowMultipleSelections.of(true),
      EditorState.tabSize.of(4),
      indentUnit.of("    "),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      highlightSelectionMatches(),
      search({ top: true }),
      keymap.of([
        ...closeBracketsKeymap,
        ...defaultKeymap.filter((k) => k.key !== "Mod-Enter"),
        ...searchKeymap,
        ...historyKeymap,
        ...foldKeymap,
        indentWithTab,
      ]),
      sourceLanguage(language),
      sourceLinks(),
      notesBehind(),
      markedLines(),
      cardTip(),
      hoverTooltip(
        async (_view, pos) => {
          const tip = isTipOpen(this.view) ? null : await this.events.explain(pos);
          const isChosen = tip && performance.now() - pressed.at < QUIET_MS && tip.from <= pressed.pos && pressed.pos <= tip.to;
          return tip && !isChosen ? { pos: tip.from, end: tip.to, above: true, create: () => ({ dom: tip.dom }) } : null;
        },
        { hoverTime: 600, hideOnChange: true },
      ),
      pointer(this.events),
      typeOverSelection(),
      EditorView.contentAttributes.of({ "aria-label": "Kernel source", "data-pane": "source", tabindex: "0" }),
      EditorView.updateListener.of((u) => {
        const own = u.transactions.some((tr) => tr.annotation(fromPage));
        if (u.docChanged && !own) this.events.edited(u.state.doc.toString());
        else if (u.selectionSet && !u.docChanged && !own) this.events.caret(u.state.selection.main.head);
      }),
    ];
  }

  /** Replaces the keys that come before all others, in every file. */
  setKeys(keys: Extension): void {
    this.ownKeys = keys;
    this.change(this.keys.reconfigure(keys));
  }

  /** Opens or closes the tip at the caret, which the keyboard cannot point at. */
  async explainCaret(): Promise<void> {
    const tip = isTipOpen(this.view) ? null : await this.events.explain(this.view.state.selection.main.head);
    toggleTip(this.view, () => tip?.dom ?? null);
  }

  /** Adds something to the text of each file, from now on and anew: what was undone before cannot be done again. */
  add(added: (key: string | null) => Extension, language: string): void {
    this.added = added;
    this.kept.clear();
    const scroll = this.view.scrollSnapshot();
    const { selection } = this.view.state;
    const isFocused = this.view.hasFocus;
    this.view.setState(this.newState(this.shown, this.text, language));
    this.view.dispatch({ selection, effects: scroll, annotations: fromPage.of(true) });
    if (isFocused) this.view.focus();
  }

  /** Changes every file's state, that of those which are not shown, too. */
  change(effects: StateEffect<unknown>): void {
    this.view.dispatch({ effects });
    for (const kept of this.kept.values()) kept.state = kept.state.update({ effects }).state;
  }

  get key(): string | null {
    return this.shown;
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  /** Makes it read-only. */
  freeze(): void {
    this.isFrozen = true;
    this.view.dispatch({ effects: StateEffect.appendConfig.of(FROZEN) });
  }

  /** Shows the text of a file; the file's own state, if it is still that of the text.  True if another file was shown. */
  show(key: string | null, text: string, language: string): boolean {
    if (key === this.shown) {
      if (text !== this.text) this.replace(text);
      return false;
    }
    this.kept.set(this.shown, { state: this.view.state, scroll: this.view.scrollSnapshot() });
    const kept = this.kept.get(key);
    const isSame = kept?.state.doc.toString() === text;
    this.view.setState(isSame && kept ? kept.state : this.newState(key, text, language));
    if (isSame && kept) this.view.dispatch({ effects: kept.scroll });
    else this.view.scrollDOM.scrollTop = 0;
    this.shown = key;
    return true;
  }

  /** The file of the one key has the other from now on. */
  rename(from: string, to: string): void {
    const kept = this.kept.get(from);
    if (kept) this.kept.set(to, kept);
    this.kept.delete(from);
    if (this.shown === from) this.shown = to;
  }

  /** Drops what is kept of files that are gone. */
  forget(keys: ReadonlySet<string>): void {
    for (const key of this.kept.keys()) if (key !== null && !keys.has(key)) this.kept.delete(key);
  }

  read(language: string): void {
    changeLanguage(this.view, language);
  }

  replace(text: string): void {
    this.view.dispatch({
      changes: { from: 0, to: this.view.state.doc.length, insert: text },
      selection: { anchor: 0 },
      scrollIntoView: true,
      annotations: fromPage.of(true),
    });
  }

  select(from: number, to: number, focus: boolean): void {
    this.view.dispatch({
      selection: { anchor: from, head: to },
      effects: EditorView.scrollIntoView(from, { y: "center" }),
      annotations: fromPage.of(true),
    });
    if (focus) this.view.focus();
  }

  /** Scrolls only when the place is not visible. */
  reveal(from: number): void {
    this.view.dispatch({ effects: EditorView.scrollIntoView(from, { y: "nearest", yMargin: 60 }) });
  }

  showDiagnostics(list: readonly Diagnostic[]): void {
    const { doc } = this.view.state;
    const lints = list.flatMap((d): Lint[] => {
      const span = d.range ? spanOfRange(doc, d.range) : null;
      if (!span) return [];
      const to = span.to > span.from ? span.to : Math.min(span.from + 1, doc.length);
      const severity = d.severity === "note" ? "info" : d.severity;
      return [{ from: span.from, to, severity, source: d.code, message: d.hint ? `${d.message}\n${d.hint}` : d.message }];
    });
    this.view.dispatch(setDiagnostics(this.view.state, lints));
  }
}
