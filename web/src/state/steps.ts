// steps: the rewrites inside a stage, asked for, and the texts between which each of them lies.
import { compileWhole } from "../api/client";
import { Problem } from "../api/problem";
import type { Step, StepEdit, Steps } from "../api/types";
import type { AppStore } from "./app";
import { requestOf } from "./compiler";

/** The answer for the stage with this index of a kernel, from a step on. */
export async function askSteps(store: AppStore, kernel: string, stage: number, from: number, signal: AbortSignal): Promise<Steps> {
  const req = requestOf(store.state);
  const { check: _, simulate: __, ...options } = req.options ?? {};
  req.options = { ...options, steps: String(stage), ...(from > 0 ? { steps_from: from } : {}) };
  if ((store.state.outcome?.kernels.length ?? 0) > 1) req.kernel = kernel;
  const result = await compileWhole(req, signal);
  const steps = (result.kernels.find((k) => k.name === kernel) ?? result.kernels[0])?.steps;
  if (steps) return steps;
  const error = result.diagnostics.find((d) => d.severity === "error");
  throw new Problem("ours", "no-steps", error?.message ?? "The server did not say what the steps are.");
}

/** The lines of a text after an edit. */
export function edited(lines: readonly string[], { line, removed, text }: StepEdit): string[] {
  const by = text === "" ? [] : text.replace(/\n$/, "").split("\n");
  return [...lines.slice(0, line - 1), ...by, ...lines.slice(line - 1 + removed)];
}

/** The texts before and after step `at` of an answer. */
export function textsOf(steps: Steps, at: number): [before: string[], after: string[]] {
  let before: string[] = [];
  let after = (steps.begin ?? "").replace(/\n$/, "").split("\n");
  for (const step of (steps.steps ?? []).slice(0, at + 1)) [before, after] = [after, edited(after, step.edit)];
  return [before, after];
}

export interface StepLine {
  kind: "same" | "removed" | "added";
  text: string;
  /** The line's number in its own text. */
  number: number;
  /** What differs, as ranges of code points from 0. */
  marks: readonly (readonly [number, number])[];
}

const AROUND = 2;

/** The lines of each change of a step, with some around it. */
export function linesOfStep({ diff }: Step, before: readonly string[], after: readonly string[]): StepLine[][] {
  return diff.hunks.map(({ from, to, pairs }) => {
    const words = (line: number, side: "from" | "to") => {
      const pair = pairs.find((p) => p[side] === line);
      return (pair?.[side === "from" ? "words_from" : "words_to"] ?? []).map(([a, b]) => [a - 1, b - 1] as const);
    };
    const run = (kind: StepLine["kind"], text: readonly string[], first: number, count: number): StepLine[] =>
      Array.from({ length: count }, (_, k) => first + k)
        .filter((n) => n >= 1 && n <= text.length)
        .map((n) => ({ kind, number: n, text: text[n - 1] ?? "", marks: kind === "same" ? [] : words(n, kind === "removed" ? "from" : "to") }));
    return [
      ...run("same", before, from.line - AROUND, AROUND),
      ...run("removed", before, from.line, from.count),
      ...run("added", after, to.line, to.count),
      ...run("same", after, to.line + to.count, AROUND),
    ];
  });
}
