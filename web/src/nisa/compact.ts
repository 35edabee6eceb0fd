// compact: a NISA stage's text as short lines, one for each operation.  editor/lineview.ts folds and numbers them.
//
// Lines that only make the others readable (constants, allocations, releases, index arithmetic) have a kind: neighbours
// of these kinds become one row.  Index arithmetic and rotations are part of the loop that they stand in, because the
// places where they are used say what they are.
import { memoryName, shapeText } from "./access";
import { constantText, ENGINES, instructionText } from "./instruction";
import { bytesOf, memType, readInstruction, splitList } from "./read";
import { Scope } from "./scope";

export type Kind = "constant" | "allocation" | "release" | "view" | "index" | "rotation";

export interface CompactLine {
  /** With the engine's letter in the first column; null: nothing of the line is shown. */
  text: string | null;
  /** Of the indentation, from 0. */
  depth: number;
  /** Set for lines that are folded with their neighbours. */
  kind: Kind | null;
  /** The line has no row of its own: it belongs to the row above or below it. */
  joins: "above" | "below" | null;
  /** Bytes of an allocation, and the memory: what a folded row adds up. */
  bytes: number;
  memory: string;
}

/** Shapes begin in this column if the formula leaves room. */
const SHAPE_COLUMN = 36;

type Piece = Partial<CompactLine> & { engine?: string; shape?: string };

const HIDDEN: Piece = { text: null };

function allocation(name: string, rest: string, scope: Scope): Piece | null {
  const m = /^(.*?) ?: (memref<.*>)$/.exec(rest);
  const type = m ? memType(m[2] ?? "") : null;
  if (!m || !type) return null;
  const copies = /copies=(\d+)/.exec(m[1] ?? "")?.[1];
  const place = /(?:at|address)=\[([^\]]*)\]/.exec(m[1] ?? "")?.[1];
  const n = type.dims.reduce((product, d) => product * Number(d), bytesOf(type.dtype));
  scope.define(name);
  const memory = memoryName(type.space);
  const at = place === undefined ? "" : ` at ${place}`;
  return {
    text: `${name} in ${memory}${at}${copies ? ` × ${copies} copies` : ""}`,
    shape: `[${shapeText(type.dims, type.dtype)}]`,
    kind: "allocation",
    bytes: Number.isFinite(n) ? n * Number(copies ?? 1) : 0,
    memory,
  };
}

function program(name: string, rest: string): Piece | null {
  if (name === "program") {
    const engine = /^(\w+) \{$/.exec(rest)?.[1];
    const title = engine && { gpsimd: "GpSimd", dma: "DMA" }[engine];
    return engine ? { text: `${title ?? engine[0]?.toUpperCase() + engine.slice(1)} engine`, engine: ENGINES[engine] ?? "" } : null;
  }
  if (name === "core") {
    const number = /^(\d+) \{$/.exec(rest)?.[1];
    return number ? { text: `Core ${number}` } : null;
  }
  const m = /^(\w+) on (\w+) \{$/.exec(rest);
  return m ? { text: `DMA queue ${m[1]}, started by ${m[2]}`, engine: "D" } : null;
}

function sync(name: string, rest: string, scope: Scope): Piece | null {
  if (name === "dma_trigger") return { text: `▶ start ${rest}` };
  if (name === "barrier") return { text: "═ barrier: all engines and queues meet" };
  if (name === "core_barrier") return { text: "═ core barrier: both cores meet" };
  const m = /^(\w+) >= ([^<>]*)$/.exec(rest);
  const terms = m ? scope.terms(m[2] ?? "") : null;
  return m && terms ? { text: `‖ wait ${m[1]} ≥ ${scope.sum(terms) || "0"}` } : null;
}

function rotation(result: string, rest: string, scope: Scope): Piece | null {
  const m = /^(%[\w$.-]+)\[(%[\w$.-]+)\] : /.exec(rest);
  if (!m) return null;
  scope.set(result, `${scope.text(m[1] ?? "")}{${scope.text(m[2] ?? "")}}`);
  return { text: `${result} is ${scope.text(result)}`, kind: "rotation" };
}

function nisa(line: string, scope: Scope): Piece | null {
  const i = readInstruction(line);
  if (i) return instructionText(i, scope);
  const m = /^\s*(?:(%[\w$.-]+) = )?nisa\.(\w+) ?(.*)$/.exec(line);
  if (!m) return null;
  const [, result = "", name = "", rest = ""] = m;
  if (name === "alloc") return allocation(result, rest, scope);
  if (name === "release") return { text: `release ${/^(%\S+) : /.exec(rest)?.[1] ?? rest}`, kind: "release" };
  if (name === "program" || name === "queue" || name === "core") return program(name, rest);
  if (name === "rotate") return rotation(result, rest, scope);
  return sync(name, rest, scope);
}

function constant(result: string, rest: string, scope: Scope): Piece {
  const m = /^(.*) : ([^:]*)$/.exec(rest);
  const text = /^(true|false)$/.test(rest) ? rest : constantText(m?.[1] ?? rest, m?.[2] ?? "");
  scope.set(result, text);
  return { text: `${result} = ${text}`, kind: "constant" };
}

function arith(result: string, op: string, rest: string, scope: Scope): Piece | null {
  if (op === "constant") return constant(result, rest, scope);
  const m = /^(%[\w$.-]+), (%[\w$.-]+) : index$/.exec(rest);
  if (m && scope.arithmetic(result, op, m[1] ?? "", m[2] ?? "")) return { text: `${result} = ${scope.text(result)}`, kind: "index" };
  if (result !== "") scope.define(result);
  return null;
}

function rounds(low: string, high: string, step: string): string {
  const n = Math.max(0, Math.ceil((Number(high) - Number(low)) / Number(step)));
  return Number.isFinite(n) ? ` (${n} ${n === 1 ? "round" : "rounds"})` : "";
}

function loop(rest: string, scope: Scope): Piece | null {
  const m = /^(%[\w$.-]+) = (%\S+) to (%\S+) step (%\S+)(?: : \w+)? \{$/.exec(rest);
  if (!m) return null;
  const [low, high, step] = [m[2], m[3], m[4]].map((v) => scope.text(v ?? "")) as [string, string, string];
  scope.define(m[1] ?? "", true);
  const by = step === "1" ? "" : ` step ${step}`;
  return { text: `for ${scope.text(m[1] ?? "")} in ${low}..${high}${by}${rounds(low, high, step)}` };
}

function control(op: string, rest: string, scope: Scope): Piece | null {
  if (op === "for") return loop(rest, scope);
  if (op === "if") return /^%\S+ \{$/.test(rest) ? { text: `if ${rest.slice(0, -2)}` } : null;
  if (op === "while") return rest === ": () -> () {" ? { text: "while" } : null;
  if (op === "condition") return { text: `go on if ${/^\((%[\w$.-]+)\)/.exec(rest)?.[1] ?? rest}` };
  return null;
}

/** "%arg0, %arg1 [128×64 f32]": arguments of one type that stand together share it. */
function argumentsText(list: string): string | null {
  const args = splitList(list)?.map((a) => /^(%[\w$.-]+): (\S.*?)(?: \{.*\})?$/.exec(a));
  if (!args || args.includes(null)) return null;
  const shown = args.map((m) => {
    const type = memType(m?.[2] ?? "");
    return { name: m?.[1] ?? "", type: type ? `[${shapeText(type.dims, type.dtype)}]` : (m?.[2] ?? "") };
  });
  return shown.map((a, i) => (shown[i + 1]?.type === a.type ? a.name : `${a.name} ${a.type}`)).join(", ");
}

function func(line: string): Piece | null {
  const m = /^\s*func\.func (?:private |public )?@([\w$.-]+)\((.*?)\)(?: -> (.*?))?(?: attributes \{.*\})? \{$/.exec(line);
  const args = m ? argumentsText(m[2] ?? "") : null;
  if (!m || args === null) return null;
  const results = splitList((m[3] ?? "").replace(/^\((.*)\)$/, "$1"))?.map((t) => memType(t));
  const out = results?.map((t) => (t ? `[${shapeText(t.dims, t.dtype)}]` : "…")).join(", ");
  return { text: `${m[1]}(${args})${out ? ` → ${out}` : ""}` };
}

function memref(result: string, op: string, rest: string): Piece | null {
  if (op === "global") {
    const m = /@([\w$.-]+) : (memref<[^=]*>)(?: = |$)/.exec(rest);
    const type = m ? memType(m[2] ?? "") : null;
    return m && type ? { text: `@${m[1]}, a constant in ${memoryName(type.space) || "HBM"}`, shape: `[${shapeText(type.dims, type.dtype)}]`, kind: "constant" } : null;
  }
  if (op === "get_global") return { text: `${result} is ${/^(@[\w$.-]+)/.exec(rest)?.[1] ?? rest}`, kind: "view" };
  const base = /^(%[\w$.-]+)/.exec(rest)?.[1];
  const to = /(?:into|to) (memref<.*>)$/.exec(rest)?.[1];
  const type = to ? memType(to) : null;
  const verb = { collapse_shape: "reshaped", expand_shape: "reshaped", cast: "as", reinterpret_cast: "as" }[op];
  return base && type && verb ? { text: `${result} is ${base} ${verb}`, shape: `[${shapeText(type.dims, type.dtype)}]`, kind: "view" } : null;
}

function other(line: string, scope: Scope): Piece | null {
  const text = line.trim();
  if (text === "}" || text === "" || text.startsWith("// nisa text")) return HIDDEN;
  if (text === "} else {") return { text: "else" };
  if (text === "} do {") return { text: "do" };
  if (text === "scf.yield") return HIDDEN;
  if (text.startsWith("func.func ")) return func(line);
  const module = /^module attributes \{nisa\.target = #nisa\.target<"?(\w+)"?>\} \{$/.exec(text);
  if (module) return { text: null, joins: "below" };
  const back = /^return (.*) : /.exec(text);
  if (back) return { text: `return ${back[1]}` };
  const m = /^(?:(%[\w$.-]+) = )?(arith|scf|memref)\.(\w+) ?(.*)$/.exec(text);
  if (!m) return null;
  const [, result = "", dialect, op = "", rest = ""] = m;
  if (dialect === "arith") return arith(result, op, rest, scope);
  return dialect === "scf" ? control(op, rest, scope) : memref(result, op, rest);
}

function laidOut(piece: Piece, depth: number): string | null {
  if (piece.text === null || piece.text === undefined) return null;
  const text = `${piece.engine || " "} ${"  ".repeat(depth)}${piece.text}`;
  return piece.shape ? `${text.padEnd(SHAPE_COLUMN)} ${piece.shape}` : text;
}

/** The compact form of each line of a stage's text, in order.  A line of an unknown form is kept as it is. */
export function compactLines(lines: readonly string[]): CompactLine[] {
  const scope = new Scope();
  let inHead = false; // the lines since the last loop's were index arithmetic and rotations
  return lines.map((line) => {
    const lead = line.length - line.trimStart().length;
    const depth = Math.max(0, (lead >> 1) - 2);
    const piece = (line.includes("nisa.", lead) ? nisa(line, scope) : null) ?? other(line, scope) ?? { text: line.trim() };
    const kind = piece.kind ?? null;
    const joins = inHead && (kind === "index" || kind === "rotation") ? "above" : (piece.joins ?? null);
    const opens = piece.text?.startsWith("for ") === true && line.trimStart().startsWith("scf.for");
    inHead = opens || joins === "above";
    return { text: laidOut(piece, depth), depth, kind, joins, bytes: piece.bytes ?? 0, memory: piece.memory ?? "" };
  });
}

function amount(bytes: number): string {
  const units: [number, string][] = [
    [1 << 30, "GiB"],
    [1 << 20, "MiB"],
    [1 << 10, "KiB"],
  ];
  const [size, unit] = units.find(([n]) => bytes >= n) ?? [1, "bytes"];
  const n = bytes / size;
  return `${n >= 100 || Number.isInteger(n) ? Math.round(n) : n.toFixed(1)} ${unit}`;
}

const NOUNS: Readonly<Record<Kind, [string, string]>> = {
  allocation: ["allocation", "allocations"],
  constant: ["constant", "constants"],
  release: ["release", "releases"],
  view: ["view", "views"],
  index: ["index", "indices"],
  rotation: ["rotation", "rotations"],
};

/** "12 allocations, 840 KiB SBUF · 3 constants" */
export function foldText(members: readonly CompactLine[]): string {
  const parts: string[] = [];
  for (const kind of Object.keys(NOUNS) as Kind[]) {
    const own = members.filter((m) => m.kind === kind);
    if (own.length === 0) continue;
    const sums = new Map<string, number>();
    for (const m of own) if (m.bytes > 0) sums.set(m.memory, (sums.get(m.memory) ?? 0) + m.bytes);
    const sizes = [...sums].map(([memory, bytes]) => `, ${amount(bytes)} ${memory}`).join("");
    parts.push(`${own.length} ${NOUNS[kind][own.length === 1 ? 0 : 1]}${sizes}`);
  }
  return parts.join(" · ");
}
