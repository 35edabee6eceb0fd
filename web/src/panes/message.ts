// message: what the bar above a stage's text says: the text is old, the stage failed, or its values are wrong.
import type { Diagnostic, Stage } from "../api/types";
import type { AppState } from "../state/app";
import { blame, type StageRow } from "../state/outcome";
import { isOfAnotherKernel } from "../state/view";
import { el } from "./dom";

export interface Message {
  kind: "old" | "wrong" | "failed" | "partial";
  parts: (Node | string)[];
  /** The error that made the stage fail. */
  error: Diagnostic | null;
}

function why(state: Readonly<AppState>): string {
  const { outcome, problem } = state;
  if (problem?.kind === "network") return "the server was not reached";
  if (problem) return "the kernel as it stands was not compiled";
  const error = outcome?.diagnostics.find((d) => d.severity === "error");
  if (error && blame(error) !== "kernel") return "the kernel as it stands was not compiled";
  const began = outcome?.kernels.some((k) => k.stages.length > 0);
  return began ? "the kernel as it stands was refused in its trace, which holds what came before" : "the kernel as it stands reached no stage";
}

function old(state: Readonly<AppState>, row: StageRow): Message {
  const whose = isOfAnotherKernel(state, row) ? [el("b", {}, row.kernel.name), ", the last kernel that compiled"] : ["the last version that compiled"];
  return { kind: "old", parts: ["This is from ", ...whose, `; ${why(state)}.`], error: null };
}

function wrong(row: StageRow, check: NonNullable<Stage["check"]>): Message {
  const { max_abs_err: err, reason, first_wrong: first } = check;
  const place = first ? ` First wrong: ${first.output}[${first.index.join(", ")}] is ${first.got ?? "not finite"}, not ${first.expected ?? "finite"}.` : "";
  const size = err === undefined ? "" : ` Largest absolute error ${err === null ? "infinite" : err.toExponential(2)}.${place}`;
  return { kind: "wrong", parts: [el("b", {}, `${row.name} no longer computes what NumPy computes.`), size, reason ? ` ${reason}` : ""], error: null };
}

/** before: the name of the stage whose text is shown in place of a failed one.  Null if there is nothing to say. */
export function messageOf(state: Readonly<AppState>, row: StageRow, before: string): Message | null {
  if (row.stale) return state.compiling ? null : old(state, row);
  if (!row.failed) return null;
  if (row.stage?.check?.status === "fail") return wrong(row, row.stage.check);
  const errors = state.outcome?.diagnostics.filter((d) => d.severity === "error") ?? [];
  if (row.stage) {
    const said = errors[0] ? ` ${errors[0].message}.` : "";
    return { kind: "partial", parts: [el("b", {}, "The kernel was refused here."), `${said} Shown is what it did before.`], error: errors[0] ?? null };
  }
  const own = errors.find((d) => d.stage === row.name) ?? null;
  return { kind: "failed", parts: [el("b", {}, `${row.name} failed. `), own ? `${own.message}.` : "", ` Shown is the IR before it, after ${before}.`], error: own };
}
