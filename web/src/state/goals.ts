// goals: judges the conditions of a lesson's task on the page's result, as compiler/lesson/conditions.c does.
import type { LessonCondition, Stage } from "../api/types";
import { isVendor, kernelOf, stageKeys, type KernelOutcome, type Outcome } from "./outcome";

export interface Judged {
  holds: boolean;
  /** What there is instead; "" if that says nothing. */
  found: string;
}

export function stageOf(kernel: KernelOutcome | null, key: string): Stage | null {
  if (!kernel) return null;
  if (key === "last") return kernel.stages.findLast((s) => !isVendor(s)) ?? null;
  const at = stageKeys(kernel.stages.map((s) => s.name)).indexOf(key.replace(/:1$/, ""));
  return kernel.stages[at] ?? null;
}

function countWords(text: string, word: string): number {
  const isPart = (c: string | undefined) => c !== undefined && /[\w.]/.test(c);
  let n = 0;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) if (!isPart(text[at - 1]) && !isPart(text[at + word.length])) n++;
  return n;
}

function countLines(text: string): number {
  return text.split("\n").length - (text.endsWith("\n") || text === "" ? 1 : 0);
}

function compare(x: number, { relation, number = 0 }: LessonCondition): boolean {
  switch (relation) {
    case "<":
      return x < number;
    case "<=":
      return x <= number;
    case "==":
      return x === number;
    case "!=":
      return x !== number;
    case ">=":
      return x >= number;
    default:
      return x > number;
  }
}

function figureOf({ profile, simulation }: KernelOutcome, what: string): number | null {
  if (what === "time_us") return profile?.total_us ?? null;
  if (what === "sbuf" || what === "psum") return profile?.memory[what].peak ?? null;
  const n = simulation?.[what as "instructions" | "matmuls" | "dma_bytes"];
  return typeof n === "number" ? n : null;
}

function judgeRun(c: LessonCondition, kernel: KernelOutcome | null): Judged {
  const lane = kernel?.profile?.lanes.find((l) => l.name === c.what);
  const n = c.kind === "figure" ? kernel && figureOf(kernel, c.what ?? "") : kernel?.profile ? 100 * (lane?.share ?? 0) : null;
  return n === null || n === undefined ? { holds: false, found: "it did not run" } : { holds: compare(n, c), found: String(Number(n.toPrecision(4))) };
}

function judgeCheck(c: LessonCondition, kernel: KernelOutcome | null, outcome: Outcome): Judged {
  const failed = kernel?.stages.find((s) => s.check?.status === "fail");
  const passed = kernel?.stages.some((s) => s.check?.status === "pass") === true;
  if (c.kind === "differs") return { holds: failed !== undefined && failed === stageOf(kernel, c.stage ?? ""), found: failed?.name ?? "all equal" };
  return { holds: !failed && passed && outcome.status === "ok", found: failed ? `${failed.name} differs` : passed ? "" : "nothing was checked" };
}

function judgeText(c: LessonCondition, stage: Stage | null, text: string): Judged {
  const what = c.what ?? "";
  switch (c.kind) {
    case "count":
    case "lines": {
      const n = c.kind === "count" ? countWords(text, what) : countLines(text);
      return { holds: compare(n, c), found: String(n) };
    }
    case "has":
      return { holds: text.includes(what), found: "" };
    case "lacks":
      return { holds: !text.includes(what), found: "" };
    case "changed":
      return { holds: stage?.changed === true, found: "" };
    case "unchanged":
      return { holds: stage?.changed === false, found: "" };
    default:
      return { holds: stage?.remarks?.some((r) => r.rule === what) === true, found: "" };
  }
}

/** source: the kernel that the outcome is of. */
export function judge(c: LessonCondition, outcome: Outcome, source: string): Judged {
  const kernel = kernelOf(outcome, null);
  switch (c.kind) {
    case "refused": {
      const errors = outcome.diagnostics.filter((d) => d.severity === "error").map((d) => d.code);
      return { holds: errors.includes(c.what ?? ""), found: errors[0] ?? "it is not refused" };
    }
    case "figure":
    case "share":
      return judgeRun(c, kernel);
    case "equals":
    case "differs":
      return judgeCheck(c, kernel, outcome);
    default: {
      if (c.stage === "kernel") return judgeText(c, null, source);
      const stage = stageOf(kernel, c.stage ?? "");
      return stage ? judgeText(c, stage, stage.text) : { holds: false, found: "the kernel does not reach that stage" };
    }
  }
}

const UNITS: Record<string, [string, string]> = {
  time_us: ["simulated time", "µs"],
  instructions: ["instructions executed", ""],
  matmuls: ["matmuls executed", ""],
  dma_bytes: ["bytes moved by DMA", ""],
  sbuf: ["bytes in a partition of SBUF", ""],
  psum: ["bytes in a partition of PSUM", ""],
};

/** A condition in words, for the page. */
export function inWords(c: LessonCondition): string {
  const than = `${{ "<": "fewer than", "<=": "at most", "==": "exactly", "!=": "not", ">=": "at least", ">": "more than" }[c.relation ?? "=="]} ${(c.number ?? 0).toLocaleString("en")}`;
  switch (c.kind) {
    case "count":
      return `${than} ${c.what} in ${c.stage}`;
    case "lines":
      return `${than} lines in ${c.stage}`;
    case "figure": {
      const [name, unit] = UNITS[c.what ?? ""] ?? [c.what ?? "", ""];
      return `${name}: ${than.replace("fewer", "less")}${unit === "" ? "" : ` ${unit}`}`;
    }
    case "share":
      return `${c.what} is busy for ${than.replace("fewer", "less")} % of the time`;
    case "has":
      return c.stage === "kernel" ? `the kernel still has “${c.what}”` : `${c.stage} has “${c.what}”`;
    case "lacks":
      return c.stage === "kernel" ? `the kernel is written without “${c.what}”` : `${c.stage} has no “${c.what}”`;
    case "changed":
      return `${c.stage} changes the program`;
    case "unchanged":
      return `${c.stage} changes nothing`;
    case "decided":
      return `${c.stage} decides ${c.what}`;
    case "equals":
      return "the result equals NumPy’s";
    case "differs":
      return `${c.stage} is the first stage that differs from NumPy`;
    default:
      return `the kernel is refused: ${c.what}`;
  }
}
