// pairs: two results side by side: which stages have a partner, which differ, and in what.
import { diffArrays, diffWordsWithSpace } from "diff";
import type { Profile, Simulation, Stage, StageDiff, WordRange } from "../api/types";
import { opCount, stageKeys, type KernelOutcome } from "./outcome";
import { time } from "./units";

export interface StagePair {
  key: string;
  a: Stage | null;
  b: Stage | null;
  /** same: but for the names of values and the target's name. */
  state: "same" | "differs" | "only a" | "only b";
}

const normals = new WeakMap<Stage, string>();

/** The text with values named in the order in which they appear, and without the target's name. */
function normal(stage: Stage): string {
  let text = normals.get(stage);
  if (text === undefined) {
    const names = new Map<string, string>();
    text = stage.text.replace(/%[\w.$-]+/g, (name) => {
      let to = names.get(name);
      if (to === undefined) names.set(name, (to = `%${names.size}`));
      return to;
    });
    text = text.replace(/#nisa\.target<\w+>/g, "#nisa.target");
    normals.set(stage, text);
  }
  return text;
}

function isSame(a: Stage, b: Stage): boolean {
  return a.text === b.text || (a.lines.length === b.lines.length && normal(a) === normal(b));
}

/** In the order of B; stages that only A has stand after their predecessor. */
export function pairStages(a: KernelOutcome, b: KernelOutcome): StagePair[] {
  const keysA = stageKeys(a.stages.map((s) => s.name));
  const keysB = stageKeys(b.stages.map((s) => s.name));
  const rows: StagePair[] = [];
  let next = 0;
  const onlyA = (end: number) => {
    for (; next < end; next++) {
      const key = keysA[next] ?? "";
      if (!keysB.includes(key)) rows.push({ key, a: a.stages[next] ?? null, b: null, state: "only a" });
    }
  };
  b.stages.forEach((stage, i) => {
    const key = keysB[i] ?? stage.name;
    const at = keysA.indexOf(key);
    if (at >= 0) {
      onlyA(at);
      next = Math.max(next, at + 1);
    }
    const other = at >= 0 ? (a.stages[at] ?? null) : null;
    rows.push({ key, a: other, b: stage, state: other ? (isSame(other, stage) ? "same" : "differs") : "only b" });
  });
  onlyA(a.stages.length);
  return rows;
}

export interface CountPair {
  name: string;
  a: number;
  b: number;
}

/** Kinds of operations whose number differs, the largest difference first. */
export function countsThatDiffer(a: Stage, b: Stage): CountPair[] {
  const names = new Set([...Object.keys(a.op_counts), ...Object.keys(b.op_counts)]);
  const all = [...names].map((name) => ({ name, a: a.op_counts[name] ?? 0, b: b.op_counts[name] ?? 0 }));
  return all.filter((c) => c.a !== c.b).sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a) || (x.name < y.name ? -1 : 1));
}

/** What differs, in a few words. */
export function difference(pair: StagePair): string {
  if (pair.state === "only a") return "B has no such stage";
  if (pair.state === "only b") return "A has no such stage";
  if (pair.state === "same" || !pair.a || !pair.b) return "";
  const counts = countsThatDiffer(pair.a, pair.b);
  if (counts.length === 0) return "shapes, attributes or order";
  const few = counts.slice(0, 2).map((c) => `${c.name.replace(/^[a-z_]+\./, "")} ${c.a} → ${c.b}`);
  return few.join(", ") + (counts.length > 2 ? `, ${counts.length - 2} more` : "");
}

/** A figure of both results; `less`: whether less is better. */
export interface Figure {
  name: string;
  a: number;
  b: number;
  unit: "" | "µs" | "bytes" | "KiB";
}

function lastNisa(kernel: KernelOutcome): Stage | null {
  return [...kernel.stages].reverse().find((s) => s.name === "linalg-to-nisa") ?? null;
}

function timed(name: string, pick: (p: Profile) => number | undefined, a: Profile, b: Profile, unit: Figure["unit"]): Figure[] {
  const [x, y] = [pick(a), pick(b)];
  return x === undefined || y === undefined || (x === 0 && y === 0) ? [] : [{ name, a: x, b: y, unit }];
}

/** The figures that a kernel engineer compares; those of the simulated run only if both have one. */
export function figures(a: KernelOutcome, b: KernelOutcome): Figure[] {
  const list: Figure[] = [];
  const [pa, pb] = [a.profile, b.profile];
  if (pa && pb) {
    list.push(...timed("time", (p) => p.total_us, pa, pb, "µs"));
    const lanes = new Set([...pa.lanes, ...pb.lanes].map((l) => l.name));
    const busy = (p: Profile, name: string) => p.lanes.find((l) => l.name === name)?.busy_us ?? 0;
    for (const name of lanes) list.push(...timed(`${name} busy`, (p) => busy(p, name), pa, pb, "µs"));
    list.push(...timed("executions", (p) => p.executions, pa, pb, ""));
    list.push(...timed("SBUF at its peak", (p) => p.memory.sbuf.peak / 1024, pa, pb, "KiB"));
    list.push(...timed("PSUM at its peak", (p) => p.memory.psum.peak / 1024, pa, pb, "KiB"));
  }
  const moved = (s: Simulation | null) => s?.dma_bytes;
  const [ma, mb] = [moved(a.simulation), moved(b.simulation)];
  if (ma !== undefined && mb !== undefined) list.push({ name: "moved by DMA", a: ma, b: mb, unit: "bytes" });
  const [na, nb] = [lastNisa(a), lastNisa(b)];
  if (na && nb) {
    list.push({ name: "operations of NISA", a: opCount(na), b: opCount(nb), unit: "" });
    const kinds = new Set([...Object.keys(na.op_counts), ...Object.keys(nb.op_counts)]);
    for (const name of [...kinds].sort()) {
      if (!name.startsWith("nisa.") || name === "nisa.alloc" || name === "nisa.release") continue;
      list.push({ name: name.slice(5), a: na.op_counts[name] ?? 0, b: nb.op_counts[name] ?? 0, unit: "" });
    }
  }
  return list;
}

/** The sentence above the comparison. */
export function verdict(a: KernelOutcome, b: KernelOutcome, rows: readonly StagePair[], targets: { a: string; b: string }): string {
  const different = rows.filter((r) => r.state !== "same");
  if (different.length === 0) {
    const all = `all ${rows.length} stages are the same`;
    if (targets.a === targets.b) return `Identical: ${all}`;
    const times = a.profile && b.profile ? `; ${time(a.profile.total_us)} on ${targets.a}, ${time(b.profile.total_us)} on ${targets.b}` : "";
    return `Identical for ${targets.a} and ${targets.b}: ${all}${times}`;
  }
  const first = different[0] as StagePair;
  const stages = `${different.length} of ${rows.length} stages differ, from ${first.key} on`;
  if (!a.profile || !b.profile) return stages;
  const [ta, tb] = [a.profile.total_us, b.profile.total_us];
  const ratio = Math.max(ta, tb) / Math.max(Math.min(ta, tb), 1e-9);
  if (ratio < 1.005) return `Equally fast (${time(ta)}); ${stages}`;
  return `B is ${ratio.toFixed(ratio < 10 ? 2 : 0)}× ${tb < ta ? "faster" : "slower"}: ${time(tb)} instead of ${time(ta)}`;
}

/** What the time differs by most, by what the critical path is spent on; "" without profiles or a difference. */
export function cause(a: KernelOutcome, b: KernelOutcome): string {
  if (!a.profile || !b.profile) return "";
  const [wa, wb] = [a.profile.path.waits_us, b.profile.path.waits_us];
  const all = [...new Set([...Object.keys(wa), ...Object.keys(wb)])].map((name) => ({ name, by: (wb[name] ?? 0) - (wa[name] ?? 0) }));
  const total = b.profile.total_us - a.profile.total_us;
  const most = all.filter((x) => Math.sign(x.by) === Math.sign(total)).sort((x, y) => Math.abs(y.by) - Math.abs(x.by))[0];
  if (!most || Math.abs(most.by) < 0.05) return "";
  return `${time(Math.abs(most.by))} ${most.by < 0 ? "less" : "more"} of the critical path is ${most.name}`;
}

const MAX_EDITS = 20000;

export function words(a: string, b: string): { from: WordRange[]; to: WordRange[] } {
  const from: WordRange[] = [];
  const to: WordRange[] = [];
  let [x, y] = [1, 1]; // columns count from 1
  // columns count code points, as the server's do
  const length = (s: string) => [...s].length;
  for (const part of diffWordsWithSpace(a, b)) {
    const n = length(part.value);
    if (part.removed) from.push([x, x + n]);
    if (part.added) to.push([y, y + n]);
    if (!part.added) x += n;
    if (!part.removed) y += n;
  }
  return { from, to };
}

/** The difference of two texts by lines, for texts that the server does not hold side by side. */
export function localDiff(a: readonly string[], b: readonly string[]): StageDiff {
  const diff: StageDiff = { lines_from: a.length, lines_to: b.length, changed: 0, removed: 0, added: 0, hunks: [] };
  const parts = diffArrays([...a], [...b], { maxEditLength: MAX_EDITS }) ?? [
    { value: [...a], removed: true, added: false, count: a.length },
    { value: [...b], removed: false, added: true, count: b.length },
  ];
  let [x, y] = [1, 1];
  for (let i = 0; i < parts.length; ) {
    let [nx, ny] = [0, 0];
    while (i < parts.length && (parts[i]?.removed || parts[i]?.added)) {
      const part = parts[i++];
      if (part?.removed) nx += part.value.length;
      else ny += part?.value.length ?? 0;
    }
    if (nx + ny > 0) {
      const pairs = nx === ny ? Array.from({ length: nx }, (_, k) => pairOf(x + k, y + k)) : [];
      diff.hunks.push({ from: { line: x, count: nx }, to: { line: y, count: ny }, pairs });
      if (pairs.length > 0) diff.changed += nx;
      else [diff.removed, diff.added] = [diff.removed + nx, diff.added + ny];
      [x, y] = [x + nx, y + ny];
    } else {
      const n = parts[i++]?.value.length ?? 0;
      [x, y] = [x + n, y + n];
    }
  }
  return diff;

  function pairOf(from: number, to: number) {
    const w = words(a[from - 1] ?? "", b[to - 1] ?? "");
    return { from, to, words_from: w.from, words_to: w.to };
  }
}
