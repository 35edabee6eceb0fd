// actions: everything that the page can do, for the palette: what has a key does what the key does.
import { layouts } from "../state/layouts";
import { FONT_SIZES, settings } from "../state/settings";
import { kernelOf } from "../state/outcome";
import { pinOtherPipeline } from "../state/pin";
import { allRows, choose, showStage } from "../state/view";
import { byId } from "./dom";
import { type KeyTargets, pressKey } from "./keys";
import { literal, offersAbout, writeOffer } from "./offers";
import { say } from "./notices";
import { startDevice } from "./devicebutton";
import { canShrink, startShrink } from "./shrinkbutton";
import { startRecording } from "./recordbutton";
import { showNotes } from "./notesbutton";
import { canTune, startTune } from "./tunebutton";
import { openVersions } from "./versions";

export interface Action {
  group: string;
  title: string;
  /** As the help writes it; "" without one. */
  key: string;
  run(): void;
}

type Keyed = readonly [title: string, key: string];

const STAGES: readonly Keyed[] = [
  ["Next stage", "j"],
  ["Previous stage", "k"],
  ["Next phase", "n"],
  ["Previous phase", "b"],
  ["First stage", "Home"],
  ["Last stage", "End"],
  ["Filter the list of stages", "/"],
  ["Search all stages", "Ctrl+Shift+F"],
];

const LINKS: readonly Keyed[] = [
  ["Jump to the partners and keep them lit", "g l"],
  ["Explain what is at the caret", "Ctrl+F8"],
  ["History of the selection", "h"],
  ["Why: what was decided about the selection", "y"],
  ["Colours of linked lines on or off", "Ctrl+Shift+F1"],
];

const TEXT: readonly Keyed[] = [
  ["What the operation does, its fields, limits and cost", "i"],
  ["Values of what is selected", "v"],
  ["Tiles and access patterns of the instruction", "o"],
  ["Compact or full text", "r"],
  ["Attributes shown or hidden", "t"],
  ["Go to the value's definition", "g d"],
  ["Wrap long lines", "w"],
  ["Picture of the stage: data flow or loops", "f"],
];

const DIFF: readonly Keyed[] = [
  ["Compare the stage with the one before; back to the text", "d"],
  ["Compare other stages with this one", "a"],
];

const OPEN_DIFF: readonly Keyed[] = [
  ["Next change", "F7"],
  ["Previous change", "Shift+F7"],
  ["One column or two", "u"],
  ["Show the equal lines, too", "Shift+E"],
];

const KERNEL: readonly Keyed[] = [
  ["Compile now", "Ctrl+Enter"],
  ["Compile while typing on or off", "Ctrl+Shift+Enter"],
  ["Copy a link to what you see", "Ctrl+S"],
];

const VIEW: readonly Keyed[] = [
  ["See the kernel run; back to reading", "Shift+R"],
  ["Pin what is shown as A; unpin it", "p"],
];

const PAGE: readonly Keyed[] = [
  ["Next pane", "F6"],
  ["Previous pane", "Shift+F6"],
  ["Maximise the pane; restore it", "m"],
  ["Open the pane in a window of its own", "Shift+O"],
  ["Source hidden or shown", "1"],
  ["Stage list hidden or shown", "2"],
  ["Stage's text hidden or shown", "3"],
  ["Present the source and the stage", "Shift+P"],
  ["All keys", "?"],
];

/** What a button does that is shown. */
function click(group: string, title: string, selector: string): Action[] {
  const button = document.querySelector<HTMLElement>(selector);
  return button && button.offsetParent !== null ? [{ group, title, key: "", run: () => button.click() }] : [];
}

/** A choice for each option of a list of the header. */
function choices(group: string, id: string): Action[] {
  const select = byId<HTMLSelectElement>(id);
  if (select.offsetParent === null) return [];
  return [...select.options].map((option) => ({
    group,
    title: option.label,
    key: "",
    run: () => {
      select.value = option.value;
      select.dispatchEvent(new Event("change"));
    },
  }));
}

function textSize(title: string, by: 1 | -1): Action[] {
  const size = FONT_SIZES[FONT_SIZES.indexOf(settings.state.fontSize) + by];
  return size === undefined ? [] : [{ group: "Page", title, key: "", run: () => settings.set({ fontSize: size }) }];
}

/** The knobs that decisions about the selection offer. */
function knobs({ store, source }: KeyTargets): Action[] {
  const { anchor, outcome, kernelName } = store.state;
  const kernel = kernelOf(outcome, kernelName);
  if (!anchor || !kernel || anchor.map !== kernel.map) return [];
  return offersAbout(kernel, anchor).map(({ remark, value }): Action => ({
    group: "Kernel",
    title: `Write knob ${remark.knob.call}(${remark.knob.argument}=${literal(value)}), not ${literal(remark.knob.value)}`,
    key: "",
    run: () => say(writeOffer({ store, editor: source, kernel, remark, value })),
  }));
}

/** As they can be done now. */
export function actionsNow(t: KeyTargets): Action[] {
  const { store } = t;
  const keyed = (group: string, list: readonly Keyed[]) => list.map(([title, key]): Action => ({ group, title, key, run: () => pressKey(t, key) }));
  const plain = (group: string, title: string, run: () => void): Action => ({ group, title, key: "", run });
  const { mode, pinned, anchor, hideUnchanged } = store.state;
  const hasChanges = mode === "compare" || t.diff.isOpen;
  return [
    ...keyed("Stages", STAGES),
    plain("Stages", hideUnchanged ? "Show all stages" : "Show changed stages only", () => store.set({ hideUnchanged: !hideUnchanged })),
    ...click("Stages", "Change this stage's text and compile on from it", "#ir-edit"),
    ...click("Stages", "The rewrites inside this stage, one by one", "#ir-tools .steps-open"),
    ...click("Stages", "A second stage beside this one", "#ir-pane .room button"),
    ...keyed("Links", LINKS),
    ...(anchor ? [{ ...plain("Links", "Clear the selection", () => choose(store, null)), key: "Esc" }] : []),
    ...keyed("Stage's text", TEXT),
    ...keyed("Diff", DIFF),
    ...(hasChanges ? keyed("Diff", OPEN_DIFF) : []),
    ...keyed("View", VIEW),
    ...(pinned ? keyed("View", [["A against what is shown now; back to reading", "c"]]) : []),
    plain("View", store.state.pipeline === "reference" ? "Compare with all stages" : "Compare with the reference's stages", () => pinOtherPipeline(store)),
    ...(mode === "compare" ? keyed("View", [["Swap A and B", "x"]]) : []),
    ...(mode === "read" ? [] : [plain("View", "Read the stages", () => store.set({ mode: "read" }))]),
    ...keyed("Kernel", KERNEL),
    ...knobs(t),
    plain("Kernel", "Run on a Neuron host that is connected to the server", () => startDevice(store)),
    ...(canTune(store) ? [plain("Kernel", "Tune: search for knobs that make the kernel faster", () => startTune(store, t.source))] : []),
    ...(canShrink(store.state) ? [plain("Kernel", "Shrink: find a small kernel with this fault", () => startShrink(store, t.source))] : []),
    ...click("Kernel", "Check every stage against NumPy", "#check"),
    ...click("Kernel", "Share, store or download", "#share"),
    ...[...document.querySelectorAll<HTMLElement>("#source-tools button:not(#versions-open)")].flatMap((b): Action[] =>
      b.offsetParent === null ? [] : [plain("Kernel", b.title.split(/[:.]/)[0] ?? "", () => b.click())],
    ),
    plain("Kernel", "Notes: on lines of the source and of stages", () => void showNotes(t, true)),
    plain("Kernel", "Record what you write, select and look at", () => void startRecording()),
    plain("Kernel", "Versions: what you wrote before", () => openVersions(store, t.compiler)),
    ...keyed("Page", PAGE),
    plain("Page", "Layouts: save the arrangement of the panes, rename, delete", () => void t.views.openLayouts()),
    ...layouts().map(({ name, arrangement }) => plain("Layout", name, () => t.views.useLayout(arrangement))),
    plain("Page", settings.state.vim ? "Leave Vim keys" : "Vim keys in the source", () => settings.set({ vim: !settings.state.vim })),
    plain("Page", "Settings", () => byId("settings").showPopover()),
    ...click("Page", "Theme: light, dark or the system's", "#theme"),
    ...textSize("Larger text", 1),
    ...textSize("Smaller text", -1),
    ...choices("Target", "target"),
    ...choices("Stages", "pipeline"),
    ...choices("Version of the compiler", "version"),
    ...choices("Kernel in the file", "kernel"),
    ...choices("Example", "example"),
    ...allRows(store.state).map((row) => plain("Stage", `${row.index} ${row.name}`, () => showStage(store, row))),
  ];
}
