// shrink: the search for a small kernel with the fault of the one on the page.  The server's reducer proposes smaller forms of a
// request (options.shrink); each is compiled as any other kernel is, and the first with the same fault is kept.  The driver of the
// terminal does the same: compiler/driver/shrink.h says when two faults are the same.
import { compile, compileWhole } from "../api/client";
import { Problem } from "../api/problem";
import type { CompileRequest, Diagnostic, ShrinkCandidate } from "../api/types";
import { shrinkEditorName } from "./scope";

export interface Fault {
  code: string;
  /** "cse:2"; null: the kernel was refused while it was traced. */
  stage: string | null;
  /** Of a fault without a stage, its message without numbers. */
  kind: string;
}

/** What the search has done so far. */
export interface Progress {
  tried: number;
  kept: number;
  lines: number;
  /** What the candidate changed, and whether it has the fault. */
  what: string;
  isKept: boolean;
}

export interface Small {
  request: CompileRequest;
  fault: Fault;
  tried: number;
  kept: number;
  stopped: string;
}

export interface Budget {
  ms: number;
  candidates: number;
}

function nameStage(names: readonly string[], name: string): string {
  const nth = names.filter((n) => n === name).length + (names.at(-1) === name ? 0 : 1);
  return nth > 1 ? `${name}:${nth}` : name;
}

function faultIn(d: Diagnostic, stages: readonly string[]): Fault {
  const stage = d.stage === undefined ? null : nameStage(stages, d.stage);
  return { code: d.code, stage, kind: stage === null ? d.message.replace(/[\d.]/g, "") : "" };
}

function isSame(a: Fault, b: Fault): boolean {
  return a.code === b.code && a.stage === b.stage && a.kind === b.kind;
}

/** The first error of a compile; null: there is none. */
async function compiled(request: CompileRequest, signal: AbortSignal): Promise<Fault | null> {
  const found: Fault[] = [];
  let stages: string[] = [];
  await compile(request, shrinkEditorName, signal, (frame) => {
    if (frame.frame === "kernel") stages = [];
    if (frame.frame === "stage") stages.push(frame.stage.name);
    if (frame.frame === "diagnostic" && frame.diagnostic.severity === "error") found.push(faultIn(frame.diagnostic, stages));
  });
  return found[0] ?? null;
}

async function ask(request: CompileRequest, from: number, signal: AbortSignal): Promise<{ candidates: readonly ShrinkCandidate[]; next?: number }> {
  const { stop_after: _, ...options } = request.options ?? {};
  const result = await compileWhole({ ...request, options: { ...options, shrink: { from } } }, signal);
  return result.shrink ?? { candidates: [] };
}

/** What comes after the faulty stage is of no interest. */
function upTo(request: CompileRequest, { stage }: Fault): CompileRequest {
  return stage === null || request.options?.simulate === true ? request : { ...request, options: { ...request.options, stop_after: stage } };
}

export function linesOf(request: CompileRequest): number {
  return [request.source ?? "", ...(request.files ?? []).map((f) => f.source)].reduce((n, text) => n + text.trimEnd().split("\n").length, 0);
}

class Search {
  private tried = 0;
  private kept = 0;
  private readonly until: number;

  constructor(
    private request: CompileRequest,
    private readonly fault: Fault,
    private readonly budget: Budget,
    private readonly said: (p: Progress) => void,
    private readonly signal: AbortSignal,
  ) {
    this.until = performance.now() + budget.ms;
  }

  private isSpent(): boolean {
    return performance.now() >= this.until || this.tried >= this.budget.candidates;
  }

  /** Compiles the candidates of an answer; the one that was kept, or null. */
  private async firstWithFault(candidates: readonly ShrinkCandidate[]): Promise<ShrinkCandidate | null> {
    for (const c of candidates) {
      if (this.isSpent()) return null;
      const request = { ...this.request, ...c.request };
      const fault = await compiled(upTo(request, this.fault), this.signal);
      const isKept = fault !== null && isSame(fault, this.fault);
      if (isKept) this.request = request;
      this.tried += 1;
      this.kept += isKept ? 1 : 0;
      this.said({ tried: this.tried, kept: this.kept, lines: linesOf(this.request), what: c.what, isKept });
      if (isKept) return c;
    }
    return null;
  }

  /** Rounds over all changes, until one keeps nothing. */
  async run(): Promise<Small> {
    let from = 0;
    let keeps = false;
    while (!this.isSpent()) {
      const { candidates, next } = await ask(this.request, from, this.signal);
      const kept = await this.firstWithFault(candidates);
      keeps ||= kept !== null;
      if (kept === null && next === undefined && !keeps) break;
      if (kept === null && next === undefined) keeps = false;
      from = kept?.then ?? next ?? 0;
    }
    const limit = this.budget.candidates === 0 ? "you ended it" : this.tried >= this.budget.candidates ? "the limit of candidates" : "the time is up";
    const stopped = this.isSpent() ? limit : "nothing smaller has the fault";
    return { request: this.request, fault: this.fault, tried: this.tried, kept: this.kept, stopped };
  }
}

/** Searches within the budget.  An abort stays an AbortError; every other failure is a Problem. */
export async function shrink(request: CompileRequest, budget: Budget, said: (p: Progress) => void, signal: AbortSignal): Promise<Small> {
  const fault = await compiled(request, signal);
  if (!fault) throw new Problem("request", "no-fault", "Nothing is wrong with the kernel now.");
  return new Search(request, fault, budget, said, signal).run();
}
