// byhand: changes that the user made to the pipeline: passes left out, put in, given options.  compiler/driver/by_hand.h says how
// a change is written.
import type { PassDescription } from "../api/types";
import { stageKeys, type KernelOutcome, type StageRow } from "./outcome";

/** The most changes, and the most characters of one, that the server takes. */
export const MOST = { changes: 32, length: 240 };

/** Of a link or a stored pin. */
export function byHandOf(value: unknown): readonly string[] {
  const list = Array.isArray(value) ? value : [];
  return list.filter((v): v is string => typeof v === "string" && v.length <= MOST.length).slice(0, MOST.changes);
}

/** The name of a stage as a change says it: it counts in the pipeline without any change.  Null: the row was put in. */
export function nameInChange(kernel: KernelOutcome, row: StageRow): string | null {
  if (row.stage?.by_hand === "put in") return null;
  const old = kernel.stages.filter((s) => s.by_hand !== "put in");
  const at = row.stage ? old.indexOf(row.stage) : -1;
  return at < 0 ? row.key : (stageKeys(old.map((s) => s.name))[at] ?? row.name);
}

export const leaveOut = (stage: string): string => `without ${stage}`;
export const putIn = (stage: string, pass: string, options: string): string => `after ${stage} ${pass}${options ? `{${options}}` : ""}`;
export const giveOptions = (stage: string, options: string): string => `with ${stage}{${options}}`;

/** The options that the changes give a stage. */
export function optionsOf(changes: readonly string[], stage: string): string {
  const begin = `with ${stage}{`;
  const change = changes.findLast((c) => c.startsWith(begin));
  return change ? change.slice(begin.length, -1) : "";
}

/** The passes that can run after a stage of this dialect. */
export function passesFor(passes: readonly PassDescription[], dialect: string): PassDescription[] {
  const form = dialect === "hlo" || dialect === "nisa" ? dialect : "mlir";
  return dialect === "nki" ? [] : passes.filter((p) => p.form === form);
}
