// loops: the loops of an MLIR text and the work in them, as a tree of rows.
//
//   for %i  0..8   8 rounds, parallel, tiles of 128
//     linalg.matmul                          %c[d0, d1] += %a[d0, 128·i + d2] × %b[…]
//
// Whether the rounds of a loop are independent is read from what they write: if each round writes other elements of every
// buffer from outside the loop, the loop is parallel; if all rounds add to the same ones, it is a reduction; otherwise its
// rounds are said to follow each other.
import { compactLines } from "../nisa/compact";
import { readInstruction, isAccess } from "../nisa/read";
import { kindOf, type Kind } from "../state/ranking";
import { impliedLoops, readMaps, type Maps } from "./linalg";
import { readMlir, shapeText, type MlirOp } from "./mlir";
import { Places } from "./places";

export interface Row {
  op: MlirOp;
  kind: "loop" | "block" | "op";
  /** "for %i", "linalg.matmul" */
  title: string;
  /** Of a loop: "0..1024 step 128". */
  range: string;
  /** Rounds; "" if they are not known before the run. */
  trip: string;
  /** "parallel", "reduction", "tiles of 128": of a loop. */
  kinds: string[];
  /** What an operation does, and on what. */
  text: string;
  shapes: string;
  tone: Kind;
  children: Row[];
}

interface Write {
  line: number;
  base: string;
  /** Where the buffer comes from: its definition's line. */
  from: number;
  index: string;
  /** What is written depends on what was there. */
  adds: boolean;
}

/** The kinds of operations that a picture of the loops shows; the others compute indices, make views, or hold it together. */
const SHOWN: ReadonlySet<Kind> = new Set(["matmul", "reduce", "compute", "move", "fill", "sync"]);
const LOOPS = /^(?:scf\.(?:for|forall|parallel|while)|affine\.(?:for|parallel))$/;

function plainRow(op: MlirOp, tone: Kind): Row {
  return { op, kind: "op", title: op.label, range: "", trip: "", kinds: [], text: "", shapes: "", tone, children: [] };
}

function rounds(low: string, high: string, step: string): string {
  const n = Math.max(0, Math.ceil((Number(high) - Number(low)) / Number(step)));
  return Number.isFinite(n) ? String(n) : "";
}

class Reader {
  private readonly places = new Places();
  private readonly writes: Write[] = [];
  /** Elements that are read: buffer and index. */
  private readonly reads = new Set<string>();
  private readonly maps: Maps;
  private readonly compact: readonly { text: string | null; kind: string | null }[] | null;

  constructor(
    private readonly lines: readonly string[],
    private readonly dialect: string,
    private readonly everything: boolean,
  ) {
    this.maps = readMaps(lines);
    this.compact = dialect === "nisa" ? compactLines(lines) : null;
  }

  rows(): Row[] {
    const functions = readMlir(this.lines).filter((op) => op.label !== "memref.global");
    const isOne = functions.filter((op) => op.label === "func.func").length === 1;
    return functions.flatMap((op) => {
      if (op.label === "func.func" && isOne) return this.body(op);
      return this.row(op);
    });
  }

  private body(op: MlirOp): Row[] {
    return op.body.flatMap((inner) => this.row(inner));
  }

  private row(op: MlirOp): Row[] {
    this.places.read(op);
    if (LOOPS.test(op.label)) return [this.loop(op)];
    if (op.label.startsWith("linalg.") && op.label !== "linalg.yield") return [this.linalg(op)];
    this.noteWrites(op);
    const tone = kindOf(op.label, this.dialect, op.text);
    if (op.body.length > 0) return [this.block(op)];
    if (!this.everything && !SHOWN.has(tone)) return [];
    if (this.everything && tone === "end") return [];
    return [this.compact ? this.instruction(op, tone) : this.other(op, tone)];
  }

  private block(op: MlirOp): Row {
    const name = this.compact?.[op.line - 1]?.text?.slice(2).trim() || op.text.replace(/ ?\{$/, "").slice(0, 60);
    return { ...plainRow(op, "loop"), kind: "block", title: name, children: this.body(op) };
  }

  private loop(op: MlirOp): Row {
    const { scope } = this.places;
    const one = /(%[\w$.-]+) = (\S+) to (\S+?)(?: step (\S+?))?(?: iter_args| :| \{|$)/.exec(op.text);
    for (const [, name = "", from = ""] of (/iter_args\((.*?)\)/.exec(op.text)?.[1] ?? "").matchAll(/(%[\w$.-]+) = (%[\w$.-]+)/g)) this.places.carry(name, from, op.line);
    const row: Row = { ...plainRow(op, "loop"), kind: "loop" };
    const counters: string[] = [];
    if (one) {
      const [low, high, step] = [one[2], one[3], one[4] ?? "1"].map((v) => scope.text(v ?? "")) as [string, string, string];
      counters.push(one[1] ?? "");
      row.title = `for ${one[1]}`;
      row.range = `${low}..${high}${step === "1" ? "" : ` step ${step}`}`;
      row.trip = rounds(low, high, step);
      if (step !== "1") row.kinds.push(`tiles of ${step}`);
    } else {
      const names = op.label === "scf.while" ? "" : (/^(?:[^=]*= )?[\w.]+ \(([^)]*)\)/.exec(op.text)?.[1] ?? "");
      counters.push(...[...names.matchAll(/%[\w$.-]+/g)].map((m) => m[0]));
      row.title = `${op.label.replace(/^\w+\./, "")} ${counters.join(", ")}`.trim();
      if (names !== "") row.range = /\) (?:in|=) (.*?)(?: step| shared_outs| \{|$)/.exec(op.text)?.[1]?.replace(/%[\w$.-]+/g, (n) => scope.text(n)) ?? "";
    }
    for (const counter of counters) this.places.counter(counter, op.line);
    const first = this.writes.length;
    row.children = this.body(op);
    if (op.label === "scf.forall" || op.label.endsWith(".parallel")) row.kinds.unshift("parallel");
    else if (counters[0]) row.kinds.unshift(...this.kindOfLoop(op, counters[0].slice(1), this.writes.slice(first)));
    const tile = row.kinds.some((k) => k.startsWith("tiles")) ? undefined : this.tile(op, counters[0] ?? "");
    if (tile) row.kinds.push(`tiles of ${tile}`);
    return row;
  }

  /** What a round's number is multiplied by to get an index: the size of a tile. */
  private tile(op: MlirOp, counter: string): string | undefined {
    const by = op.body.find((inner) => inner.label === "arith.muli" && inner.text.includes(`${counter}, `));
    return by && /, (%[\w$.-]+) : index/.exec(by.text)?.[1] ? this.places.scope.text(/, (%[\w$.-]+) : index/.exec(by.text)?.[1] ?? "") : undefined;
  }

  private kindOfLoop(op: MlirOp, counter: string, writes: readonly Write[]): string[] {
    const uses = new RegExp(`(?<![\\w$])${counter.replace(/[.$-]/g, "\\$&")}(?![\\w$])`);
    const outside = writes.filter((w) => w.from < op.line);
    if (outside.length === 0) return [];
    const same = outside.filter((w) => !uses.test(w.index));
    if (same.length === 0) return ["parallel"];
    return [same.every((w) => w.adds || this.reads.has(`${w.base}[${w.index}]`)) ? "reduction" : "in order"];
  }

  private write(name: string, index: readonly string[] | null, line: number, adds = false): void {
    const place = this.places.place(name, index);
    const base = this.places.root(place.base);
    this.writes.push({ line, base, from: this.places.defined.get(base) ?? 0, index: (place.index ?? []).join(", "), adds });
  }

  private noteWrites(op: MlirOp): void {
    const read = op.label === "tensor.extract_slice" ? /(%[\w$.-]+)\[([^\]]*)\]/.exec(op.text) : null;
    if (read) this.reads.add(`${this.places.root(read[1] ?? "")}[${this.scoped(read[2] ?? "").join(", ")}]`);
    const copied = /^memref\.copy %[\w$.-]+, (%[\w$.-]+)/.exec(op.text)?.[1];
    if (copied) this.write(copied, null, op.line);
    const inserted = /insert_slice %[\w$.-]+ into (%[\w$.-]+)\[([^\]]*)\]/.exec(op.text);
    if (inserted) this.write(inserted[1] ?? "", this.scoped(inserted[2] ?? ""), op.line);
    const stored = /^memref\.store %[\w$.-]+, (%[\w$.-]+)\[([^\]]*)\]/.exec(op.text);
    if (stored) this.write(stored[1] ?? "", this.scoped(stored[2] ?? ""), op.line);
    const instruction = this.compact ? readInstruction(op.text) : null;
    const target = instruction?.operands.get("dst");
    if (!instruction || !isAccess(target)) return;
    const index = (target.index ?? [target.map]).map((e) => e.replace(/%[\w$.-]+/g, (n) => this.places.scope.text(n)));
    const adds = instruction.op === "matmul" || [...instruction.operands.values()].some((o) => o !== target && isAccess(o) && o.base === target.base);
    this.write(target.base, index, op.line, adds);
  }

  private scoped(list: string): string[] {
    return list.split(", ").map((v) => this.places.scope.text(v));
  }

  private linalg(op: MlirOp): Row {
    const tone = kindOf(op.label, this.dialect, op.text);
    const implied = impliedLoops(op, this.maps, this.places);
    if (!implied) return { ...plainRow(op, tone), text: op.text.replace(/^.*?linalg\.\w+ ?/, "").slice(0, 100) };
    for (const { name, index } of implied.writes) this.write(name, index, op.line, implied.adds);
    const row = { ...plainRow(op, tone), text: implied.body, shapes: implied.shapes };
    // one loop in the other, the last around what a round does
    const inner = [{ ...row, title: "" }];
    const nest = implied.loops.reduceRight<Row[]>(
      (children, { name, extent, kind }) => [{ ...plainRow(op, "loop"), kind: "loop", title: name, range: `0..${extent}`, trip: "", kinds: kind === "" ? [] : [kind], children }],
      inner,
    );
    if (nest === inner) return row;
    return { ...row, kind: "block", text: implied.body, children: nest };
  }

  private instruction(op: MlirOp, tone: Kind): Row {
    const text = this.compact?.[op.line - 1]?.text ?? op.text;
    const shape = / {2,}(\[.*)$/.exec(text) ?? / (\[[\d×?]+ .*)$/.exec(text);
    const formula = (shape ? text.slice(0, shape.index) : text).slice(2).trim();
    const engine = text.slice(0, 1).trim();
    return { ...plainRow(op, tone), title: `${engine ? `${engine}  ` : ""}${op.label.replace(/^nisa\./, "")}`, text: formula, shapes: shape?.[1] ?? "" };
  }

  private other(op: MlirOp, tone: Kind): Row {
    const copied = /^memref\.copy (%[\w$.-]+), (%[\w$.-]+) : (.*) to /.exec(op.text);
    const text = (name: string) => this.places.text(this.places.place(name, null));
    if (copied) return { ...plainRow(op, tone), text: `${text(copied[2] ?? "")} ← ${text(copied[1] ?? "")}`, shapes: shapeText(copied[3] ?? "") };
    const made = /materialize_in_destination (%[\w$.-]+) in .* : \((.*?), /.exec(op.text);
    if (made) return { ...plainRow(op, tone), title: "materialize", text: `${op.results[0] ?? ""} ← ${text(made[1] ?? "")}`, shapes: shapeText(made[2] ?? "") };
    const inserted = /insert_slice (%[\w$.-]+) into (%[\w$.-]+)\[([^\]]*)\] .* : (.*) into /.exec(op.text);
    if (inserted) return { ...plainRow(op, tone), text: `${inserted[2] ?? ""}[${this.scoped(inserted[3] ?? "").join(", ")}] ← ${text(inserted[1] ?? "")}`, shapes: shapeText(inserted[4] ?? "") };
    const [, operands = "", type = ""] = /^(?:[^=]* = )?"?[\w.]+"? ?(.*?)(?: : (.*))?$/.exec(op.text) ?? [];
    return { ...plainRow(op, tone), text: operands.replace(/\{[^{}]*\} ?/g, "").slice(0, 90), shapes: shapeText(type.replace(/^.*(?:to|into|->) /, "")) };
  }
}

export function loopsOf(text: string, dialect: string, everything: boolean): Row[] {
  return new Reader(text.replace(/\n$/, "").split("\n"), dialect, everything).rows();
}
