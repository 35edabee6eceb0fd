// value: which value of which stage the page asks for, and the request for it.
import { compileWhole } from "../api/client";
import { Problem } from "../api/problem";
import type { SliceQuery, Value, ValueQuery } from "../api/types";
import { linesOfStage } from "../editor/rows";
import { tokenizeHlo } from "../highlight/hlo";
import { tokenizeMlir } from "../highlight/mlir";
import { isAccess, readInstruction } from "../nisa/read";
import type { AppStore } from "./app";
import { requestOf } from "./compiler";
import type { Shown } from "./view";

/** One value that a line has: what its operation computes or writes, or one that it uses. */
export interface Choice {
  /** What a button says. */
  label: string;
  /** As printed, such as "%9#1"; null: what the operation computes or writes. */
  name: string | null;
  /** Of an instruction of NISA, such as "src". */
  operand: string | null;
}

/** Names on a line beyond this are not offered: a function's line may have thousands. */
const NAMES_MAX = 24;

/** "%9:2" defines %9#0 and %9#1. */
function expanded(name: string): string[] {
  const many = /^(.*):(\d+)$/.exec(name);
  return many ? Array.from({ length: Math.min(Number(many[2]), NAMES_MAX) }, (_, i) => `${many[1]}#${i}`) : [name];
}

/** The values of a line of a stage's text, what it computes or writes first. */
export function choicesOf({ stage }: Shown, line: number): Choice[] {
  const text = linesOfStage(stage)[line - 1] ?? "";
  const instruction = readInstruction(text);
  if (instruction) {
    const operands = [...instruction.operands].flatMap(([operand, o]) => (isAccess(o) ? [{ label: `${operand} ${o.base}`, name: null, operand }] : []));
    return operands.sort((a, b) => Number(b.operand === "dst") - Number(a.operand === "dst"));
  }
  const tokens = (stage.dialect === "hlo" ? tokenizeHlo : tokenizeMlir)(text).filter((t) => t.cls === "value");
  const names = [...new Set(tokens.flatMap((t) => expanded(text.slice(t.from, t.to))))].slice(0, NAMES_MAX);
  const defines = /^\s*(?:ROOT\s+)?%?[\w.$:,#% -]+ = /.test(text);
  const hands = names.length > 0 && /^\s*(?:(?:func\.)?return|\w+\.yield)\b/.test(text); // on to a caller or a loop, what it names
  const own: Choice[] = defines || hands ? [] : [{ label: "what it writes", name: null, operand: null }];
  return [...own, ...names.map((name) => ({ label: name, name, operand: null }))];
}

/** Asks for one value.  An abort stays an AbortError; every other failure is a Problem. */
export async function askValue(store: AppStore, kernel: string, query: ValueQuery, signal: AbortSignal): Promise<Value> {
  const req = requestOf(store.state);
  const { check: _, simulate: __, patterns: ___, ...options } = req.options ?? {};
  req.options = { ...options, value: query };
  if ((store.state.outcome?.kernels.length ?? 0) > 1) req.kernel = kernel;
  const result = await compileWhole(req, signal);
  const value = result.kernels.find((k) => k.name === kernel)?.value ?? result.kernels[0]?.value;
  if (value) return value;
  const error = result.diagnostics.find((d) => d.severity === "error");
  throw new Problem("ours", "no-value", error?.message ?? "The server did not say what the value is.");
}

/** Elements of a block's side: the server sends at most its square. */
const BLOCK = 64;

/** The block of elements that has the element `at`. */
export function blockAt(at: readonly number[], shape: readonly number[], rowDim: number, columnDim: number): SliceQuery[] {
  return shape.map((n, d) => {
    const i = at[d] ?? 0;
    const start = d === rowDim || d === columnDim ? i - (i % BLOCK) : i;
    return { start, stop: Math.min(d === rowDim || d === columnDim ? start + BLOCK : i + 1, Math.max(n, 1)) };
  });
}
