// typing: replaces a selection by typed text itself instead of leaving it to the browser.
//
// Chromium preserves the look of replaced text with a style attribute, which our Content-Security-Policy refuses and
// reports.  CodeMirror would discard the attribute anyway, so here it makes the change itself.
import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

export function typeOverSelection(): Extension {
  return EditorView.domEventHandlers({
    beforeinput(e, view) {
      const range = view.state.selection.main;
      const text = e.data;
      if (e.inputType !== "insertText" || !text || range.empty || view.composing || !e.cancelable) return false;
      const plain = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
      const handlers = view.state.facet(EditorView.inputHandler);
      if (!handlers.some((h) => h(view, range.from, range.to, text, plain))) view.dispatch(plain());
      e.preventDefault();
      return true;
    },
  });
}
