// instruction: one NISA instruction as a formula, with its engine and the shape of what it writes.
//
//   V  %sbuf ← %sbuf_3 + %sbuf_0          [128×512 f32]
//   T  %psum += %sbuf_1ᵀ @ %sbuf_0        [128×512 f32]
//   T  %psum ← transpose %sbuf_1 by %sbuf_0  [128×128 f32]
//   D  %sbuf_2[:, i] ← copy %arg1[128·j..]  [128×512 f32] HBM→SBUF
//
// An attribute that is not part of the formula and does not have its usual value is written at the end, so that two
// instructions that do different things never look the same.
import { memoryName, operandText, shapeText } from "./access";
import { isAccess, type Access, type Instruction, type Operand } from "./read";
import { numberText, type Scope } from "./scope";

export const ENGINES: Readonly<Record<string, string>> = {
  tensor: "T",
  vector: "V",
  scalar: "S",
  gpsimd: "G",
  dma: "D",
  sync: "Y",
};

export interface Formula {
  engine: string;
  text: string;
  /** "[128×512 f32] HBM→SBUF ↑" */
  shape: string;
}

const INFIX: Readonly<Record<string, string>> = {
  add: "+",
  subtract: "-",
  multiply: "*",
  divide: "/",
  pow: "**",
  is_eq: "==",
  is_ne: "!=",
  is_gt: ">",
  is_ge: ">=",
  is_lt: "<",
  is_le: "<=",
  logical_and: "and",
  logical_or: "or",
  logical_xor: "xor",
  bitwise_and: "&",
  bitwise_or: "|",
  bitwise_xor: "^",
  shift_left: "<<",
  shift_right_arith: ">>",
  shift_right_logical: ">>>",
};

const REDUCTIONS: Readonly<Record<string, string>> = { add: "sum", multiply: "product", bitwise_and: "all bits of", bitwise_or: "any bits of" };

/** Attributes whose usual value goes without saying. */
const USUAL: Readonly<Record<string, string>> = {
  is_transpose: "false",
  perf_opt: "none_",
  psum_zero_region: "size2048",
  negated: "false",
  num_r_dim: "1",
  reverse_operands: "none",
  reverse_pred: "false",
};

/** Joins two operands; parentheses around what is already a formula. */
function binary(op: string, a: string, b: string): string {
  const infix = INFIX[op];
  const inner = (x: string) => (/^[^\s([]+(?:\[[^\]]*\]|\(.*\))?$/.test(x) ? x : `(${x})`);
  return infix ? `${inner(a)} ${infix} ${inner(b)}` : `${op}(${a}, ${b})`;
}

class Printer {
  private readonly said = new Set<string>();

  constructor(
    private readonly i: Instruction,
    private readonly scope: Scope,
  ) {}

  operand(name: string): string {
    return operandText(this.i.operands.get(name), this.scope);
  }

  attr(name: string): string {
    this.said.add(name);
    return this.i.attrs.get(name) ?? "";
  }

  has(name: string): boolean {
    return this.i.operands.has(name);
  }

  /** Attributes that the formula does not express. */
  rest(): string {
    let out = "";
    for (const [name, value] of this.i.attrs)
      if (!this.said.has(name) && USUAL[name] !== value) out += value === "true" ? ` ${name}` : ` ${name}=${value}`;
    return out;
  }

  value(): string {
    switch (this.i.op) {
      case "dma_copy":
      case "tensor_copy":
        return `copy ${this.operand("src")}`;
      case "dma_transpose":
        if (this.i.attrs.get("permutation") === "[1, 0]") this.attr("permutation");
        return `transpose ${this.operand("src")}`;
      case "dma_copy_indirect":
        this.attr("src_indirect_max_index");
        return `gather ${this.operand("src")} at ${this.operand("src_index")}`;
      case "transpose":
        return `transpose ${this.operand("src")}`;
      case "gather":
        return `${this.operand("src")} at ${this.operand("src_index")}`;
      case "dma_scatter":
        this.attr("dst_indirect_max_index");
        return `scatter ${this.operand("src")} at ${this.operand("dst_index")}`;
      case "dma_compute":
        return binary(this.attr("op"), this.operand("src"), this.operand("other"));
      case "tensor_copy_predicated":
        return `${this.operand("src")} where ${this.attr("reverse_pred") === "true" ? "not " : ""}${this.operand("predicate")}`;
      case "tensor_tensor_arith":
        return binary(this.attr("op"), this.operand("lhs"), this.operand("rhs"));
      case "tensor_tensor_power":
        return binary("pow", this.operand("lhs"), this.operand("rhs"));
      case "tensor_scalar_arith":
      case "scalar_tensor_tensor":
        return this.tensorScalar();
      case "tensor_reduce_arith":
        return this.reduction(this.attr("op"), "");
      case "cross_lane_reduce_arith":
        return this.reduction(this.attr("reduce_op"), " over partitions");
      case "activation":
        return this.activation();
      case "reciprocal":
        return `1 / ${this.operand("src")}`;
      case "memset":
        return this.operand("value");
      case "iota":
        return `iota from ${this.operand("offset")}`;
      case "register_load":
        return `load ${this.operand("src")}`;
      case "register_store":
        return this.operand("value");
      default:
        return this.call();
    }
  }

  private call(): string {
    const inputs = [...this.i.operands.keys()].filter((name) => name !== "dst").map((name) => this.operand(name));
    return `${this.i.op}(${inputs.join(", ")})`;
  }

  private tensorScalar(): string {
    const reversed = this.attr("reverse_operands");
    const step = (acc: string, n: "0" | "1", which: string) => {
      const x = this.operand(`operand${n}`);
      const left = reversed === which || reversed === "both";
      return left ? binary(this.attr(`op${n}`), x, acc) : binary(this.attr(`op${n}`), acc, x);
    };
    const first = step(this.operand("src"), "0", "first");
    return this.has("operand1") ? step(first, "1", "second") : first;
  }

  private reduction(op: string, over: string): string {
    const negated = this.attr("negated") === "true" ? "-" : "";
    const dims = over === "" && (this.i.attrs.get("num_r_dim") ?? "1") !== "1" ? `, last ${this.attr("num_r_dim")}` : "";
    return `${REDUCTIONS[op] ?? op}(${negated}${this.operand("src")}${dims})${over}`;
  }

  private activation(): string {
    const scale = this.operand("scale");
    const bias = this.operand("bias");
    let x = this.operand("src");
    if (scale !== "1") x = `${x} * ${scale}`;
    if (bias !== "0") x = `${x} + ${bias}`;
    if (this.has("alpha")) x += `, alpha=${this.operand("alpha")}`;
    const f = this.attr("op");
    return f === "copy" ? (x.includes(" ") ? x : `copy ${x}`) : `${f}(${x})`;
  }

  matmul(): string {
    const at = ["row_pos", "col_pos"].map((n) => [n, this.operand(n)]).filter(([, v]) => v !== "0" && v !== "?");
    const where = at.map(([n, v]) => ` ${n}=${v}`).join("");
    const [dst, stationary, moving] = ["dst", "stationary", "moving"].map((n) => this.operand(n));
    // the array passes the elements on and adds nothing; moving is the identity matrix
    if (this.attr("is_transpose") === "true") return `${dst} ← transpose ${stationary} by ${moving}${where}`;
    return `${dst} += ${stationary}ᵀ @ ${moving}${where}`;
  }
}

function shapeOf(i: Instruction): string {
  const dst = i.operands.get("dst");
  const src = i.operands.get("src") ?? i.operands.get("lhs") ?? i.operands.get("moving");
  const out = isAccess(dst) ? dst : isAccess(src) ? src : null;
  if (!out) return "";
  const [from, to] = [isAccess(src) ? src.type.dtype : out.type.dtype, out.type.dtype];
  const dtype = from === to ? to : `${from}→${to}`;
  return `[${shapeText(out.tile, dtype)}]${i.engine === "dma" ? direction(src, dst) : ""}`;
}

function direction(src: Operand | undefined, dst: Operand | undefined): string {
  if (!isAccess(src) || !isAccess(dst)) return "";
  const name = (a: Access) => memoryName(a.type.space);
  return name(src) === "" || name(dst) === "" ? "" : ` ${name(src)}→${name(dst)}`;
}

export function instructionText(i: Instruction, scope: Scope): Formula {
  const p = new Printer(i, scope);
  let text = i.op === "matmul" ? p.matmul() : i.result || p.has("dst") ? `${i.result ?? p.operand("dst")} ← ${p.value()}` : p.value();
  if (i.operands.has("reduce_res")) text += `; ${p.operand("reduce_res")} += its sum`;
  if (i.result) scope.define(i.result);
  const shape = i.op === "register_load" ? "" : shapeOf(i);
  return { engine: ENGINES[i.engine] ?? "?", text: text + p.rest(), shape: i.signal ? `${shape} ↑` : shape };
}

/** A constant's value: "2", "0.125", "dense<…>". */
export function constantText(value: string, dtype: string): string {
  return value.length > 40 ? `${value.slice(0, 16)}…` : numberText(value, dtype);
}
