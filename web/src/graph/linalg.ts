// linalg: the loops that an operation of the dialect linalg stands for, and what one round of them does.
//
//   linalg.matmul ins(%a, %b : …) outs(%c : …)     d0 128 parallel · d1 512 parallel · d2 64 reduction
//                                                   %c[d0, d1] += %a[d0, d2] × %b[d2, d1]
import { splitList } from "../nisa/read";
import { shapeOf, shapeText, type MlirOp } from "./mlir";
import type { Places } from "./places";

export interface ImpliedLoop {
  name: string;
  extent: string;
  kind: string;
}

export interface Implied {
  loops: ImpliedLoop[];
  /** One round: "%c[d0, d1] += %a[d0, d2] × %b[d2, d1]". */
  body: string;
  /** The shapes of the operands and of what is written. */
  shapes: string;
  /** What is written depends on what was there. */
  adds: boolean;
  /** The values that are written, with their indices. */
  writes: { name: string; index: string[] | null }[];
}

interface Operand {
  name: string;
  type: string;
}

export type Maps = ReadonlyMap<string, string>;

const MAP = /^(#[\w$.-]+) = affine_map<(.*)>$/;
const INFIX: Readonly<Record<string, string>> = { add: "+", addf: "+", addi: "+", sub: "−", subf: "−", subi: "−", mul: "×", mulf: "×", muli: "×", div: "÷", divf: "÷", divsi: "÷", divui: "÷" };
const RENAMED: Readonly<Record<string, string>> = { maximumf: "max", minimumf: "min", maxnumf: "max", minnumf: "min", maxsi: "max", minsi: "min", negf: "-", select: "select" };

/** The affine maps that the text gives names to. */
export function readMaps(lines: readonly string[]): Maps {
  const maps = new Map<string, string>();
  for (const line of lines) {
    const m = line.startsWith("#") ? MAP.exec(line) : null;
    if (m) maps.set(m[1] ?? "", m[2] ?? "");
    else if (line.startsWith("module")) break;
  }
  return maps;
}

/** "(d0, d1) -> (d0, 0)" as ["d0", "0"]. */
function resultsOf(map: string): string[] {
  return splitList(/-> \((.*)\)$/.exec(map)?.[1] ?? "")?.filter((r) => r !== "") ?? [];
}

function operandsIn(text: string, word: "ins" | "outs"): Operand[] {
  const from = text.indexOf(`${word}(`);
  if (from < 0) return [];
  let depth = 0;
  let end = from + word.length;
  for (; end < text.length; end++) {
    const c = text[end];
    if (c === "(" || c === "<" || c === "[") depth++;
    else if (c === ")" || c === "]" || (c === ">" && text[end - 1] !== "-")) depth--;
    if (depth === 0) break;
  }
  const inner = text.slice(from + word.length + 1, end);
  const colon = inner.indexOf(" : ");
  const names = splitList(inner.slice(0, colon)) ?? [];
  const types = splitList(inner.slice(colon + 3)) ?? [];
  return names.map((name, i) => ({ name, type: types[i] ?? "" }));
}

function numbersAfter(text: string, word: string): number[] {
  return (new RegExp(`${word} ?= ?\\[([\\d, ]*)\\]`).exec(text)?.[1] ?? "").split(",").filter((n) => n.trim() !== "").map(Number);
}

const dims = (n: number) => Array.from({ length: n }, (_, i) => `d${i}`);

interface Form {
  /** One list of indices for each operand, those that are read first; null: a number. */
  indices: (string[] | null)[];
  kinds: string[];
}

const PRODUCTS: Readonly<Record<string, { indices: string[]; kinds: string }>> = {
  matmul: { indices: ["02", "21", "01"], kinds: "ppr" },
  batch_matmul: { indices: ["013", "032", "012"], kinds: "pppr" },
  matvec: { indices: ["01", "1", "0"], kinds: "pr" },
  vecmat: { indices: ["1", "10", "0"], kinds: "pr" },
  dot: { indices: ["0", "0", ""], kinds: "r" },
};

function formOf(op: MlirOp, name: string, ins: readonly Operand[], outs: readonly Operand[], maps: Maps): Form | null {
  const given = /indexing_maps = \[(.*?)\](?=[,}\s])/.exec(op.text)?.[1];
  const rank = shapeOf(outs[0]?.type ?? "")?.dims.length ?? 0;
  const operands = [...ins, ...outs];
  const product = PRODUCTS[name];
  if (given !== undefined) {
    const indices = (splitList(given) ?? []).map((m) => resultsOf(maps.get(m) ?? m.replace(/^affine_map<(.*)>$/, "$1")));
    const types = /iterator_types = \[([^\]]*)\]/.exec(op.text)?.[1];
    const kinds = types !== undefined ? types.replaceAll('"', "").split(",").map((k) => k.trim()) : product ? [...product.kinds].map((k) => (k === "r" ? "reduction" : "parallel")) : [];
    return { indices, kinds: kinds.filter((k) => k !== "") };
  }
  if (product) return { indices: product.indices.map((s) => [...s].map((c) => `d${c}`)), kinds: [...product.kinds].map((k) => (k === "r" ? "reduction" : "parallel")) };
  if (name === "transpose") {
    const order = numbersAfter(op.text, "permutation");
    const from = order.map((_, i) => `d${order.indexOf(i)}`);
    return { indices: [from, dims(order.length)], kinds: order.map(() => "parallel") };
  }
  if (name === "broadcast") {
    const added = numbersAfter(op.text, "dimensions");
    return { indices: [dims(rank).filter((_, i) => !added.includes(i)), dims(rank)], kinds: dims(rank).map(() => "parallel") };
  }
  if (name === "reduce") {
    const gone = numbersAfter(op.text, "dimensions");
    const all = dims(shapeOf(ins[0]?.type ?? "")?.dims.length ?? 0);
    return { indices: [all, all.filter((_, i) => !gone.includes(i))], kinds: all.map((_, i) => (gone.includes(i) ? "reduction" : "parallel")) };
  }
  const isElementwise = operands.every((o) => !shapeOf(o.type) || shapeOf(o.type)?.dims.length === rank);
  if (!isElementwise || outs.length !== 1) return null;
  return { indices: operands.map((o) => (shapeOf(o.type) ? dims(rank) : null)), kinds: dims(rank).map(() => "parallel") };
}

function call(name: string, args: readonly string[]): string {
  const infix = INFIX[name];
  const inner = (a: string) => (infix !== "+" && / [+−×÷] /.test(a.replace(/\[[^\]]*\]/g, "")) ? `(${a})` : a);
  if (infix && args.length === 2) return `${inner(args[0] ?? "")} ${infix} ${inner(args[1] ?? "")}`;
  return `${RENAMED[name] ?? name}(${args.join(", ")})`;
}

const FORMULA_MAX = 160;

/** What the region of a linalg.generic computes, with its arguments replaced. */
function regionText(op: MlirOp, args: readonly string[], places: Places): string {
  const texts = new Map<string, string>();
  op.blockArguments.forEach((name, i) => texts.set(name, args[i] ?? name));
  const textOf = (name: string) => texts.get(name) ?? places.scope.text(name);
  for (const inner of op.body) {
    const names = [...inner.text.replace(/^[^=]* = /, "").split(" : ")[0]!.matchAll(/%[\w$.-]+(?:#\d+)?/g)].map((m) => m[0]);
    if (inner.label === "linalg.yield") return names.map(textOf).join(", ");
    const text = inner.label === "linalg.index" ? `d${/index (\d+)/.exec(inner.text)?.[1] ?? ""}` : inner.label === "arith.constant" ? inner.text.replace(/^.*constant /, "").replace(/ : .*$/, "") : call(inner.label.replace(/^\w+\./, ""), names.map(textOf));
    for (const result of inner.results) texts.set(result, text.length > FORMULA_MAX ? `${inner.label.replace(/^\w+\./, "")}(…)` : text);
  }
  return "";
}

/** Null for an operation whose loops are not known. */
export function impliedLoops(op: MlirOp, maps: Maps, places: Places): Implied | null {
  const name = op.label.replace(/^linalg\./, "");
  const [ins, outs] = [operandsIn(op.text, "ins"), operandsIn(op.text, "outs")];
  const form = outs.length > 0 ? formOf(op, name, ins, outs, maps) : null;
  if (!form || form.indices.length !== ins.length + outs.length) return null;
  const operands = [...ins, ...outs];
  const extents = new Map<string, string>();
  operands.forEach((o, i) => shapeOf(o.type)?.dims.forEach((d, k) => {
    const index = form.indices[i]?.[k];
    if (index !== undefined && /^d\d+$/.test(index) && !extents.has(index)) extents.set(index, d);
  }));
  const texts = operands.map((o, i) => (shapeOf(o.type) ? places.text(places.place(o.name, form.indices[i] ?? null)) : places.scope.text(o.name)));
  // an operation on tensors makes new values of those that it is given to write into
  const outTexts = outs.map((_, i) => (op.results[i] ? places.text({ base: op.results[i], index: form.indices[ins.length + i] ?? null }) : (texts[ins.length + i] ?? "")));
  const inTexts = texts.slice(0, ins.length);
  const target = outTexts.join(", ");
  let body: string;
  if (op.body.length > 0) body = `${target} ← ${regionText(op, texts, places)}`;
  else if (PRODUCTS[name]) body = `${target} ${op.results.length > 0 ? `← ${texts[ins.length]} +` : "+="} ${inTexts.join(" × ")}`;
  else if (name === "fill" || name === "copy" || name === "transpose" || name === "broadcast") body = `${target} ← ${inTexts.join(", ")}`;
  else body = `${target} ← ${call(name, inTexts)}`;
  return {
    loops: form.kinds.map((kind, i) => ({ name: `d${i}`, extent: extents.get(`d${i}`) ?? "?", kind })),
    body,
    shapes: `${ins.map((o) => shapeText(o.type)).join(", ")} → ${outs.map((o) => shapeText(o.type)).join(", ")}`,
    adds: form.kinds.includes("reduction"),
    writes: outs.map((o, i) => ({ name: o.name, index: form.indices[ins.length + i] ?? null })),
  };
}
