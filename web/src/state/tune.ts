// tune: the server's search for knobs that make the kernel faster on the simulated machine.
import { compile } from "../api/client";
import { Problem } from "../api/problem";
import type { Diagnostic, Tune, TuneBudget, TunePoint } from "../api/types";
import type { AppState } from "./app";
import { requestOf } from "./compiler";
import { tuneEditorName } from "./scope";

/** The result of a search: its points are those that none beats in time and SBUF, the fastest first. */
export type Tuned = Tune & { start_us: number; points: TunePoint[] };

function isResult(t: Tune): t is Tuned {
  return t.done === true && t.points !== undefined && t.start_us !== undefined;
}

/** Searches, and passes each candidate to `tried` when its time is known; of several kernels the shown one is tuned.  An
 * abort stays an AbortError; every other failure is a Problem, also that the kernel is refused. */
export async function askTune(state: Readonly<AppState>, budget: TuneBudget, tried: (t: Tune) => void, signal: AbortSignal): Promise<Tuned> {
  const results: Tuned[] = [];
  const errors: Diagnostic[] = [];
  await compile({ ...requestOf(state), options: { tune: budget } }, tuneEditorName, signal, (frame) => {
    if (frame.frame === "diagnostic" && frame.diagnostic.severity === "error") errors.push(frame.diagnostic);
    if (frame.frame !== "tune") return;
    if (isResult(frame.tune)) results.push(frame.tune);
    else tried(frame.tune);
  });
  const result = results.find((r) => r.kernel === state.kernelName) ?? results[0];
  if (result) return result;
  throw new Problem("request", errors[0]?.code ?? "no-tuning", errors[0]?.message ?? "The server did not send a result.");
}
