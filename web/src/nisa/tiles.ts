// tiles: which elements of its buffers an instruction touches, in each round of the loops around it.
//
//   scf.for %i = %c0 to %c2 step %c1 {
//     %0 = arith.muli %i, %c128
//     nisa.dma_copy(dst<128| 512>=memref<128x2x512xf32> %sbuf[d0, %i, d1], src=… %arg[%0 + d0, d1])
//
//   %sbuf, round 1:   dimension 0: d0        dimension 1: 1        dimension 2: d1
//
// Names are looked up above the line: MLIR never gives a name a second meaning where the first can be used.  What is
// computed from data has no place here, which the page says.
import { bytesOf, isAccess, readInstruction, type Access, type Instruction } from "./read";
import { Scope } from "./scope";

export interface Loop {
  name: string;
  from: number;
  step: number;
  rounds: number;
}

/** Of an index: a number, plus a multiple of each tile dimension. */
interface Index {
  base(at: Round): number | null;
  by: number[];
}

/** The loops' counters. */
export type Round = ReadonlyMap<string, number>;

export interface Tile {
  /** Of the operand: "dst". */
  name: string;
  writes: boolean;
  access: Access;
  /** Of the buffer. */
  dims: number[];
  extents: number[];
  elementBytes: number;
  isOnChip: boolean;
  index: Index[];
  /** Elements that follow each other in memory; on chip, in a partition. */
  run: number;
  /** Bytes from an element to the next one, by tile dimension; null: in another partition. */
  strides: (number | null)[];
  /** The line that allocates the buffer; 0: it is an argument. */
  line: number;
  /** The first partition or bank, and the byte; null: not placed. */
  at: [number, number] | null;
  copies: number;
  /** The copy that a round uses. */
  copy(at: Round): number;
}

export interface Tiles {
  instruction: Instruction;
  loops: Loop[];
  /** Product of the loops' rounds. */
  rounds: number;
  /** False: a loop around it has as many rounds as data say. */
  isCounted: boolean;
  tiles: Tile[];
  /** Bytes of a DMA descriptor; 0: it is no transfer. */
  descriptor: number;
}

const WRITTEN = new Set(["dst", "reduce_res"]);
const DEFINITION = /^\s*(%[\w$.-]+) = (.*)$/;
const FOR = /^\s*scf\.for (?:unsigned )?(%[\w$.-]+) = (%[\w$.-]+) to (%[\w$.-]+) step (%[\w$.-]+)/;
const NAMES = /%[\w$.-]+/g;
const scope = new Scope();

interface Above {
  /** By name: the text after "=" and its line. */
  defs: Map<string, { text: string; line: number }>;
  /** The loops around the line, the outermost first, with the names of their bounds. */
  loops: { name: string; from: string; to: string; step: string }[];
  /** All regions around the line are loops, functions, programs or modules. */
  isCounted: boolean;
}

function indentOf(text: string): number {
  return text.search(/\S|$/);
}

/** What the names on a line mean, from one walk to the top. */
function readAbove(lines: readonly string[], line: number): Above {
  const above: Above = { defs: new Map(), loops: [], isCounted: true };
  const wanted = new Set((lines[line - 1] ?? "").match(NAMES));
  const want = (text: string) => (text.match(NAMES) ?? []).forEach((n) => wanted.add(n));
  let indent = indentOf(lines[line - 1] ?? "");
  for (let l = line - 1; l > 0; l--) {
    const text = lines[l - 1] ?? "";
    const opens = indentOf(text) < indent && text.endsWith("{");
    if (opens) {
      indent = indentOf(text);
      const loop = FOR.exec(text);
      if (loop) {
        const [, name = "", from = "", to = "", step = ""] = loop;
        above.loops.unshift({ name, from, to, step });
        [from, to, step].forEach((n) => wanted.add(n));
        wanted.delete(name);
      } else if (/^\s*(?:%.* = )?scf\./.test(text)) above.isCounted = false;
      continue;
    }
    const m = DEFINITION.exec(text);
    const name = m?.[1] ?? "";
    if (!m || !wanted.has(name) || above.defs.has(name)) continue;
    above.defs.set(name, { text: m[2] ?? "", line: l });
    want((m[2] ?? "").replace(/\s:\s.*$/, ""));
  }
  return above;
}

/** The value of a name in a round; null if it depends on data. */
function valueOf(above: Above, name: string, at: Round, depth = 0): number | null {
  if (/^-?\d+$/.test(name)) return Number(name);
  const counter = at.get(name);
  if (counter !== undefined) return counter;
  const text = above.defs.get(name)?.text ?? "";
  const constant = /^arith\.constant (-?\d+) : index$/.exec(text);
  if (constant) return Number(constant[1]);
  const op = /^arith\.(addi|subi|muli|divui|divsi|remui|remsi) (%[\w$.-]+), (%[\w$.-]+)/.exec(text);
  if (!op || depth > 64) return null;
  const a = valueOf(above, op[2] ?? "", at, depth + 1);
  const b = valueOf(above, op[3] ?? "", at, depth + 1);
  if (a === null || b === null) return null;
  switch (op[1]) {
    case "addi":
      return a + b;
    case "subi":
      return a - b;
    case "muli":
      return a * b;
    case "divui":
    case "divsi":
      return b === 0 ? null : Math.trunc(a / b);
    default:
      return b === 0 ? null : a % b;
  }
}

function loopsOf(above: Above): Loop[] | null {
  const none: Round = new Map();
  const loops: Loop[] = [];
  for (const { name, from, to, step } of above.loops) {
    const [a, b, by] = [from, to, step].map((n) => valueOf(above, n, none));
    if (a === undefined || b === undefined || by === undefined || a === null || b === null || by === null || by <= 0) return null;
    loops.push({ name, from: a, step: by, rounds: Math.max(Math.ceil((b - a) / by), 0) });
  }
  return loops;
}

function indexOf(above: Above, text: string, rank: number): Index | null {
  const terms = scope.terms(text);
  if (!terms) return null;
  const by = new Array<number>(rank).fill(0);
  const rest: { name: string; factor: number }[] = [];
  for (const t of terms) {
    const factor = Number(t.factor) * (t.minus ? -1 : 1);
    const d = /^d(\d+)$/.exec(t.name);
    if (d) by[Number(d[1])] = (by[Number(d[1])] ?? 0) + factor;
    else rest.push({ name: t.name, factor });
  }
  const base = (at: Round) => rest.reduce<number | null>((sum, { name, factor }) => {
    const v = valueOf(above, name, at);
    return sum === null || v === null ? null : sum + v * factor;
  }, 0);
  return { base, by };
}

/** Elements from one of a memref's dimension to the next; arguments are without gaps, too. */
export function stepsOf(dims: readonly number[]): number[] {
  const steps = new Array<number>(dims.length).fill(1);
  for (let d = dims.length - 2; d >= 0; d--) steps[d] = (steps[d + 1] ?? 1) * (dims[d + 1] ?? 1);
  return steps;
}

function tileOf(above: Above, name: string, access: Access): Tile | null {
  const dims = access.type.dims.map(Number);
  const extents = access.tile.map(Number);
  const index = access.index?.map((text) => indexOf(above, text, extents.length));
  if (!index || index.includes(null) || [...dims, ...extents].some((n) => !Number.isInteger(n))) return null;
  const elementBytes = bytesOf(access.type.dtype);
  const isOnChip = /^(sbuf|psum)$/.test(access.type.space);
  const steps = stepsOf(dims);
  const list = index as Index[];
  // in elements; on chip, of a partition
  const stride = extents.map((_, k) => list.reduce((sum, { by }, r) => sum + (isOnChip && r === 0 ? 0 : (by[k] ?? 0) * (steps[r] ?? 1)), 0));
  const isPartition = extents.map((_, k) => isOnChip && (list[0]?.by[k] ?? 0) !== 0);
  let run = 1;
  for (let k = extents.length - 1; k >= (isOnChip ? access.par : 0); k--) {
    if (extents[k] === 1) continue;
    if (stride[k] !== run) break;
    run *= extents[k] ?? 1;
  }
  let def = above.defs.get(access.base);
  const rotate = /^nisa\.rotate (%[\w$.-]+)\[(%[\w$.-]+|\d+)\]/.exec(def?.text ?? "");
  if (rotate) def = above.defs.get(rotate[1] ?? "");
  const place = /^nisa\.alloc\b.* at=\[(\d+), (\d+)\]/.exec(def?.text ?? "");
  const copies = Number(/^nisa\.alloc\b.* copies=(\d+)/.exec(def?.text ?? "")?.[1] ?? 1);
  return {
    name,
    writes: WRITTEN.has(name),
    access,
    dims,
    extents,
    elementBytes,
    isOnChip,
    index: list,
    run,
    strides: stride.map((s, k) => (isPartition[k] ? null : s * elementBytes)),
    line: def?.line ?? 0,
    at: place ? [Number(place[1]), Number(place[2])] : null,
    copies,
    copy: (at) => (rotate ? (valueOf(above, rotate[2] ?? "", at) ?? 0) % copies : 0),
  };
}

/** Bytes of each descriptor, as compiler/sim/cost_dma.c has them. */
function descriptorOf(i: Instruction, tiles: readonly Tile[]): number {
  const [dst, src] = ["dst", "src"].map((name) => tiles.find((t) => t.name === name));
  if (i.engine !== "dma" || !dst || !src) return 0;
  const elements = dst.extents.reduce((a, b) => a * b, 1);
  const chip = [dst, src].find((t) => t.isOnChip);
  const run = i.op === "dma_transpose" ? src.run : Math.min(dst.run, src.run);
  const partitions = chip ? chip.extents.slice(0, chip.access.par).reduce((a, b) => a * b, 1) : 1;
  return Math.max(Math.min(run, elements / partitions), 1) * Math.max(dst.elementBytes, src.elementBytes);
}

/** The tiles of the instruction on a line, from 1; null for a line without one. */
export function tilesOf(lines: readonly string[], line: number): Tiles | null {
  const instruction = readInstruction(lines[line - 1] ?? "");
  if (!instruction) return null;
  const above = readAbove(lines, line);
  const loops = loopsOf(above);
  const tiles = [...instruction.operands].flatMap(([name, o]) => (isAccess(o) ? (tileOf(above, name, o) ?? []) : []));
  return {
    instruction,
    loops: loops ?? [],
    rounds: (loops ?? []).reduce((n, l) => n * l.rounds, 1),
    isCounted: above.isCounted && loops !== null,
    tiles,
    descriptor: descriptorOf(instruction, tiles),
  };
}

/** The counters of the k-th round, from 0; the innermost loop is the fastest. */
export function roundAt(loops: readonly Loop[], k: number): Round {
  const at = new Map<string, number>();
  for (const l of [...loops].reverse()) {
    at.set(l.name, l.from + (l.rounds > 0 ? k % l.rounds : 0) * l.step);
    k = l.rounds > 0 ? Math.floor(k / l.rounds) : 0;
  }
  return at;
}

/** A part of a picture in elements; on chip the rows are partitions. */
export interface Rect {
  row: number;
  column: number;
  rows: number;
  columns: number;
}

/** The size of a buffer's picture: the rows are partitions, or in HBM all dimensions but the last. */
export function extentOf(t: Tile): { rows: number; columns: number } {
  const isRow = (d: number) => (t.isOnChip ? d === 0 : d < t.dims.length - 1);
  const product = (keep: (d: number) => boolean) => t.dims.reduce((n, x, d) => (keep(d) ? n * x : n), 1);
  return { rows: product(isRow), columns: product((d) => !isRow(d)) };
}

/** Rectangles of one region; more are joined to the one that covers them. */
const RECTS_MAX = 1024;

/** Where a round touches the buffer: shapes that are the same in every round, moved; null if it depends on data. */
export function regionOf(t: Tile, at: Round): Rect[] | null {
  const { columns } = extentOf(t);
  const steps = stepsOf(t.dims);
  // a row has all columns; an element's place is row * columns + column, on chip and in HBM
  let first = 0;
  for (let r = 0; r < t.dims.length; r++) {
    const base = t.index[r]?.base(at) ?? null;
    if (base === null) return null;
    first += base * (steps[r] ?? 1);
  }
  const moves = t.extents.map((n, k) => ({ n, by: t.index.reduce((sum, { by }, r) => sum + (by[k] ?? 0) * (steps[r] ?? 1), 0) }));
  return rectsOf(first, moves, columns);
}

function rectsOf(first: number, moves: readonly { n: number; by: number }[], columns: number): Rect[] {
  const block: Rect = { row: Math.floor(first / columns), column: first % columns, rows: 1, columns: 1 };
  const rest: { n: number; by: number }[] = [];
  for (const m of [...moves].filter((x) => x.n > 1 && x.by !== 0).sort((a, b) => Math.abs(a.by) - Math.abs(b.by))) {
    if (m.by === block.columns && block.rows === 1 && block.column + block.columns * m.n <= columns) block.columns *= m.n;
    else if (m.by === block.rows * columns) block.rows *= m.n;
    else rest.push(m);
  }
  const total = rest.reduce((n, m) => n * m.n, 1);
  if (total > RECTS_MAX) {
    const reach = rest.reduce((sum, m) => sum + Math.max(m.by, 0) * (m.n - 1), 0);
    const back = rest.reduce((sum, m) => sum + Math.min(m.by, 0) * (m.n - 1), 0);
    const row = Math.floor((first + back) / columns);
    const last = Math.floor((first + reach) / columns) + block.rows - 1;
    return row === last ? [{ row, column: (first + back) % columns, rows: 1, columns: reach - back + block.columns }] : [{ row, column: 0, rows: last - row + 1, columns }];
  }
  let rects = [block];
  for (const { n, by } of rest)
    rects = rects.flatMap((x) =>
      Array.from({ length: n }, (_, i) => {
        const place = x.row * columns + x.column + i * by;
        return { ...x, row: Math.floor(place / columns), column: ((place % columns) + columns) % columns };
      }),
    );
  return rects;
}
