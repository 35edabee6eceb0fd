// stageeditor: an editor for a stage's text.
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic as Lint } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Annotation, Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import type { Diagnostic, SourceRange } from "../api/types";
import { tokenizerOf } from "../highlight/dialect";
import { spanOfRange } from "./positions";
import { tokenColours, tokenizer } from "./tokens";

const fromPage = Annotation.define<boolean>();

export class StageEditor {
  readonly view: EditorView;
  private readonly language = new Compartment();
  private readonly wrap = new Compartment();

  constructor(parent: HTMLElement, label: string, edited: (text: string) => void) {
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        extensions: [
          lintGutter(),
          lineNumbers(),
          highlightActiveLineGutter(),
          history(),
          drawSelection(),
          EditorState.allowMultipleSelections.of(true),
          bracketMatching(),
          highlightActiveLine(),
          highlightSelectionMatches(),
          search({ top: true }),
          keymap.of([...defaultKeymap.filter((k) => k.key !== "Mod-Enter"), ...searchKeymap, ...historyKeymap]),
          tokenColours(),
          this.language.of([]),
          this.wrap.of([]),
          EditorView.contentAttributes.of({ "aria-label": label, "data-pane": "ir", tabindex: "0" }),
          EditorView.updateListener.of((u) => {
            if (u.docChanged && !u.transactions.some((tr) => tr.annotation(fromPage))) edited(u.state.doc.toString());
          }),
        ],
      }),
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  show(text: string, dialect: string): void {
    const effects = this.language.reconfigure(tokenizer.of(tokenizerOf(dialect)));
    if (text === this.text) this.view.dispatch({ effects });
    else this.view.dispatch({ effects, changes: { from: 0, to: this.view.state.doc.length, insert: text }, annotations: fromPage.of(true) });
  }

  setWrap(on: boolean): void {
    this.view.dispatch({ effects: this.wrap.reconfigure(on ? EditorView.lineWrapping : []) });
  }

  select(range: SourceRange): void {
    const span = spanOfRange(this.view.state.doc, range);
    if (!span) return;
    this.view.dispatch({ selection: { anchor: span.from, head: Math.min(span.to, this.view.state.doc.lineAt(span.from).to) }, effects: EditorView.scrollIntoView(span.from, { y: "center" }), annotations: fromPage.of(true) });
    this.view.focus();
  }

  /** Marks the errors; a place of several lines is marked in its first. */
  showDiagnostics(list: readonly Diagnostic[]): void {
    const { doc } = this.view.state;
    const lints = list.flatMap((d): Lint[] => {
      const span = d.range ? spanOfRange(doc, d.range) : null;
      if (!span) return [];
      const end = doc.lineAt(span.from).to;
      const severity = d.severity === "note" ? "info" : d.severity;
      return [{ from: span.from, to: Math.max(Math.min(span.to, end), span.from), severity, source: d.code, message: d.hint ? `${d.message}\n${d.hint}` : d.message }];
    });
    this.view.dispatch(setDiagnostics(this.view.state, lints));
  }
}
