// hlo: reads the text of an HLO module: computations and their instructions.

export interface HloOp {
  /** In the text, from 1. */
  line: number;
  name: string;
  opcode: string;
  /** "128×1024 f32"; of a tuple the number of its parts. */
  shape: string;
  /** Names of the operands, in the same computation. */
  operands: string[];
  /** What stands in the parentheses, if no operand does: the value of a constant, the number of a parameter. */
  literal: string;
  /** The attributes that change what the operation does, as printed. */
  attributes: string;
  /** Computations that it calls, each with the attribute that names it. */
  calls: { role: string; name: string }[];
  isRoot: boolean;
}

export interface Computation {
  name: string;
  isEntry: boolean;
  ops: HloOp[];
}

const HEAD = /^(ENTRY\s+)?%?([\w.$-]+)\s*\(.*\)\s*->\s*.*\{\s*$/;
const OP = /^\s*(ROOT\s+)?%?([\w.$-]+)\s*=\s*(.*)$/;
const OPCODE = /^(.*?[\])}])\s+([a-z][\w-]*)\(/;
const CALLED = /\b(body|condition|to_apply|calls|branch_computations|true_computation|false_computation|called_computations|select|scatter)=(\{[^}]*\}|%?[\w.$-]+)/g;
const KEPT = /\b(dimensions|slice|lhs_contracting_dims|rhs_contracting_dims|lhs_batch_dims|rhs_batch_dims|index|direction|custom_call_target|padding|window|permutation)=/;

/** "f32[128,1024]{1,0}" as "128×1024 f32". */
export function shortShape(type: string): string {
  if (type.startsWith("(")) {
    const n = (type.match(/\w+\[[\d,<=?]*\]/g) ?? []).length;
    return n === 1 ? "1 value" : `${n} values`;
  }
  const m = /^(\w+)\[([\d,<=?]*)\]/.exec(type);
  if (!m) return type.slice(0, 24);
  return m[2] === "" ? (m[1] ?? "") : `${(m[2] ?? "").replaceAll(",", "×")} ${m[1]}`;
}

/** The end of what begins with the parenthesis before `from`. */
function closing(text: string, from: number): number {
  let depth = 1;
  for (let i = from; i < text.length; i++) {
    const c = text[i];
    if (c === "(" || c === "{" || c === "[") depth++;
    else if ((c === ")" || c === "}" || c === "]") && --depth === 0) return i;
  }
  return text.length;
}

/** Splits at commas that stand in no brackets. */
function parts(text: string): string[] {
  const list: string[] = [];
  let depth = 0;
  let from = 0;
  for (let i = 0; i <= text.length; i++) {
    const c = text[i];
    if (c === "{" || c === "(" || c === "[") depth++;
    else if (c === "}" || c === ")" || c === "]") depth--;
    else if (i === text.length || (c === "," && depth === 0)) {
      if (i > from) list.push(text.slice(from, i).trim());
      from = i + 1;
    }
  }
  return list;
}

function attributesText(list: readonly string[]): string {
  return list
    .filter((a) => KEPT.test(a))
    .map((a) =>
      a
        .replace(/^dimensions=\{(.*)\}$/, "dims $1")
        .replace(/^slice=\{(.*)\}$/, "$1")
        .replace(/^lhs_contracting_dims=\{(.*)\}$/, "lhs $1")
        .replace(/^rhs_contracting_dims=\{(.*)\}$/, "rhs $1")
        .replace(/^custom_call_target=/, "")
        .replace(/, /g, ","),
    )
    .filter((a) => a !== "dims ")
    .join(" ");
}

function readOp(text: string, line: number): HloOp | null {
  const m = OP.exec(text);
  const rest = m?.[3] ?? "";
  const code = m ? OPCODE.exec(rest) : null;
  if (!m || !code) return null;
  const from = code[0].length;
  const end = closing(rest, from);
  const inner = rest.slice(from, end);
  const after = rest.slice(end + 1).replace(/^,\s*/, "");
  const opcode = code[2] ?? "";
  const isLeaf = opcode === "constant" || opcode === "parameter" || opcode === "iota";
  return {
    line,
    name: m[2] ?? "",
    opcode,
    shape: shortShape(code[1] ?? ""),
    operands: isLeaf ? [] : parts(inner).flatMap((a) => /%?([\w.$-]+)$/.exec(a)?.[1] ?? []),
    literal: isLeaf ? inner : "",
    attributes: attributesText(parts(after)),
    calls: [...after.matchAll(CALLED)].flatMap(([, role = "", names = ""]) =>
      names.replace(/[{}]/g, "").split(",").map((n) => ({ role, name: n.trim().replace(/^%/, "") })).filter((c) => c.name !== ""),
    ),
    isRoot: m[1] !== undefined,
  };
}

export function readHlo(lines: readonly string[]): Computation[] {
  const list: Computation[] = [];
  let open: Computation | null = null;
  lines.forEach((text, i) => {
    const head = open ? null : HEAD.exec(text);
    if (head) list.push((open = { name: head[2] ?? "", isEntry: head[1] !== undefined, ops: [] }));
    else if (/^\s*\}/.test(text)) open = null;
    else if (open) {
      const op = readOp(text, i + 1);
      if (op) open.ops.push(op);
    }
  });
  return list;
}
