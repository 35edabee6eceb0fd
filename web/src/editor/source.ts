// source: the editor for the kernel.
import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic as Lint } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Annotation, EditorState, StateEffect } from "@codemirror/state";
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
import { sourceLinks } from "./links";
import { notesBehind } from "./notes";
import { spanOfRange } from "./positions";
import { changeLanguage, sourceLanguage } from "./sourcelanguage";
import { typeOverSelection } from "./typing";

/** Marks a change that the page made, not the user. */
const fromPage = Annotation.define<boolean>();

export interface SourceEvents {
  edited(text: string): void;
  /** The caret moved without an edit. */
  caret(pos: number): void;
  /** The pointer is over a character; null: it has left. */
  point(pos: number | null): void;
  clicked(pos: number): void;
  /** A file was dropped on the text. */
  dropped(file: File): void;
  /** The tooltip for a character. */
  explain(pos: number): Promise<{ from: number; to: number; dom: HTMLElement } | null>;
}

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
    mousedown(e) {
      down = { x: e.clientX, y: e.clientY };
    },
    mouseup(e, view) {
      const dragged = Math.abs(e.clientX - down.x) + Math.abs(e.clientY - down.y) > 4;
      if (dragged || e.button !== 0 || !view.state.selection.main.empty) return;
      const pos = view.posAtCoords({ x: e.clientX, y: e.clientY });
      if (pos !== null) events.clicked(exactPos(view, pos, e.clientX));
    },
    drop(e, view) {
      const file = e.dataTransfer?.files[0];
      if (!file || view.state.readOnly) return false;
      e.preventDefault();
      events.dropped(file);
      return true;
    },
  });
}

/** The character under x; posAtCoords returns the nearest gap between two characters. */
function exactPos(view: EditorView, pos: number, x: number): number {
  const left = view.coordsAtPos(pos, 1);
  return left && x < left.left && pos > view.state.doc.lineAt(pos).from ? pos - 1 : pos;
}

export class SourceEditor {
  readonly view: EditorView;

  constructor(parent: HTMLElement, events: SourceEvents) {
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        extensions: [
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
          sourceLanguage("nkipy"),
          sourceLinks(),
          notesBehind(),
          hoverTooltip(
            async (_view, pos) => {
              const tip = await events.explain(pos);
              return tip ? { pos: tip.from, end: tip.to, above: true, create: () => ({ dom: tip.dom }) } : null;
            },
            { hoverTime: 450 },
          ),
          pointer(events),
          typeOverSelection(),
          EditorView.contentAttributes.of({ "aria-label": "Kernel source", "data-pane": "source", tabindex: "0" }),
          EditorView.updateListener.of((u) => {
            const own = u.transactions.some((tr) => tr.annotation(fromPage));
            if (u.docChanged && !own) events.edited(u.state.doc.toString());
            else if (u.selectionSet && !u.docChanged && !own) events.caret(u.state.selection.main.head);
          }),
        ],
      }),
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  /** Makes it read-only. */
  freeze(): void {
    const readable = EditorView.contentAttributes.of({ role: "textbox", "aria-readonly": "true", "aria-multiline": "true" });
    this.view.dispatch({
      effects: StateEffect.appendConfig.of([EditorState.readOnly.of(true), EditorView.editable.of(false), readable]),
    });
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
