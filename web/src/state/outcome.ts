// outcome: the gathered frames of one compilation, and the rows of the stage list made from them.
//
// While a compilation runs, rows that it has not reached yet are the previous outcome's, marked stale.  After it has ended
// early, the rows after its last stage are absent.  If it reached only a part of its trace, the previous outcome stays,
// marked stale, so that a half-typed word does not empty the page.
import type { Base, WholeFrame } from "../api/delta";
import type { Diagnostic, PipelineName, Profile, Result, RunStage, Simulation, Stage, StageDescription, TensorInfo } from "../api/types";
import { SourceMap, Sources } from "./sourcemap";

/** The stages of each pipeline. */
export type Pipelines = Record<PipelineName, StageDescription[]>;

export interface KernelOutcome {
  name: string;
  pipeline: PipelineName;
  inputs: TensorInfo[];
  outputs: TensorInfo[];
  stages: Stage[];
  map: SourceMap;
  /** Of the run on the simulated machine, if it was asked for. */
  simulation: Simulation | null;
  profile: Profile | null;
}

export interface Outcome {
  /** The compiled texts by file, the main one first, which the ranges refer to. */
  texts: ReadonlyMap<string, string>;
  key: string;
  /** The stored link whose frozen result this is. */
  snippet: string | null;
  /** The revision of that link; 0 without one. */
  revision: number;
  target: string;
  kernels: KernelOutcome[];
  /** What the stages' sources mean; grows with the frames. */
  sources: Sources;
  diagnostics: Diagnostic[];
  status: "running" | "ok" | "error" | "cut";
  /** The place in the server's queue, from 1; 0 once it is compiled. */
  queued: number;
  timeUs: number;
  roundTripMs: number;
  /** The server had compiled it before. */
  isCached?: boolean;
}

export function newOutcome(texts: ReadonlyMap<string, string>): Outcome {
  return {
    texts,
    key: "",
    snippet: null,
    revision: 0,
    target: "",
    kernels: [],
    sources: new Sources(),
    diagnostics: [],
    status: "running",
    queued: 0,
    timeUs: 0,
    roundTripMs: 0,
  };
}

function withKernel(outcome: Outcome, at: number, change: Partial<KernelOutcome>): Outcome {
  const kernel = outcome.kernels[at];
  if (!kernel) return outcome;
  const kernels = outcome.kernels.slice();
  kernels[at] = { ...kernel, ...change };
  return { ...outcome, kernels };
}

/** The outcome with one more frame: a new object, so that watchers notice the change. */
export function applyFrame(outcome: Outcome, frame: WholeFrame): Outcome {
  switch (frame.frame) {
    case "queued":
      return { ...outcome, queued: frame.position };
    case "start":
      return { ...outcome, queued: 0, key: frame.key, target: frame.target };
    case "kernel": {
      const kernels = outcome.kernels.slice();
      const { name, pipeline, inputs, outputs } = frame;
      kernels[frame.kernel] = { name, pipeline, inputs, outputs, stages: [], map: new SourceMap([...outcome.texts.keys()], outcome.sources), simulation: null, profile: null };
      return { ...outcome, kernels };
    }
    case "sources":
      outcome.sources.add(frame);
      return outcome;
    case "stage": {
      const kernel = outcome.kernels[frame.kernel];
      if (!kernel) return outcome;
      const kernels = outcome.kernels.slice();
      // most passes change nothing: their stages share one text, which is megabytes long for a large kernel
      const before = kernel.stages.at(-1);
      if (before && before.text === frame.stage.text) frame.stage.text = before.text;
      kernels[frame.kernel] = { ...kernel, stages: [...kernel.stages, frame.stage] };
      kernel.map.addStage(frame.stage);
      return { ...outcome, kernels };
    }
    case "simulation":
      return withKernel(outcome, frame.kernel, { simulation: frame.simulation });
    case "profile":
      return withKernel(outcome, frame.kernel, { profile: frame.profile });
    case "diagnostic":
      return { ...outcome, diagnostics: [...outcome.diagnostics, frame.diagnostic] };
    case "end":
      return { ...outcome, status: frame.status, timeUs: frame.time_us };
    default:
      return outcome; // frames of a newer server
  }
}

/** What a next compile may refer to; null if the outcome is not complete, or came from a stored link and not from a
 * compile. */
export function baseOf(outcome: Outcome | null): Base | null {
  if (!outcome || outcome.snippet !== null || outcome.key === "" || (outcome.status !== "ok" && outcome.status !== "error")) return null;
  const { key, timeUs, kernels } = outcome;
  return { run: `${key}.${timeUs}`, stage: (kernel, index) => kernels[kernel]?.stages[index] };
}

const VENDOR_NKI = "vendor-nki";

/** True for the kernel as NKI that the vendor's compiler printed: it stands after our stages, and is made from the first of them. */
export function isVendor(stage: Pick<Stage, "name"> | null | undefined): boolean {
  return stage?.name === VENDOR_NKI;
}

/** The outcome with that stage, which a run brought; an earlier one of the kernel is replaced. */
export function withVendorStage(outcome: Outcome, kernelName: string | null, { stage, ...table }: RunStage): Outcome {
  const kernel = kernelOf(outcome, kernelName);
  if (!kernel) return outcome;
  const offset = outcome.sources.append(table);
  const lines = stage.lines.map((line) => (line.src === undefined ? line : { ...line, src: line.src + offset }));
  const moved = { ...stage, lines };
  kernel.map.addStage(moved);
  return withKernel(outcome, outcome.kernels.indexOf(kernel), { stages: [...kernel.stages.filter((s) => !isVendor(s)), moved] });
}

/** The outcome of a whole result, as a snippet has it. */
export function frozenOutcome(texts: ReadonlyMap<string, string>, result: Result, snippet: string, revision: number): Outcome {
  const sources = new Sources();
  sources.add(result);
  const kernels = result.kernels.map(({ name, pipeline, inputs, outputs, stages, simulation, profile }) => {
    const map = new SourceMap([...texts.keys()], sources);
    for (const stage of stages) map.addStage(stage);
    return { name, pipeline: pipeline ?? "hlo", inputs, outputs, stages, map, simulation: simulation ?? null, profile: profile ?? null };
  });
  const { key, target, diagnostics, status, time_us: timeUs } = result;
  return { texts, key, snippet, revision, target, kernels, sources, diagnostics, status, queued: 0, timeUs, roundTripMs: 0 };
}

export interface StageRow {
  key: string;
  index: number;
  name: string;
  phase: string;
  dialect: string;
  /** Absent for a failed stage. */
  stage: Stage | null;
  kernel: KernelOutcome;
  failed: boolean;
  stale: boolean;
}

/** The name of the file with a stage's text. */
export function fileName(row: Pick<StageRow, "index" | "name" | "dialect">): string {
  return `${String(row.index).padStart(2, "0")}-${row.name}.${row.dialect === "hlo" ? "hlo" : row.dialect === "nki" ? "py" : "mlir"}`;
}

/** "cse", and "cse:2" for the second of that name. */
export function stageKeys(names: readonly string[]): string[] {
  const seen = new Map<string, number>();
  return names.map((name) => {
    const n = (seen.get(name) ?? 0) + 1;
    seen.set(name, n);
    return n === 1 ? name : `${name}:${n}`;
  });
}

export function kernelOf(outcome: Outcome | null, name: string | null): KernelOutcome | null {
  if (!outcome) return null;
  return outcome.kernels.find((k) => k.name === name) ?? outcome.kernels[0] ?? null;
}

function rowOf(kernel: KernelOutcome, stage: Stage, key: string, stale: boolean): StageRow {
  const { index, name, phase, dialect } = stage;
  return { key, index, name, phase, dialect, stage, kernel, failed: stage.partial === true || stage.check?.status === "fail", stale };
}

/** The first diagnostic that names a stage the kernel did not reach. */
function failedStage(outcome: Outcome, kernel: KernelOutcome, pipelines: Pipelines): StageDescription | null {
  const added = kernel.stages.filter((s) => s.by_hand === "put in").length;
  const next = pipelines[kernel.pipeline][kernel.stages.length - added];
  if (!next || outcome.status === "running") return null;
  const at = outcome.kernels.indexOf(kernel);
  const hit = outcome.diagnostics.some(
    (d) => d.severity === "error" && d.stage === next.name && (d.kernel === undefined || d.kernel === at),
  );
  if (hit) return next;
  // a pass that the user put in
  const name = outcome.diagnostics.find((d) => d.severity === "error" && d.stage !== undefined && (d.kernel === undefined || d.kernel === at))?.stage;
  const last = kernel.stages.at(-1);
  const isPutIn = name !== undefined && last !== undefined && !pipelines[kernel.pipeline].slice(0, kernel.stages.length - added).some((s) => s.name === name);
  return isPutIn ? { index: kernel.stages.length, name, pass: name, phase: last.phase, dialect: last.dialect, summary: "" } : null;
}

export function stageRows(
  outcome: Outcome | null,
  previous: Outcome | null,
  kernelName: string | null,
  pipelines: Pipelines,
): StageRow[] {
  const kernel = kernelOf(outcome, kernelName);
  const fresh = kernel?.stages ?? [];
  const names = fresh.map((s) => s.name);
  const keys = stageKeys(names);
  const rows = kernel ? fresh.map((s, i) => rowOf(kernel, s, keys[i] ?? s.name, false)) : [];
  if (outcome && outcome.status === "ok") return rows;
  // while a stage's text is being changed, the stages after it stay, marked stale, as for a half-typed source
  const last = rows.at(-1);
  const isBeingChanged = last !== undefined && outcome?.diagnostics.some((d) => d.severity === "error" && d.range?.file === fileName(last)) === true;
  if (outcome && kernel && outcome.status !== "running" && rows.length > 0 && !fresh[0]?.partial && !isBeingChanged) {
    const failed = failedStage(outcome, kernel, pipelines);
    if (failed) {
      const key = stageKeys([...names, failed.name]).at(-1) ?? failed.name;
      const { name, phase, dialect } = failed;
      rows.push({ key, index: rows.length, name, phase, dialect, stage: null, kernel, failed: true, stale: false });
    }
    return rows;
  }
  const old = kernelOf(previous, kernelName);
  if (old) {
    const oldKeys = stageKeys(old.stages.map((s) => s.name));
    old.stages.slice(rows.length).forEach((s, i) => {
      const key = oldKeys[rows.length] ?? `${s.name}:${i}`;
      rows.push(rowOf(old, s, key, true));
    });
  }
  return rows;
}

export function opCount(stage: Stage): number {
  let n = 0;
  for (const count of Object.values(stage.op_counts)) n += count;
  return n;
}

/** The last row of our own stages. */
export function lastRow(rows: readonly StageRow[]): StageRow | undefined {
  return rows.findLast((r) => !isVendor(r));
}

export interface OpDelta {
  added: number;
  removed: number;
}

/** By kind of operation, compared with the previous stage if that has the same dialect. */
export function opDelta(stage: Stage, before: Stage | undefined): OpDelta | null {
  if (!before || before.dialect !== stage.dialect) return null;
  let added = 0;
  let removed = 0;
  for (const name of new Set([...Object.keys(stage.op_counts), ...Object.keys(before.op_counts)])) {
    const d = (stage.op_counts[name] ?? 0) - (before.op_counts[name] ?? 0);
    if (d > 0) added += d;
    else removed -= d;
  }
  return { added, removed };
}

/** The text of a stage that the user changed. */
const STAGE_FILE = /^\d\d-.+\.(hlo|mlir)$/;

const OUR_FAULT = new Set(["internal", "worker-died", "ir-invalid", "hlo-invalid"]);
const LIMIT = new Set([
  "time-limit",
  "memory-limit",
  "output-limit",
  "too-many-operations",
  "too-many-kernels",
  "source-too-large",
  "nesting-too-deep",
  "busy",
  "superseded",
]);

/** The cause of a diagnostic: users must not search their kernel for our mistakes.  Before the first stage, a program that is
 * not valid is the user's own HLO or MLIR, and so is a stage's text that the user changed. */
export function blame(d: Diagnostic): "kernel" | "limit" | "ours" {
  if ((d.code === "ir-invalid" || d.code === "hlo-invalid") && d.range && (d.stage === undefined || STAGE_FILE.test(d.range.file))) return "kernel";
  if (OUR_FAULT.has(d.code)) return "ours";
  return LIMIT.has(d.code) ? "limit" : "kernel";
}
