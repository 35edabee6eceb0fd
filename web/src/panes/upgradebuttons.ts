// upgradebuttons: what is offered for files with kernels of NKI beta 1, and for what their upgrade has left.
import type { SourceRange } from "../api/types";
import type { AppStore } from "../state/app";
import { hasBeta1, marksOf } from "../state/beta1";
import { nameOfTab, textsOf } from "../state/files";
import { button, byId, plural } from "./dom";
import { say } from "./notices";
import type { SourcePane } from "./source";

/** The marks of all files, those of the shown one first, from the line after the caret on. */
function nextMark(store: AppStore, source: SourcePane): SourceRange | null {
  const { state } = store;
  const shown = nameOfTab(state, state.tab);
  const { doc, selection } = source.editor.view.state;
  const caret = doc.lineAt(selection.main.head).number;
  const places = [...textsOf(state)].flatMap(([file, text]) => marksOf(text).map((m) => ({ file, line: m.line })));
  const names = [...textsOf(state).keys()];
  const rank = (p: { file: string; line: number }) => {
    const files = (names.indexOf(p.file) - names.indexOf(shown) + names.length) % names.length;
    return [files === 0 && p.line <= caret ? names.length : files, p.line] as const;
  };
  const [first] = places.sort((a, b) => rank(a)[0] - rank(b)[0] || rank(a)[1] - rank(b)[1]);
  return first ? { file: first.file, line: first.line, col: 1, end_line: first.line, end_col: 1 } : null;
}

export function mountUpgrade(store: AppStore, source: SourcePane): void {
  const goToMark = () => {
    const mark = nextMark(store, source);
    if (mark) source.goTo(mark);
  };
  const open = () =>
    void import("./upgrade").then(
      (m) => m.openUpgrade(store, source, goToMark),
      () => say("The upgrade could not be loaded: is the server reachable?"),
    );
  const upgrade = button("upgrade", "Upgrade NKI kernels of beta 1: see what changes before it replaces the text", open);
  const marks = button("", "Next place that the upgrade left: statements to be done by hand", goToMark);
  byId("source-tools").prepend(marks, upgrade);
  store.watch(["source", "files", "language"], () => {
    const texts = store.state.language === "nkipy" ? [...textsOf(store.state).values()] : [];
    const n = texts.reduce((sum, text) => sum + marksOf(text).length, 0);
    upgrade.hidden = !texts.some(hasBeta1);
    marks.hidden = n === 0;
    marks.textContent = `${n} by hand`;
    marks.setAttribute("aria-label", `Next of ${plural(n, "place")} to be done by hand`);
  });
}
