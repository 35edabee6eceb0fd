// places: which elements of which buffer a value of an MLIR program is, in the counters of the loops around it.
//
//   %0 = arith.muli %i, %c128
//   %subview = memref.subview %alloc[0, %0] [128, 128] [1, 1]     %subview[d0, d1] is %alloc[d0, 128·i + d1]
//
// The last definition of a name above a line is the right one, as in nisa/scope.ts.
import { splitList } from "../nisa/read";
import { numberText, Scope } from "../nisa/scope";
import { shapeOf, type MlirOp } from "./mlir";

/** One dimension of a buffer: an offset, and the dimension of the view that runs along it, or -1. */
interface Along {
  offset: string;
  dim: number;
}

/** A value as a part of a buffer. */
interface View {
  base: string;
  index: Along[];
}

/** A longer expression is not written out. */
const EXPRESSION_MAX = 48;

export interface Place {
  base: string;
  /** By dimension of the buffer; null if it is the whole buffer, of an unknown rank. */
  index: string[] | null;
}

function listIn(text: string): string[] {
  return splitList(text) ?? [];
}

export class Places {
  readonly scope = new Scope();
  private readonly views = new Map<string, View>();
  /** The same value under another name. */
  private readonly casts = new Map<string, string>();
  /** The same memory under another name: what a loop carries, what an operation has written. */
  private readonly aliases = new Map<string, string>();
  /** By name: the line of its definition. */
  readonly defined = new Map<string, number>();

  /** Takes over what an operation says; operations come in the order of the text. */
  read(op: MlirOp): void {
    const result = op.results[0] ?? "";
    for (const name of op.results) {
      this.defined.set(name, op.line);
      this.scope.define(name);
      this.views.delete(name);
      this.casts.delete(name);
      this.aliases.delete(name);
    }
    if (op.label.startsWith("arith.")) this.arithmetic(op, result);
    else if (/\.(subview|extract_slice)$/.test(op.label)) this.slice(op, result);
    else if (/\.collapse_shape$/.test(op.label)) this.reshape(op, result, true);
    else if (/\.expand_shape$/.test(op.label)) this.reshape(op, result, false);
    else if (/\.(cast|memory_space_cast)$/.test(op.label)) this.same(result, /(%[\w$.-]+) :/.exec(op.text)?.[1]);
    else this.written(op, result);
  }

  /** The result of an operation on tensors is what it was given to write into. */
  private written(op: MlirOp, result: string): void {
    let into: string | undefined;
    if (op.label === "bufferization.materialize_in_destination") into = / in (?:restrict )?(?:writable )?(%[\w$.-]+)/.exec(op.text)?.[1];
    else if (/\.insert_slice$/.test(op.label)) into = / into (%[\w$.-]+)\[/.exec(op.text)?.[1];
    else if (op.label.startsWith("linalg.")) into = /outs\((%[\w$.-]+)/.exec(op.text)?.[1];
    if (result !== "" && into && into !== result) this.aliases.set(result, into);
  }

  /** A loop carries a value under a new name. */
  carry(name: string, from: string, line: number): void {
    this.defined.set(name, line);
    this.views.delete(name);
    this.casts.delete(name);
    this.aliases.set(name, from);
  }

  counter(name: string, line: number): void {
    this.defined.set(name, line);
    this.scope.define(name, true);
  }

  private same(result: string, from: string | undefined): void {
    if (result === "" || !from || result === from) return;
    const view = this.views.get(from);
    if (view) this.views.set(result, view);
    else this.casts.set(result, from);
  }

  private arithmetic(op: MlirOp, result: string): void {
    const constant = /= arith\.constant (.*?)(?: : ([^:]*))?$/.exec(op.text);
    if (constant) this.scope.set(result, numberText(constant[1] ?? "", constant[2] ?? ""));
    const m = /= arith\.(\w+) (%[\w$.-]+), (%[\w$.-]+)[^:]*: index$/.exec(op.text);
    if (m && this.scope.arithmetic(result, m[1] ?? "", m[2] ?? "", m[3] ?? "") && this.scope.text(result).length > EXPRESSION_MAX) this.scope.define(result);
  }

  private slice(op: MlirOp, result: string): void {
    const m = /(%[\w$.-]+)\[([^\]]*)\] \[([^\]]*)\] \[([^\]]*)\] : .* (?:to|into) (.*)$/.exec(op.text);
    if (!m) return;
    const [offsets, sizes, strides] = [listIn(m[2] ?? ""), listIn(m[3] ?? ""), listIn(m[4] ?? "")];
    const rank = shapeOf(m[5] ?? "")?.dims.length ?? offsets.length;
    let dropped = offsets.length - rank;
    let dim = 0;
    const own = offsets.map((offset, i): Along => {
      const isDropped = dropped > 0 && sizes[i] === "1";
      if (isDropped) dropped--;
      const text = this.scope.text(offset);
      return { offset: strides[i] === "1" || strides[i] === undefined ? text : `${text} by ${strides[i]}`, dim: isDropped ? -1 : dim++ };
    });
    this.views.set(result, this.within(m[1] ?? "", own, sizes));
  }

  /** A part of what may be a part of a buffer already. */
  private within(of: string, own: Along[], sizes: readonly string[]): View {
    const outer = this.views.get(of);
    if (!outer) return { base: this.casts.get(of) ?? of, index: own.map((a, i) => (sizes[i] === "1" ? { ...a, dim: -1 } : a)) };
    const index = outer.index.map((along): Along => {
      const inner = along.dim < 0 ? undefined : own[along.dim];
      if (!inner) return along;
      const offset = along.offset === "0" ? inner.offset : inner.offset === "0" ? along.offset : `${along.offset} + ${inner.offset}`;
      return { offset: offset.length > EXPRESSION_MAX ? "…" : offset, dim: sizes[along.dim] === "1" ? -1 : inner.dim };
    });
    return { base: outer.base, index };
  }

  /** Dimensions of one element come or go; any other change of shape ends what is known of the indices. */
  private reshape(op: MlirOp, result: string, collapses: boolean): void {
    const m = /(%[\w$.-]+) (\[\[.*?\]\]|\[\])(?: output_shape \[[^\]]*\])? : (.*) into (.*)$/.exec(op.text);
    if (!m) return;
    const [from, to] = [shapeOf(m[3] ?? ""), shapeOf(m[4] ?? "")];
    const view = this.views.get(m[1] ?? "");
    const groups = [...(m[2] ?? "").matchAll(/\[([\d, ]+)\]/g)].map((g) => (g[1] ?? "").split(",").map(Number));
    const wide = (collapses ? from : to)?.dims ?? [];
    const isPlain = groups.length > 0 && groups.every((g) => g.filter((d) => wide[d] !== "1").length <= 1);
    if (!view || !isPlain) {
      this.same(result, view ? undefined : m[1]);
      if (!view) return;
      this.views.set(result, { base: view.base, index: view.index.map((a) => ({ offset: a.dim < 0 ? a.offset : a.offset === "0" ? ":" : `${a.offset}..`, dim: -1 })) });
      return;
    }
    const renamed = new Map<number, number>();
    groups.forEach((g, n) => {
      const long = g.find((d) => wide[d] !== "1") ?? g[0] ?? 0;
      if (collapses) for (const d of g) renamed.set(d, wide[d] === "1" && d !== long ? -1 : n);
      else renamed.set(n, long);
    });
    this.views.set(result, { base: view.base, index: view.index.map((a) => ({ offset: a.offset, dim: a.dim < 0 ? -1 : (renamed.get(a.dim) ?? -1) })) });
  }

  /** The buffer that a name stands for. */
  root(name: string): string {
    let at = name;
    for (let n = 0; n < 64; n++) {
      const next = this.aliases.get(at) ?? this.casts.get(at) ?? this.views.get(at)?.base;
      if (next === undefined || next === at) return at;
      at = next;
    }
    return at;
  }

  /** A value with an index for each of its dimensions, as a place in its buffer. */
  place(name: string, index: readonly string[] | null): Place {
    let of = name;
    for (let n = 0; n < 64 && !this.views.has(of) && this.casts.has(of); n++) of = this.casts.get(of) as string;
    const view = this.views.get(of);
    if (!view) return { base: of, index: index ? [...index] : null };
    return {
      base: view.base,
      index: view.index.map(({ offset, dim }) => {
        const own = dim < 0 ? "" : index ? (index[dim] ?? "") : ":";
        if (own === "" || own === "0") return offset;
        if (own === ":") return offset === "0" ? ":" : `${offset}..`;
        return offset === "0" ? own : `${offset} + ${own}`;
      }),
    };
  }

  text(place: Place): string {
    return place.index && place.index.length > 0 ? `${place.base}[${place.index.join(", ")}]` : place.base;
  }
}
