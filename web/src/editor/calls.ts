// calls: which function of NumPy or NKI, or which tensor method, is at a position of the source.
import { syntaxTree } from "@codemirror/language";
import type { EditorView } from "@codemirror/view";
import { nkiName } from "./nkinames";

export interface Called {
  from: number;
  to: number;
  /** "np.linalg.norm" or "nl.load" with the module's usual short name, or ".sum" for a method. */
  name: string;
}

const IMPORT = /^\s*import\s+numpy(?:\s+as\s+(\w+))?/gm;
const OPERATORS: Record<string, string> = {
  "+": "np.add",
  "-": "np.subtract",
  "*": "np.multiply",
  "/": "np.divide",
  "//": "np.floor_divide",
  "%": "np.remainder",
  "**": "np.power",
  "@": "np.matmul",
  "<": "np.less",
  "<=": "np.less_equal",
  ">": "np.greater",
  ">=": "np.greater_equal",
  "==": "np.equal",
  "!=": "np.not_equal",
};

/** The names under which the source knows NumPy. */
export function modules(text: string): Set<string> {
  const found = new Set<string>();
  for (const m of text.matchAll(IMPORT)) found.add(m[1] ?? "numpy");
  return found;
}

export function calledAt(view: EditorView, pos: number): Called | null {
  const { doc } = view.state;
  const text = (from: number, to: number) => doc.sliceString(from, to);
  let node = syntaxTree(view.state).resolveInner(pos, 1);
  if (node.name === "ArithOp" || node.name === "CompareOp") {
    const name = OPERATORS[text(node.from, node.to)];
    return name ? { from: node.from, to: node.to, name } : null;
  }
  while (node.parent?.name === "MemberExpression") node = node.parent;
  if (node.name !== "MemberExpression") return null;
  const full = text(node.from, node.to);
  const dot = full.lastIndexOf(".");
  if (dot < 0) return null;
  const root = full.slice(0, full.indexOf("."));
  if (/^[\w.]+$/.test(full)) {
    const source = doc.toString();
    if (modules(source).has(root)) return { from: node.from, to: node.to, name: `np${full.slice(root.length)}` };
    const nki = nkiName(source, full);
    if (nki !== null) return { from: node.from, to: node.to, name: nki };
  }
  return { from: node.from + dot + 1, to: node.to, name: full.slice(dot) };
}
