// view: values derived from the state that several panes need: the rows, the shown stage, the selection.
import type { SourceRange, Stage } from "../api/types";
import type { AppState, AppStore } from "./app";
import { kernelOf, lastRow, stageRows, type KernelOutcome, type StageRow } from "./outcome";
import { choiceFromText, choiceText } from "./rounds";
import { lightOfAnchor, type Anchor, type Light } from "./selection";

type RowState = Pick<AppState, "outcome" | "previous" | "kernelName" | "pipelines">;

let rowsFor: RowState | null = null;
let rows: StageRow[] = [];

/** The rows of the stage list; the same array until something changes. */
export function allRows(s: Readonly<AppState>): StageRow[] {
  const keys = ["outcome", "previous", "kernelName", "pipelines"] as const;
  if (!rowsFor || keys.some((k) => rowsFor?.[k] !== s[k])) {
    const { outcome, previous, kernelName, pipelines } = s;
    rowsFor = { outcome, previous, kernelName, pipelines };
    rows = stageRows(outcome, previous, kernelName, pipelines);
  }
  return rows;
}

export const ROW_KEYS = ["outcome", "previous", "kernelName", "pipelines"] as const;
export const STAGE_KEYS = [...ROW_KEYS, "stageKey"] as const;

export function currentRow(s: Readonly<AppState>): StageRow | null {
  const list = allRows(s);
  return list.find((r) => r.key === s.stageKey) ?? lastRow(list) ?? null;
}

export interface Shown {
  row: StageRow;
  /** The stage whose text is shown: the row's, or the stage before a failed pass. */
  stage: Stage;
}

export function shownStage(s: Readonly<AppState>): Shown | null {
  const row = currentRow(s);
  if (!row) return null;
  const stage = row.stage ?? row.kernel.stages.at(-1);
  return stage ? { row, stage } : null;
}

/** The stage beside the shown one: that of the same kernel with the key `beside`, or else its last. */
export function besideStage(s: Readonly<AppState>): Shown | null {
  if (s.beside === null) return null;
  const rows = allRows(s).filter((r) => r.stage);
  const row = rows.find((r) => r.key === s.beside) ?? lastRow(rows);
  return row?.stage ? { row, stage: row.stage } : null;
}

/** True for an old stage whose kernel is not in the source any more: another kernel has taken its place. */
export function isOfAnotherKernel(s: Readonly<AppState>, row: StageRow): boolean {
  if (!row.stale || s.language !== "nkipy") return false;
  const definition = new RegExp(`\\bdef\\s+${row.kernel.name.replace(/\W/g, "\\$&")}\\s*\\(`);
  return ![s.source, ...s.files.map((f) => f.source)].some((text) => definition.test(text));
}

export function visibleRows(s: Readonly<AppState>): StageRow[] {
  const wanted = s.filter.trim().toLowerCase();
  const shown = currentRow(s);
  const all = allRows(s);
  return all.filter((r) => {
    if (wanted !== "" && !`${r.index} ${r.name} ${r.phase} ${r.dialect}`.toLowerCase().includes(wanted)) return false;
    const always = r.failed || r === lastRow(all) || r.key === shown?.key;
    return !s.hideUnchanged || always || r.stage?.changed !== false;
  });
}

interface KnownLight {
  anchor: Anchor | null;
  kernel: KernelOutcome;
  partner: number | null;
  light: Light | null;
}

const knownLights = new WeakMap<Stage, KnownLight>();

/** The selection in a stage; the same object until one of the two changes.  `partner` is picked instead of the best one. */
export function lightIn(s: Readonly<AppState>, { row, stage }: Shown, partner: number | null): Light | null {
  const { anchor } = s;
  const { kernel } = row;
  const known = knownLights.get(stage);
  if (known?.anchor === anchor && known.kernel === kernel && known.partner === partner) return known.light;
  const light = lightOfAnchor(anchor, kernel, kernel.stages.indexOf(stage));
  const isThere = light !== null && partner !== null && light.ops.has(partner);
  const found = isThere ? { ...light, best: partner } : light;
  knownLights.set(stage, { anchor, kernel, partner, light: found });
  return found;
}

/** The selection in the shown stage. */
export function selectedLight(s: Readonly<AppState>): Light | null {
  const shown = shownStage(s);
  return shown && lightIn(s, shown, s.partner);
}

/** The texts that the kernel's ranges refer to. */
export function textsOfKernel(s: Readonly<AppState>, kernel: KernelOutcome): ReadonlyMap<string, string> | null {
  return [s.outcome, s.previous].find((o) => o?.kernels.some((k) => k.map === kernel.map))?.texts ?? null;
}

/** Selects, and scrolls both views to the selection. */
export function choose(store: AppStore, anchor: Anchor | null): void {
  store.set({ anchor, partner: null, reveal: store.state.reveal + 1 });
}

export function showStage(store: AppStore, row: StageRow): void {
  const { marked } = store.state;
  store.set({ stageKey: row.key, partner: null, marked: marked?.pane === "ir" ? null : marked });
}

/** The k-th visible row from the shown one, or the first/last. */
export function stepStage(store: AppStore, by: number | "first" | "last"): void {
  const list = visibleRows(store.state);
  const at = list.findIndex((r) => r.key === currentRow(store.state)?.key);
  const to = by === "first" ? 0 : by === "last" ? list.length - 1 : Math.min(Math.max(at + by, 0), list.length - 1);
  const row = list[to];
  if (row) showStage(store, row);
}

/** Goes to the first row of the next or previous phase. */
export function stepPhase(store: AppStore, by: 1 | -1): void {
  const list = visibleRows(store.state);
  const starts = list.flatMap((r, i) => (i === 0 || list[i - 1]?.phase !== r.phase ? [i] : []));
  const at = list.findIndex((r) => r.key === currentRow(store.state)?.key);
  const to = by > 0 ? starts.find((i) => i > at) : starts.filter((i) => i < at).at(-1);
  const row = to === undefined ? undefined : list[to];
  if (row) showStage(store, row);
}

/** The selection as written in links: a range of the source, with the chosen rounds of the loops around it, or an operation
 * of a stage. */
export function selectionText(s: Readonly<AppState>): string | null {
  const { anchor } = s;
  if (!anchor) return null;
  if (anchor.kind === "ops") return `${anchor.stage}.${anchor.ops.join(",")}`;
  const first = anchor.ranges[0] ?? -1;
  const r = anchor.map.ranges[first];
  const rounds = anchor.rounds ? choiceText(anchor.map.loopsOf(first), anchor.rounds) : "";
  return r ? `${r.line}:${r.col}-${r.end_line}:${r.end_col}${rounds}${anchor.map.isElsewhere(r) ? `@${r.file}` : ""}` : null;
}

export function selectionFromText(s: Readonly<AppState>, text: string): Anchor | null {
  const kernel = kernelOf(s.outcome, s.kernelName);
  if (!kernel) return null;
  const op = /^(\d+)\.(\d+(?:,\d+)*)$/.exec(text);
  if (op) {
    const stage = Number(op[1]);
    const known = kernel.stages[stage] && kernel.map.linksOf(kernel.stages[stage]).opLines;
    const ops = (op[2] ?? "").split(",").map(Number).filter((n) => known?.has(n));
    return ops.length > 0 ? { kind: "ops", map: kernel.map, stage, ops } : null;
  }
  const at = /^(\d+):(\d+)-(\d+):(\d+)(?:~([\d*.]+))?(?:@(.+))?$/.exec(text);
  if (!at) return null;
  const [line, col, end_line, end_col] = at.slice(1, 5).map(Number) as [number, number, number, number];
  const isThere = (r: SourceRange) => (at[6] === undefined ? !kernel.map.isElsewhere(r) : r.file === at[6]);
  const ranges = kernel.map.ranges.flatMap((r, n) =>
    r.line === line && r.col === col && r.end_line === end_line && r.end_col === end_col && isThere(r) ? [n] : [],
  );
  const rounds = choiceFromText(kernel.map.loopsOf(ranges[0] ?? -1), at[5]);
  return ranges.length > 0 ? { kind: "ranges", map: kernel.map, ranges, rounds } : null;
}
