// names: what the names at a position of the Python source mean: modules, knobs, and the names of the file itself.
import { syntaxTree } from "@codemirror/language";
import type { EditorState } from "@codemirror/state";
import { modules } from "./calls";
import { nkiName } from "./nkinames";

export type SyntaxNode = ReturnType<typeof syntaxTree>["topNode"];

export interface OwnName {
  name: string;
  kind: "function" | "class" | "parameter" | "variable" | "import";
}

const KNOB = /^\s*from\s+[\w.]+\s+import\s+(?:[^\n#]*[\s,])?knob(?:\s+as\s+(\w+))?\s*(?:,|\)|#|$)/gm;

/** The names under which the source knows the knobs. */
function knobNames(text: string): Set<string> {
  return new Set([...text.matchAll(KNOB)].map((m) => m[1] ?? "knob"));
}

export function isPython(state: EditorState): boolean {
  return syntaxTree(state).topNode.name === "Script";
}

/** Whether it is a value on which .tile_op and .layout are called: knob.knob(x), and what they return. */
function isBuilder(state: EditorState, node: SyntaxNode): boolean {
  const callee = node.name === "CallExpression" ? node.firstChild : null;
  const name = callee && fullName(state, callee);
  return name === "knob.knob" || name === ".tile_op" || name === ".layout";
}

/** "np.linalg.norm" for a function of NumPy, "nl.load" for one of NKI, "knob.fuse" for one of the knobs, ".sum" for a method;
 * null for another name. */
export function fullName(state: EditorState, callee: SyntaxNode): string | null {
  const source = state.doc.toString();
  const text = source.slice(callee.from, callee.to);
  if (/^\w+(\s*\.\s*\w+)*$/.test(text)) {
    const [root = "", ...rest] = text.split(".").map((part) => part.trim());
    if (modules(source).has(root)) return ["np", ...rest].join(".");
    const nki = nkiName(source, [root, ...rest].join("."));
    if (nki !== null) return nki;
    if (knobNames(source).has(root)) return rest.length === 0 ? "knob.knob" : ["knob", ...rest].join(".");
  }
  if (callee.name !== "MemberExpression") return null;
  const object = callee.firstChild;
  const member = source.slice(callee.lastChild?.from, callee.to);
  if (object && (member === "tile_op" || member === "layout") && !isBuilder(state, object)) return null;
  return `.${member}`;
}

/** What can follow the dot at `dot`: "np.linalg", "nl", "knob", "builder" for the methods of a knob, "value" for those of a tensor;
 * null if that is not known. */
export function objectBefore(state: EditorState, dot: number): string | null {
  const source = state.doc.toString();
  const path = /(?:\w+\.)*\w+$/.exec(source.slice(state.doc.lineAt(dot).from, dot))?.[0] ?? "";
  const before = source[dot - path.length - 1] ?? "";
  const root = path.split(".")[0] ?? "";
  if (path !== "" && before !== ".") {
    if (modules(source).has(root)) return `np${path.slice(root.length)}`;
    const nki = nkiName(source, path);
    if (nki !== null) return nki;
    if (path === root && knobNames(source).has(root)) return "knob";
    const own = ownNames(state, dot).find((o) => o.name === root);
    return path === root && (own?.kind === "parameter" || own?.kind === "variable") ? "value" : null;
  }
  const node = syntaxTree(state).resolveInner(dot, -1);
  const object = node.name === ")" || node.name === "]" ? node.parent : null;
  const value = object?.name === "ArgList" ? object.parent : object;
  if (!value || !/^(CallExpression|MemberExpression|ParenthesizedExpression)$/.test(value.name)) return null;
  return isBuilder(state, value) ? "builder" : "value";
}

const SCOPES = /^(FunctionDefinition|LambdaExpression|ClassDefinition)$/;

/** The names that a node makes. */
function defined(node: SyntaxNode): { node: SyntaxNode; kind: OwnName["kind"] }[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  const variables = (list: SyntaxNode[]): SyntaxNode[] =>
    list.flatMap((n) => (n.name === "VariableName" ? [n] : /^(Tuple|Array|Parenthesized)Expression$/.test(n.name) ? variables(n.getChildren("VariableName")) : []));
  const as = (kind: OwnName["kind"], list: SyntaxNode[]) => list.map((n) => ({ node: n, kind }));
  const upTo = (end: string) => children.slice(0, children.findIndex((n) => n.name === end) + 1);
  switch (node.name) {
    case "FunctionDefinition":
      return as("function", variables(children).slice(0, 1));
    case "ClassDefinition":
      return as("class", variables(children).slice(0, 1));
    case "ParamList":
      return as("parameter", variables(children.filter((n) => n.prevSibling?.name !== "AssignOp")));
    case "AssignStatement":
      return as("variable", variables(children.slice(0, children.findLastIndex((n) => n.name === "AssignOp"))));
    case "ForStatement":
    case "ComprehensionExpression":
    case "ArrayComprehensionExpression":
      return as("variable", variables(upTo("in").slice(upTo("in").findIndex((n) => n.name === "for"))));
    case "ImportStatement":
      return as("import", variables(children).filter((n) => n.nextSibling?.name !== "as" && n.prevSibling?.name !== "from"));
    default:
      return [];
  }
}

/** The names that the file gives, and that are visible at the position; without what is being written there. */
export function ownNames(state: EditorState, pos: number): OwnName[] {
  const found = new Map<string, OwnName>();
  syntaxTree(state).iterate({
    enter: (ref) => {
      for (const { node, kind } of defined(ref.node)) {
        const name = state.doc.sliceString(node.from, node.to);
        if (node.to < pos || node.from > pos) found.set(name, found.get(name) ?? { name, kind });
      }
      return !SCOPES.test(ref.name) || (ref.from <= pos && pos <= ref.to);
    },
  });
  return [...found.values()];
}
