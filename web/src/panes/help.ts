// help: the dialog that lists the keyboard shortcuts.
import { byId, button, el, fill } from "./dom";
import { keyCaps } from "./keycaps";

const KEYS: [string, [string, string][]][] = [
  [
    "Stages",
    [
      ["j k · ↓ ↑", "next, previous stage"],
      ["n b", "next, previous phase"],
      ["Home End", "first, last stage"],
      ["/", "filter the list"],
      ["Ctrl+Shift+F", "search all stages; ↑ ↓ from hit to hit"],
      ["Enter", "from the list into the stage's text"],
      ["Shift+Enter · Alt+click", "the stage beside the shown one; Esc closes it"],
    ],
  ],
  [
    "Links",
    [
      ["hover, or move the caret", "light the partners"],
      ["click · g l · Ctrl+F10", "jump to the partners and keep them lit"],
      ["Ctrl+click", "add an operation to the selection"],
      ["Ctrl+F8", "explain what is at the caret"],
      ["click a line number", "put the line into the address, with Shift a range"],
      ["h", "history of the selection"],
      ["y", "why: what was decided about the selection, and the knobs"],
      ["Esc", "clear the selection"],
      ["Ctrl+Shift+F1", "line colours on, off"],
    ],
  ],
  [
    "Stage's text",
    [
      ["i · hover", "what the operation does, its fields, limits and cost"],
      ["v", "values of what is selected; [ ] executions, t tables, Esc closes"],
      ["o", "tiles: what an instruction touches of its buffers; [ ] rounds"],
      ["r", "compact, full text"],
      ["t", "attributes shown, hidden"],
      ["Enter", "open, close a folded row"],
      ["Ctrl+Shift+[ · ]", "fold, unfold a loop or region"],
      ["f", "the stage as a picture: HLO as a graph, loops as nested boxes"],
      ["g d · F12 · Ctrl+click", "to the value's definition, and on to its uses"],
    ],
  ],
  [
    "Picture",
    [
      ["↑ ↓ ← →", "from box to box; with Shift, move the picture"],
      ["Enter · double click", "open, close a group or a loop"],
      ["Space · click", "select: the line of the stage and the source"],
      ["+ − 0 · Ctrl+wheel", "larger, smaller, all of it"],
      ["t", "picture, table"],
    ],
  ],
  [
    "Diff",
    [
      ["d", "compare with the stage before; back to the text"],
      ["a", "compare others with this stage"],
      ["F7 · Shift+F7", "next, previous change"],
      ["u", "one column or two"],
      ["Shift+E", "show the equal lines, too"],
    ],
  ],
  [
    "Compare",
    [
      ["p", "pin what is shown as A; unpin it"],
      ["c", "A against what is shown now; back to reading"],
      ["j · k", "next, previous stage that differs"],
      ["F7 · Shift+F7", "next, previous change"],
      ["x", "swap A and B"],
    ],
  ],
  [
    "Simulated run",
    [
      ["Shift+R", "see the kernel run; back to reading"],
      ["w s a d", "zoom the timeline, move along it"],
      ["[ · ]", "walk the critical path"],
      ["t", "pictures, tables"],
    ],
  ],
  [
    "Kernel",
    [
      ["Ctrl+Enter", "compile now"],
      ["Ctrl+Shift+Enter", "compile while typing on, off"],
      ["Ctrl+S", "copy a link to what you see"],
      ["Ctrl+Space", "list what can be written here; Tab takes a line, Esc closes the list"],
      ["Ctrl+Shift+Space", "the parameters of the call"],
      ["Ctrl+F", "find in the pane"],
      ["Esc then Tab", "leave the editor"],
    ],
  ],
  [
    "In a session",
    [
      ["l", "follow the leader; look around by oneself"],
      ["!", "who leads: point at the caret's line, in everyone's view"],
      ["Ctrl+Z", "take back one's own last change"],
    ],
  ],
  [
    "Page",
    [
      ["Ctrl+K", "every action by its name: stages, examples, earlier versions"],
      ["F6 · Shift+F6", "next, previous pane"],
      ["PageDown · PageUp", "in a lesson: next, previous step; with Alt also in an editor"],
      ["w", "wrap long lines"],
      ["Shift+P", "present: only source and stage, PageDown and PageUp step, + − size, Esc leaves"],
      ["m", "maximise the pane with the focus; restore it"],
      ["Shift+O", "the pane with the focus in a window of its own; closing the window brings it back"],
      ["1 2 3", "hide the source, the stage list, the stage's text; show it"],
      ["← → on a divider", "resize panes; Enter, or a double click: as at first"],
      ["?", "this sheet"],
    ],
  ],
];

const SIGNS: [string, string][] = [
  ["● ○ ◆ ✕", "the stage changed the program, did not, is the last one, failed"],
  ["+12 −3", "operations added and removed by the stage"],
  ["✓ ✕ –", "the stage's values are NumPy's, differ, were not checked"],
  ["↳", "the line was reached through a call of a helper"],
  ["×4", "the line was made from four expressions"],
  ["dashed edge", "the compiler made the line; it has no source"],
  ["▸ text", "what the pass decided about the line or the expression"],
];

export function openHelp(): void {
  const dialog = byId<HTMLDialogElement>("help");
  const close = button("Close", "Close", () => dialog.close(), "plain");
  fill(
    dialog,
    el("h2", { id: "help-title", attrs: { tabindex: -1, autofocus: true } }, "Keyboard"), // with the focus on Close the sheet would open at its end
    el(
      "div",
      { class: "help-grid" },
      ...KEYS.map(([title, rows]) =>
        el(
          "section",
          {},
          el("h3", {}, title),
          el("dl", {}, ...rows.flatMap(([keys, what]) => [el("dt", {}, ...keyCaps(keys)), el("dd", {}, what)])),
        ),
      ),
    ),
    el("section", { class: "legend" }, el("h3", {}, "Signs"), el("dl", {}, ...SIGNS.flatMap(([sign, what]) => [el("dt", {}, sign), el("dd", {}, what)]))),
    el("p", { class: "note" }, "Single letters work outside text fields; the settings switch them off."),
    close,
  );
  // a click beside the sheet
  dialog.onclick = (e) => e.target === dialog && dialog.close();
  if (!dialog.open) dialog.showModal();
}

