// look: the view, which is what a link contains in addition to the kernel: the shown stage, the selection, the filter, …
//
// Snippets store it as JSON.  Anyone, and any version of this page, may have written that, so each member is checked, and a
// wrong one is left out.
import type { AppState } from "./app";
import { markedText } from "./marked";
import { readNotes, type Thread } from "./notes";
import { currentRow, selectionText } from "./view";

export interface View {
  kernelName: string | null;
  stageKey: string | null;
  /** As in AppState. */
  beside: string | null;
  /** As in AppState. */
  step: number | null;
  /** As in AppState. */
  picture: boolean;
  /** As in AppState. */
  diffFrom: string | null;
  unified: boolean;
  /** "L:C-L:C" of a range, or "stage.op" of an operation. */
  selection: string | null;
  /** "ir:14-20" or "src:3". */
  marked: string | null;
  /** As in AppState. */
  notes: readonly Thread[];
  /** As in AppState. */
  recording: string | null;
  filter: string;
  hideUnchanged: boolean;
  /** As in AppState. */
  tab: string | null;
  wrap: boolean;
  pane: AppState["pane"] | null;
  splits: Record<string, number> | null;
  mode: AppState["mode"];
  /** As in AppState. */
  comparedKey: string | null;
}

export const NO_VIEW: View = {
  kernelName: null,
  stageKey: null,
  beside: null,
  step: null,
  picture: false,
  diffFrom: null,
  unified: false,
  selection: null,
  marked: null,
  notes: [],
  recording: null,
  filter: "",
  hideUnchanged: false,
  tab: null,
  wrap: false,
  pane: null,
  splits: null,
  mode: "read",
  comparedKey: null,
};

const VERSION = 1;
const TEXT_MAX = 2000;
/** Of a recording, as the server keeps it. */
export const PACKED_MAX = (256 << 10) - 2;

export function viewOf(s: Readonly<AppState>, splits: Record<string, number>): View {
  const { beside, step, picture, diffFrom, unified, notes, recording, filter, hideUnchanged, tab, wrap, pane, mode, comparedKey } = s;
  return {
    kernelName: (s.outcome ?? s.previous)?.kernels.length === 1 ? null : s.kernelName,
    stageKey: s.stageKey ?? currentRow(s)?.key ?? null,
    beside,
    step,
    picture,
    diffFrom,
    unified: unified && diffFrom !== null,
    selection: selectionText(s),
    marked: markedText(s.marked),
    notes,
    recording,
    filter,
    hideUnchanged,
    tab,
    wrap,
    pane,
    splits: s.splits ?? splits,
    mode,
    comparedKey: mode === "compare" ? comparedKey : null,
  };
}

export function viewToJson(view: View): object {
  return { version: VERSION, ...view };
}

type Check<T> = (v: unknown) => v is T;
const isText: Check<string> = (v): v is string => typeof v === "string" && v.length <= TEXT_MAX;
const isPacked: Check<string> = (v): v is string => typeof v === "string" && v.length <= PACKED_MAX && /^[\w-]+$/.test(v);
const isFlag: Check<boolean> = (v): v is boolean => typeof v === "boolean";
const isStep: Check<number> = (v): v is number => Number.isInteger(v) && Number(v) >= 0 && Number(v) < 2 ** 30;
const isPane: Check<AppState["pane"]> = (v): v is AppState["pane"] => v === "source" || v === "stages" || v === "ir";

const isMode: Check<AppState["mode"]> = (v): v is AppState["mode"] => v === "read" || v === "run" || v === "compare";

function readSplits(v: unknown): Record<string, number> | null {
  if (typeof v !== "object" || v === null) return null;
  const splits: Record<string, number> = {};
  for (const id of ["split-source", "split-stages"]) {
    const share = Object.getOwnPropertyDescriptor(v, id)?.value as unknown;
    if (typeof share === "number" && share > 0.05 && share < 0.7) splits[id] = share;
  }
  return splits;
}

/** `odd`: a member was wrong and is left out. */
export function readViewJson(json: unknown): { view: View; odd: boolean } {
  const view: View = { ...NO_VIEW };
  if (json === null || json === undefined) return { view, odd: false };
  if (typeof json !== "object" || (json as { version?: unknown }).version !== VERSION) return { view, odd: true };
  let odd = false;
  const take = <T>(key: keyof View, check: Check<T>, otherwise: T): T => {
    const value = Object.getOwnPropertyDescriptor(json, key)?.value as unknown;
    if (value === undefined || value === null) return otherwise;
    if (check(value)) return value;
    odd = true;
    return otherwise;
  };
  view.kernelName = take<string | null>("kernelName", isText, null);
  view.stageKey = take<string | null>("stageKey", isText, null);
  view.beside = take<string | null>("beside", isText, null);
  view.step = take<number | null>("step", isStep, null);
  view.picture = take("picture", isFlag, false);
  view.diffFrom = take<string | null>("diffFrom", isText, null);
  view.unified = take("unified", isFlag, false);
  view.selection = take<string | null>("selection", isText, null);
  view.marked = take<string | null>("marked", isText, null);
  view.filter = take("filter", isText, "");
  view.hideUnchanged = take("hideUnchanged", isFlag, false);
  view.tab = take<string | null>("tab", isText, null);
  view.wrap = take("wrap", isFlag, false);
  view.pane = take<AppState["pane"] | null>("pane", isPane, null);
  view.mode = take("mode", isMode, "read");
  view.comparedKey = take<string | null>("comparedKey", isText, null);
  view.recording = take<string | null>("recording", isPacked, null);
  const read = readNotes(Object.getOwnPropertyDescriptor(json, "notes")?.value);
  view.notes = read.notes;
  odd ||= read.odd;
  view.splits = readSplits(Object.getOwnPropertyDescriptor(json, "splits")?.value);
  return { view, odd };
}
