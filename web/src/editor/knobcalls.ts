// knobcalls: the knobs of a Python text: how it can call them, and the calls that are there.
import type { SyntaxNode, Tree } from "@lezer/common";

/** How knobs are called: "knob.knob" with tile_op and layout after it, or a function that takes all arguments itself. */
export interface Callee {
  text: string;
  hasBuilder: boolean;
}

/** A call for one value: knob.knob(x, mem_space="Sbuf").tile_op(tile_size=[…]). */
export interface KnobCall {
  /** knob.knob(x, …) */
  base: SyntaxNode;
  /** .tile_op(…) and .layout(…), in order. */
  methods: { name: string; args: SyntaxNode }[];
  callee: Callee;
  /** All of it. */
  from: number;
  to: number;
}

export interface Argument {
  /** Null for a positional one. */
  name: string | null;
  value: SyntaxNode;
}

/** The parameters of knob.knob after the value. */
const PARAMETERS = ["partition_dim", "mem_space", "tile_size", "reduction_tile"];

type Kind = "module" | "builder" | "function" | "function-module";

// what `from MODULE import knob` is, and what `MODULE.knob` is after `import MODULE`
const FROM = new Map<string, Kind>([
  ...["nkigen", "nkipy_kernelgen"].flatMap((m): [string, Kind][] => [[m, "module"], [`${m}.apis`, "builder"], [`${m}.knob`, "builder"]]),
  ["nkipy", "function"],
  ["nkipy.core.knob", "function"],
  ["nkipy.core", "function-module"],
]);

function calleesOf(name: string, kind: Kind): Callee[] {
  switch (kind) {
    case "module":
      return [{ text: `${name}.knob`, hasBuilder: true }, { text: name, hasBuilder: true }];
    case "builder":
      return [{ text: name, hasBuilder: true }];
    case "function":
      return [{ text: name, hasBuilder: false }];
    case "function-module":
      return [{ text: `${name}.knob`, hasBuilder: false }];
  }
}

function imported(statement: string): Callee[] {
  const text = statement.replace(/[()\\\n]/g, " ");
  const from = /^from\s+([\w.]+)\s+import\s+(.*)$/.exec(text);
  const pairs = (list: string) => list.split(",").map((one) => one.trim().split(/\s+as\s+/)) as [string, string?][];
  if (from) {
    const kind = FROM.get(from[1] as string);
    return kind ? pairs(from[2] as string).flatMap(([name, as]) => (name === "knob" ? calleesOf(as ?? name, kind) : [])) : [];
  }
  const plain = /^import\s+(.*)$/.exec(text);
  return plain
    ? pairs(plain[1] as string).flatMap(([name, as]) => {
        const kind = FROM.get(name);
        return kind && !name.endsWith(".knob") ? calleesOf(`${as ?? name}.knob`, kind) : [];
      })
    : [];
}

export function importsOf(tree: Tree): SyntaxNode[] {
  return tree.topNode.getChildren("ImportStatement");
}

/** True if the text gives the name another value than its import does: as a variable, a parameter, a function. */
export function isBound(tree: Tree, text: string, name: string): boolean {
  let found = false;
  tree.iterate({
    enter({ node }) {
      const { parent } = node;
      if (found || node.name !== "VariableName" || !parent || text.slice(node.from, node.to) !== name) return;
      const next = node.nextSibling?.name;
      if (/^(ParamList|FunctionDefinition|ClassDefinition)$/.test(parent.name)) found = node.prevSibling?.name !== "AssignOp";
      else if (parent.name === "ForStatement") found = node.prevSibling?.name === "for";
      else if (parent.name === "AssignStatement") found = next === "AssignOp" || next === "TypeDef" || next === ",";
    },
  });
  return found;
}

/** How knobs can be called in this text, best first; empty if nothing is imported for it. */
export function callees(tree: Tree, text: string): Callee[] {
  const found = importsOf(tree).flatMap((s) => imported(text.slice(s.from, s.to)));
  return found.filter((c) => !isBound(tree, text, c.text.split(".")[0] as string)).sort((a, b) => Number(b.hasBuilder) - Number(a.hasBuilder));
}

export function argumentsOf(list: SyntaxNode | null): Argument[] {
  const found: Argument[] = [];
  let name: SyntaxNode | null = null;
  for (let n = list?.firstChild ?? null; n; n = n.nextSibling) {
    if (/^[(),]$/.test(n.name) || n.name === "Comment") continue;
    if (n.nextSibling?.name === "AssignOp" && n.name === "VariableName") name = n;
    else if (n.name !== "AssignOp") {
      found.push({ name: name ? `${name.from}:${name.to}` : null, value: n });
      name = null;
    }
  }
  return found;
}

/** The arguments with their names as text. */
export function named(list: SyntaxNode | null, text: string): Argument[] {
  return argumentsOf(list).map((a) => ({ ...a, name: a.name === null ? null : text.slice(...(a.name.split(":").map(Number) as [number, number])) }));
}

/** An argument of knob.knob(x, …) by its name or its position. */
export function baseArgument(call: KnobCall, text: string, name: string): SyntaxNode | null {
  const all = named(call.base.getChild("ArgList"), text);
  const byName = all.find((a) => a.name === name);
  return (byName ?? all.filter((a) => a.name === null)[PARAMETERS.indexOf(name) + 1])?.value ?? null;
}

export function methodArgument(args: SyntaxNode, text: string, name: string): SyntaxNode | null {
  return named(args, text).find((a) => a.name === name)?.value ?? null;
}

/** The knob call with this knob.knob(…) at its start; null if the call is of something else. */
export function knobCall(base: SyntaxNode, text: string, known: readonly Callee[]): KnobCall | null {
  const callee = base.name === "CallExpression" ? known.find((c) => c.text === text.slice(base.from, base.firstChild?.to ?? base.from)) : undefined;
  if (!callee) return null;
  const call: KnobCall = { base, methods: [], callee, from: base.from, to: base.to };
  for (let at = base; ; ) {
    const member = at.parent;
    const outer = member?.parent;
    const name = member?.getChild("PropertyName");
    if (member?.name !== "MemberExpression" || outer?.name !== "CallExpression" || outer.firstChild?.from !== base.from || !name) return call;
    const args = outer.getChild("ArgList");
    if (!args) return call;
    call.methods.push({ name: text.slice(name.from, name.to), args });
    call.to = outer.to;
    at = outer;
  }
}
