// timeline: the executions of a simulated run, decoded from the artifact executions.json (docs/http-api.md).

export interface TimelineLane {
  name: string;
  engine: string;
  /** Of a program for two cores. */
  core?: number;
  /** By start, in picoseconds; transfers of a queue may overlap. */
  starts: Float64Array;
  ends: Float64Array;
  /** Index in `instructions`; -1: a barrier. */
  instr: Int32Array;
  /** Index in `tags`. */
  tag: Int32Array;
}

export interface TimelineInstruction {
  name: string;
  /** Of the engine-programs stage's text; 0: unknown. */
  line: number;
  file?: string;
  src_line?: number;
  bytes?: number;
  descriptor_bytes?: number;
  low?: boolean;
}

/** Why an execution started no earlier, and whether it is on the critical path. */
export interface TimelineTag {
  name: string;
  reason: string;
  critical?: boolean;
  half?: boolean;
}

export interface Timeline {
  totalPs: number;
  count: number;
  lanes: TimelineLane[];
  instructions: TimelineInstruction[];
  tags: TimelineTag[];
}

interface Page {
  lane: number;
  from_ps: number;
  instr: number[];
  gap: number[];
  length: number[];
  tag: number[];
}

interface Wire {
  version: number;
  total_ps: number;
  n: number;
  lanes: { name: string; engine: string; core?: number }[];
  instructions: TimelineInstruction[];
  tags: TimelineTag[];
  lengths: number[];
  pages: Page[];
}

/** Throws for another version. */
export function decodeTimeline(json: unknown): Timeline {
  const w = json as Wire;
  if (w.version !== 1) throw new Error("executions.json is of another version");
  const counts = w.lanes.map(() => 0);
  for (const p of w.pages) counts[p.lane] = (counts[p.lane] ?? 0) + p.instr.length;
  const lanes = w.lanes.map(({ name, engine, core }, i): TimelineLane => {
    const n = counts[i] ?? 0;
    return { name, engine, ...(core === undefined ? {} : { core }), starts: new Float64Array(n), ends: new Float64Array(n), instr: new Int32Array(n), tag: new Int32Array(n) };
  });
  const filled = w.lanes.map(() => 0);
  for (const p of w.pages) {
    const lane = lanes[p.lane];
    if (!lane) continue;
    let at = filled[p.lane] ?? 0;
    let end = p.from_ps;
    let instr = 0;
    for (let i = 0; i < p.instr.length; i++, at++) {
      instr += p.instr[i] ?? 0;
      const start = end + (p.gap[i] ?? 0);
      end = start + (w.lengths[p.length[i] ?? 0] ?? 0);
      lane.starts[at] = start;
      lane.ends[at] = end;
      lane.instr[at] = instr;
      lane.tag[at] = p.tag[i] ?? 0;
    }
    filled[p.lane] = at;
  }
  return { totalPs: w.total_ps, count: w.n, lanes, instructions: w.instructions, tags: w.tags };
}

/** A row of the picture: a lane, by its number, or the title of a core's lanes, which come after it. */
export type TimelineRow = { lane: number } | { title: string };

/** The rows of a timeline from the top: of two cores, those of core 0 and then those of core 1. */
export function timelineRows(lanes: readonly { core?: number }[]): TimelineRow[] {
  const cores = [...new Set(lanes.map((l) => l.core))].sort((a, b) => (a ?? 0) - (b ?? 0));
  return cores.flatMap((core) => {
    const own = lanes.flatMap((l, lane): TimelineRow[] => (l.core === core ? [{ lane }] : []));
    return core === undefined ? own : [{ title: `core ${core}` }, ...own];
  });
}

/** A lane's name among those of its core: "vector" of "core1.vector". */
export function laneName(lane: { name: string; core?: number }): string {
  return lane.core === undefined ? lane.name : lane.name.slice(`core${lane.core}.`.length);
}

/** The first of a lane's executions that starts at or after a time. */
export function firstFrom(lane: TimelineLane, ps: number): number {
  let [lo, hi] = [0, lane.starts.length];
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if ((lane.starts[mid] ?? 0) < ps) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

export interface Execution {
  lane: number;
  at: number;
}

/** The execution of a lane at a time, or the nearest within `slackPs`; null if there is none. */
export function executionAt(t: Timeline, lane: number, ps: number, slackPs: number): Execution | null {
  const l = t.lanes[lane];
  if (!l) return null;
  const next = firstFrom(l, ps);
  let best = -1;
  let distance = slackPs;
  // transfers overlap: the last that began need not be the last that is running
  for (let i = Math.max(0, next - 32); i < Math.min(l.starts.length, next + 2); i++) {
    const [start, end] = [l.starts[i] ?? 0, l.ends[i] ?? 0];
    const d = ps < start ? start - ps : ps > end ? ps - end : 0;
    if (d <= distance) [best, distance] = [i, d];
  }
  return best < 0 ? null : { lane, at: best };
}

/** All executions on the critical path, by start. */
export function criticalPath(t: Timeline): Execution[] {
  const all: Execution[] = [];
  t.lanes.forEach((l, lane) => {
    for (let at = 0; at < l.tag.length; at++) if (t.tags[l.tag[at] ?? -1]?.critical) all.push({ lane, at });
  });
  const start = (x: Execution) => t.lanes[x.lane]?.starts[x.at] ?? 0;
  return all.sort((a, b) => start(a) - start(b));
}
