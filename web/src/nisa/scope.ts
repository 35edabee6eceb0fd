// scope: what the names of a program stand for: constants, index arithmetic, and copies of rotating buffers.
//
// MLIR prints a program so that each use follows its definition, and never gives a name a second meaning where the first
// can still be used.  So the last definition above a line is the right one, and no regions need be tracked.

/** A sum or a product needs parentheses, or a "·", where it becomes part of another expression. */
type Shape = "atom" | "product" | "sum";

interface Meaning {
  text: string;
  shape: Shape;
}

const NUMBER = /^-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?$/;

/** The bits of a float that MLIR prints in hexadecimal because it is not finite. */
function hexFloat(text: string, dtype: string): string {
  const bits = BigInt(text);
  const layout = { f16: [5, 10], bf16: [8, 7], f32: [8, 23], f64: [11, 52] }[dtype];
  if (!layout) return text;
  const [exponent, mantissa] = layout.map(BigInt) as [bigint, bigint];
  const isSpecial = ((bits >> mantissa) & ((1n << exponent) - 1n)) === (1n << exponent) - 1n;
  if (!isSpecial) return text;
  if ((bits & ((1n << mantissa) - 1n)) !== 0n) return "nan";
  return bits >> (exponent + mantissa) ? "-inf" : "inf";
}

/** The fewest digits that give the same f32. */
function shortest(x: number): string {
  for (let digits = 1; digits < 9; digits++) {
    const text = x.toPrecision(digits);
    if (Math.fround(Number(text)) === Math.fround(x)) return text;
  }
  return String(x);
}

/** 1.250000e-01 is 0.125, and 9.99999974E-6 is 1e-5 if it is an f32. */
export function numberText(text: string, dtype: string): string {
  if (/^0x[0-9A-Fa-f]+$/.test(text)) return hexFloat(text, dtype);
  if (!NUMBER.test(text) || /^-?\d+$/.test(text)) return text;
  const x = Number(text);
  if (Object.is(x, -0)) return "-0";
  const n = Number(dtype === "f32" ? shortest(x) : x);
  return n !== 0 && Math.abs(n) < 1e-4 ? n.toExponential() : String(n);
}

export class Scope {
  private readonly names = new Map<string, Meaning>();

  set(name: string, text: string, shape: Shape = "atom"): void {
    this.names.set(name, { text, shape });
  }

  /** The name no longer stands for anything else: it is a loop's counter, or an operation's result. */
  define(name: string, isIndex = false): void {
    if (isIndex) this.names.set(name, { text: name.slice(1), shape: "atom" });
    else this.names.delete(name);
  }

  /** A value in an expression of its own. */
  text(name: string): string {
    return this.names.get(name)?.text ?? name;
  }

  private meaning(name: string): Meaning {
    return this.names.get(name) ?? { text: name, shape: "atom" };
  }

  /** The value times a constant. */
  times(name: string, factor: string): string {
    const m = this.meaning(name);
    if (factor === "1") return m.text;
    if (NUMBER.test(m.text)) return String(Number(m.text) * Number(factor));
    return m.shape === "sum" ? `${factor}·(${m.text})` : `${factor}·${m.text}`;
  }

  /** Remembers the result of an index operation; false for one that has no short form. */
  arithmetic(result: string, op: string, a: string, b: string): boolean {
    const [x, y] = [this.meaning(a), this.meaning(b)];
    const inner = (m: Meaning) => (m.shape === "atom" ? m.text : `(${m.text})`);
    if (op === "addi" || op === "subi") {
      const right = op === "subi" && y.shape === "sum" ? `(${y.text})` : y.text;
      this.set(result, `${x.text} ${op === "addi" ? "+" : "-"} ${right}`, "sum");
    } else if (op === "muli") {
      if (NUMBER.test(y.text)) this.set(result, this.times(a, y.text), "product");
      else if (NUMBER.test(x.text)) this.set(result, this.times(b, x.text), "product");
      else this.set(result, `${inner(x)}·${inner(y)}`, "product");
    } else if (op === "divui" || op === "divsi") this.set(result, `${inner(x)}/${inner(y)}`, "product");
    else if (op === "remui" || op === "remsi") this.set(result, `${inner(x)} mod ${inner(y)}`, "sum");
    else return false;
    return true;
  }

  /** An index expression as printed, "%i*128 + d1 - 3", split into its terms. */
  terms(text: string): Term[] | null {
    const terms: Term[] = [];
    const TERM = /\s*([+-]?)\s*(%[\w$.-]+|d\d+|\d+)(?:\*(\d+))?/y;
    while (TERM.lastIndex < text.length) {
      const m = TERM.exec(text);
      if (!m) return null;
      terms.push({ minus: m[1] === "-", name: m[2] ?? "", factor: m[3] ?? "1" });
    }
    return terms.length > 0 ? terms : null;
  }

  /** The sum of the terms; "" for none, or only zeros. */
  sum(terms: readonly Term[]): string {
    let out = "";
    for (const { minus, name, factor } of terms) {
      const text = this.times(name, factor);
      if (text === "0") continue;
      const join = out === "" ? (minus ? "-" : "") : minus ? " - " : " + ";
      out += join + (minus && this.meaning(name).shape === "sum" && factor === "1" ? `(${text})` : text);
    }
    return out;
  }
}

export interface Term {
  minus: boolean;
  name: string;
  factor: string;
}
