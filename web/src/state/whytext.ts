// whytext: the chain of decisions that led to an operation of a stage, as one text: that of `nkx why` (compiler/driver/why.c).
import type { Remark, Rule, Stage } from "../api/types";
import { stageKeys, type KernelOutcome } from "./outcome";

const SHOWN_MAX = 120; // bytes of a line of IR
const PLACES_MAX = 4;

type Rules = ReadonlyMap<string, Rule> | null;

function cut(text: string): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= SHOWN_MAX) return text;
  let end = SHOWN_MAX;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${new TextDecoder().decode(bytes.subarray(0, end))}…`;
}

/** The chain's operations in each stage up to the last. */
function follow(kernel: KernelOutcome, last: number, op: number): Set<number>[] {
  const chain: Set<number>[] = [];
  chain[last] = new Set([op]);
  for (let s = last; s > 0; s--) {
    const from = kernel.stages[s]?.from ?? {};
    chain[s - 1] = new Set([...(chain[s] ?? [])].flatMap((id) => from[id] ?? []));
  }
  return chain;
}

/** The text of the first line of the stage that is in the chain. */
function firstText(stage: Stage | undefined, ops: ReadonlySet<number>): string {
  const at = stage?.lines.findIndex((l) => l.op !== undefined && ops.has(l.op)) ?? -1;
  return at < 0 ? "" : (stage?.text.split("\n")[at] ?? "").trimStart();
}

function tellRemark(r: Remark, rules: Rules): string[] {
  const rule = rules?.get(r.rule ?? "");
  const forced = rule?.forced ?? r.forced;
  return [
    `    * ${r.text}`,
    ...(rule ? [`      Rule ${rule.name}: ${rule.says}`, `      Because: ${rule.because}`] : []),
    ...(forced !== undefined ? [`      No other choice: ${forced}`] : []),
    ...(r.cost !== undefined ? [`      This: ${r.cost}`] : []),
    ...(r.limits ?? []).map((l) => `      Limit: ${l.name}: ${l.used} of ${l.available} ${l.unit}`),
    ...(r.rejected ?? []).map((x) => `      Instead ${x.choice}: ${x.cost !== undefined ? `${x.cost}; ` : ""}${x.reason}`),
    ...(rule ? [`      ${rule.knob.startsWith("No knob") ? "" : "Knob: "}${rule.knob}`] : []),
  ];
}

function placesOf(kernel: KernelOutcome, stage: Stage, line: number): string {
  const ranges = (kernel.map.linksOf(stage).places[line] ?? []).flatMap((p) => kernel.map.ranges[p[0] ?? -1] ?? []);
  if (ranges.length === 0) return "no place of the source: the compiler made it";
  const shown = ranges.slice(0, PLACES_MAX).map((r) => `${r.file}:${r.line}:${r.col}`);
  return `from ${shown.join(", ")}${ranges.length > PLACES_MAX ? `, and ${ranges.length - PLACES_MAX} more` : ""}`;
}

/** Null if the operation is on no line of the stage. */
export function whyText(kernel: KernelOutcome, last: number, op: number, rules: Rules): string | null {
  const stage = kernel.stages[last];
  const line = stage?.lines.findIndex((l) => l.op === op) ?? -1;
  if (!stage || line < 0) return null;
  const chain = follow(kernel, last, op);
  const texts = chain.map((ops, s) => firstText(kernel.stages[s], ops));
  const first = Math.max(0, chain.findIndex((ops) => ops.size > 0));
  const key = stageKeys(kernel.stages.map((s) => s.name))[last] ?? stage.name;
  const out = [`line ${line + 1} of ${key}: ${cut(texts[last] ?? "")}`, placesOf(kernel, stage, line), ""];
  let decisions = 0;
  for (let s = first; s <= last; s++) {
    const [now, ops, before] = [kernel.stages[s], chain[s] ?? new Set<number>(), chain[s - 1]];
    const about = (now?.remarks ?? []).filter((r) => (r.op !== undefined ? ops.has(r.op) : r.from !== undefined && before?.has(r.from) === true));
    decisions += about.length;
    if (s !== first && s !== last && texts[s] === texts[s - 1] && ops.size === before?.size && about.length === 0) continue;
    out.push(`${String(s).padStart(3)} ${now?.name ?? ""}${ops.size > 1 ? `: ${ops.size} operations, the first of them` : ""}`, `      ${cut(texts[s] ?? "")}`, ...about.flatMap((r) => tellRemark(r, rules)));
  }
  if (first > 0) out.push(`It begins in stage ${first}: the pass made it, and nothing in the stages before led to it.`);
  if (decisions === 0) out.push("No pass had a choice about it.");
  return `${out.join("\n")}\n`;
}
