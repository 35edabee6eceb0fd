// read: one printed NISA line as a structure.  compiler/nisa/print.h describes the form.
//
//   nisa.NAME(operand<tile>=type %base[index, …], operand<tile>=type %base as type[index, …], operand=type %scalar, …, attribute=value, …) engine=E signal : type
//
// A line in any other form gives null, and is then shown as it is.

/** A memref's shape; extents are texts because they may be "?". */
export interface MemType {
  dims: readonly string[];
  dtype: string;
  /** "sbuf", "psum", "hbm", "shared_hbm"; "" if the type names none. */
  space: string;
}

/** A part of a memref. */
export interface Access {
  base: string;
  /** Of its elements: with `other`, of the memref as elements of that type. */
  type: MemType;
  /** "bf16" if the elements have another type than the memref, else "". */
  other: string;
  /** Extents of d0, d1, …; the first `par` of them are partitions. */
  tile: readonly string[];
  par: number;
  /** One expression per dimension of the memref; null if the operand is written with an affine map. */
  index: readonly string[] | null;
  /** The map and its indices as printed: "(d0, d1)[s0] -> (d0, d1 + s0)>[%i]"; "" without a map. */
  map: string;
}

export interface Scalar {
  value: string;
  dtype: string;
}

export type Operand = Access | Scalar;

export interface Instruction {
  /** Without "nisa.". */
  op: string;
  result: string | null;
  operands: Map<string, Operand>;
  attrs: Map<string, string>;
  engine: string;
  signal: boolean;
  resultType: string;
}

const BYTES: Readonly<Record<string, number>> = { f64: 8, i64: 8, ui64: 8, index: 8, f32: 4, i32: 4, ui32: 4, f16: 2, bf16: 2, i16: 2, ui16: 2 };

/** Of one element. */
export function bytesOf(dtype: string): number {
  return BYTES[dtype] ?? 1;
}

export function isAccess(o: Operand | undefined): o is Access {
  return o !== undefined && "base" in o;
}

const types = new Map<string, MemType | null>();
const TYPES_MAX = 4096;

/** The type that starts the text "memref<…>"; equal texts give the same object. */
export function memType(text: string): MemType | null {
  let type = types.get(text);
  if (type !== undefined) return type;
  const m = /^memref<((?:(?:\d+|\?)x)*)([a-z]\w*)\s*(?:,|>$)/.exec(text);
  const space = /#nisa\.mem<"?(\w+)"?>/.exec(text)?.[1] ?? "";
  type = m ? { dims: (m[1] ?? "").split("x").slice(0, -1), dtype: m[2] ?? "", space } : null;
  if (types.size >= TYPES_MAX) types.clear();
  types.set(text, type);
  return type;
}

/** The end of the bracketed group that begins at `from`; -1 if it does not end.  A ">" after "-" is an arrow. */
export function groupEnd(text: string, from: number): number {
  let depth = 0;
  for (let i = from; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x28: // (
      case 0x3c: // <
      case 0x5b: // [
      case 0x7b: // {
        depth++;
        break;
      case 0x3e: // >
        if (text[i - 1] !== "-" && --depth === 0) return i + 1;
        break;
      case 0x29: // )
      case 0x5d: // ]
      case 0x7d: // }
        if (--depth === 0) return i + 1;
        break;
      case 0x22: {
        const end = stringEnd(text, i);
        if (end < 0) return -1;
        i = end - 1;
      }
    }
  }
  return -1;
}

function stringEnd(text: string, from: number): number {
  for (let i = from + 1; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === '"') return i + 1;
  }
  return -1;
}

/** The parts between the commas of no bracket. */
export function splitList(text: string): string[] | null {
  const parts: string[] = [];
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === ",") {
      parts.push(text.slice(from, i).trim());
      from = i + 1;
    } else if (c === "<" || c === "(" || c === "[" || c === "{") {
      const end = groupEnd(text, i);
      if (end < 0) return null;
      i = end - 1;
    } else if (c === '"') {
      const end = stringEnd(text, i);
      if (end < 0) return null;
      i = end - 1;
    }
  }
  const last = text.slice(from).trim();
  if (last !== "" || parts.length > 0) parts.push(last);
  return parts;
}

const NAME = /^(\w+)(<([^<>|]*)\| ([^<>|]*)>)?(=?)/;
const extents = (list: string | undefined) => (list ? list.split(", ") : []);

/** The memref as elements of another type: the last dimension has more of them, or fewer. */
function retyped(type: MemType, dtype: string): MemType {
  const last = type.dims.length - 1;
  const dims = type.dims.map((n, i) => (i === last ? String((Number(n) * bytesOf(type.dtype)) / bytesOf(dtype)) : n));
  return { ...type, dims, dtype };
}

function access(value: string, par: string[], free: string[]): Access | null {
  const end = value.indexOf("<") < 0 ? -1 : groupEnd(value, value.indexOf("<"));
  const type = end < 0 ? null : memType(value.slice(0, end));
  const m = type ? /^ (%[\w$.-]+)(?: as (\w+))?(\[.*\]| affine_map<.*)$/.exec(value.slice(end)) : null;
  if (!type || !m) return null;
  const other = m[2] ?? "";
  const where = m[3] ?? "";
  const index = where.startsWith("[") ? splitList(where.slice(1, -1)) : null;
  const map = index ? "" : where.replace(" affine_map<", "");
  return { base: m[1] ?? "", type: other ? retyped(type, other) : type, other, tile: [...par, ...free], par: par.length, index, map };
}

/** One entry of the list in parentheses. */
function argument(text: string, into: Instruction): boolean {
  const m = NAME.exec(text);
  if (!m) return false;
  const name = m[1] ?? "";
  const value = text.slice(m[0].length);
  if (m[2] !== undefined) {
    const a = access(value, extents(m[3]), extents(m[4]));
    if (a) into.operands.set(name, a);
    return a !== null;
  }
  const scalar = /^(\S+) (%[\w$.-]+)$/.exec(value);
  if (scalar) into.operands.set(name, { dtype: scalar[1] ?? "", value: scalar[2] ?? "" });
  else into.attrs.set(name, m[5] === "=" ? value : "true");
  return true;
}

const HEAD = /^\s*(?:(%[\w$.-]+) = )?nisa\.(\w+)\(/;
const TAIL = /^ engine=(\w+)( signal)?(?: : (.+))?$/;

export function readInstruction(line: string): Instruction | null {
  const head = HEAD.exec(line);
  if (!head) return null;
  const open = head[0].length - 1;
  const close = groupEnd(line, open);
  const tail = close < 0 ? null : TAIL.exec(line.slice(close));
  const list = tail ? splitList(line.slice(open + 1, close - 1)) : null;
  if (!tail || !list) return null;
  const into: Instruction = {
    op: head[2] ?? "",
    result: head[1] ?? null,
    operands: new Map(),
    attrs: new Map(),
    engine: tail[1] ?? "",
    signal: tail[2] !== undefined,
    resultType: tail[3] ?? "",
  };
  for (const text of list) if (!argument(text, into)) return null;
  return into;
}
