// resume: a stage whose text the user changed: the pipeline goes on from the text.
import type { Resume } from "../api/types";
import type { AppState } from "./app";
import { fileName, type StageRow } from "./outcome";

export interface Edited {
  index: number;
  name: string;
  /** The kernel's number in the result. */
  kernel: number;
  /** The name of the text in the places of diagnostics. */
  file: string;
  text: string;
}

/** What a request says of it. */
export function resumeOf({ index, kernel, text }: Edited): Resume {
  return { stage: String(index), text, ...(kernel > 0 ? { kernel } : {}) };
}

/** What a stored request says of it. */
export function editedFrom(resume: Resume | undefined, stages: readonly { index: number; name: string; dialect: string }[]): Edited | null {
  const stage = stages.find((s) => String(s.index) === resume?.stage);
  if (!resume || !stage) return null;
  return { index: stage.index, name: stage.name, kernel: resume.kernel ?? 0, file: fileName(stage), text: resume.text };
}

/** The number of the row's kernel in the result; -1: the result has it no more. */
function kernelNumber(s: Readonly<AppState>, row: StageRow): number {
  const of = (outcome: AppState["outcome"]) => outcome?.kernels.findIndex((k) => k.name === row.kernel.name) ?? -1;
  return Math.max(of(s.outcome), of(s.previous));
}

/** Stages that show a source or its calls are not read back. */
export function canEdit(row: StageRow | null): boolean {
  return row?.stage !== null && row?.stage !== undefined && row.dialect !== "nki" && !row.stage.partial;
}

export function newEdit(s: Readonly<AppState>, row: StageRow): Edited | null {
  if (!row.stage || !canEdit(row)) return null;
  return { index: row.index, name: row.name, kernel: Math.max(kernelNumber(s, row), 0), file: fileName(row), text: row.stage.text };
}

/** Where a row lies from the changed stage: before it (or of another kernel), the stage itself, or after it. */
export function sideOf(s: Readonly<AppState>, row: StageRow | null): "before" | "here" | "after" {
  const { edited } = s;
  if (!row || !edited || kernelNumber(s, row) !== edited.kernel) return "before";
  return row.index < edited.index ? "before" : row.index === edited.index ? "here" : "after";
}
