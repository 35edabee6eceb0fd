// writeknob: writes a knob for the value of an expression into a Python text.
//
//     product = np.matmul(x, w)                  product = np.matmul(x, w)
//                                           =>   knob.knob(product).layout(mem_space="Hbm")
//
//     return np.exp(x - m)                  =>   return np.exp(knob.knob(x - m, mem_space="Hbm"))
//
// A knob call for the value that is there already gets the argument, or another one in its place; the import is added if it
// is missing.  The text stays as it is otherwise.  A knob that cannot be written has a reason, as a sentence.
import { pythonLanguage } from "@codemirror/lang-python";
import { Text } from "@codemirror/state";
import type { SyntaxNode, Tree } from "@lezer/common";
import type { KnobValue, RemarkKnob, SourceRange } from "../api/types";
import { columnOfOffset, spanOfRange, type Span } from "./positions";
import { baseArgument, callees, importsOf, isBound, knobCall, methodArgument, named, type Callee, type KnobCall } from "./knobcalls";

export interface Change {
  from: number;
  to: number;
  insert: string;
}

/** The edits, in offsets of the old text, and what they write. */
export type Written = { changes: Change[]; what: string } | { why: string };

/** The knob of a remark with the value that it is to get. */
export type Wanted = Pick<RemarkKnob, "call" | "argument" | "dims"> & { value: KnobValue };

class Impossible extends Error {}

export function literal(value: KnobValue): string {
  if (Array.isArray(value)) return `[${value.join(", ")}]`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

function parse(text: string): Tree {
  return pythonLanguage.parser.parse(text);
}

function hasErrors(tree: Tree): boolean {
  let found = false;
  tree.iterate({ enter: (n) => void (found ||= n.type.isError) });
  return found;
}

/** The argument as those of knob.knob(x, …), which has two for tile sizes: by parallel and by reduced loops. */
function functionArguments(wanted: Wanted): [string, KnobValue][] {
  const { argument, value, dims } = wanted;
  if (!Array.isArray(value)) return [[argument, value]];
  if (!dims) throw new Impossible("The value of this expression has other dimensions than the loops that compute it. Give it a name: name = …, then a knob can say the tile size.");
  const parallel = value.filter((_, loop) => dims.includes(loop));
  const reduced = value.filter((_, loop) => !dims.includes(loop));
  if (parallel.length !== dims.length && parallel.length + reduced.length !== dims.length)
    throw new Impossible("knob(x, tile_size=…) needs an entry for each dimension of the value. Give it a name: name = …, then a knob can say the tile size.");
  return [...(parallel.length > 0 ? [["tile_size", parallel] as [string, KnobValue]] : []), ...(reduced.length > 0 ? [["reduction_tile", reduced] as [string, KnobValue]] : [])];
}

/** The tile of layout(tile_size=…), which has an entry for each dimension of the value. */
function layoutTile({ value, dims }: Wanted): number[] {
  if (!dims || !Array.isArray(value)) throw new Impossible("A layout(tile_size=…) of this value must fit the new tile size; change both by hand.");
  return dims.map((loop) => (loop < 0 ? 1 : (value[loop] ?? 1)));
}

class Writer {
  private readonly tree: Tree;
  private readonly known: Callee[];
  private readonly changes: Change[] = [];
  private what = "";

  constructor(
    private readonly text: string,
    private readonly wanted: Wanted,
  ) {
    this.tree = parse(text);
    this.known = callees(this.tree, text);
  }

  write(from: number, to: number): Written {
    const top = this.expression(from, to);
    const { parent } = top;
    const call = parent?.name === "ArgList" && parent.parent ? knobCall(parent.parent, this.text, this.known) : null;
    if (call && parent?.firstChild?.nextSibling?.from === top.from) this.change([call]);
    else {
      const name = this.nameOf(top);
      if (name) this.afterStatement(name.statement, name.name);
      else this.wrap(top);
    }
    const changes = this.changes.sort((a, b) => a.from - b.from);
    if (!hasErrors(this.tree) && hasErrors(parse(apply(this.text, changes)))) throw new Impossible("The expression is written in a way that the page cannot change.");
    return { changes, what: this.what };
  }

  private slice(node: SyntaxNode): string {
    return this.text.slice(node.from, node.to);
  }

  /** The expression at these offsets, with the parentheses around it. */
  private expression(from: number, to: number): SyntaxNode {
    let node: SyntaxNode | null = this.tree.resolveInner(from, 1);
    while (node && (node.from > from || node.to < to)) node = node.parent;
    if (!node || node.from !== from || node.to !== to) throw new Impossible("The text has changed since it was compiled.");
    if (!/Expression$|^(VariableName|UpdateStatement|Number|String)$/.test(node.name)) throw new Impossible("The operation is not made by an expression of its own, whose value a knob could name.");
    while (node.parent?.name === "ParenthesizedExpression") node = node.parent;
    return node;
  }

  /** The variable that the statement of the expression gives the value to, if it gives it to one. */
  private nameOf(top: SyntaxNode): { statement: SyntaxNode; name: string } | null {
    if (top.name === "UpdateStatement") {
      const target = top.firstChild;
      if (target?.name !== "VariableName" || !this.isAlone(top)) throw new Impossible("The statement changes a part of a value in place; its result has no name for a knob.");
      return { statement: top, name: this.slice(target) };
    }
    const statement = top.parent;
    if (statement?.name !== "AssignStatement") return null;
    const children: SyntaxNode[] = [];
    for (let n = statement.firstChild; n; n = n.nextSibling) children.push(n);
    const last = children.map((n) => n.name).lastIndexOf("AssignOp");
    const at = children.findIndex((n) => n.from === top.from && n.to === top.to);
    if (at < last) throw new Impossible("The statement changes a part of a value in place; its result has no name for a knob.");
    const targets = children.slice(0, last).filter((n) => n.name !== "TypeDef" && n.name !== "AssignOp");
    const isTuple = children.slice(0, last).some((n) => n.name === "," || n.name === "TupleExpression");
    if (children.length > last + 2) return null; // a, b = x, y: each of them is wrapped
    if (isTuple) throw new Impossible("The expression has several values; a knob is for one.");
    const name = targets.find((n) => n.name === "VariableName");
    return name && this.isAlone(statement) ? { statement, name: this.slice(name) } : null;
  }

  private lineEnd(at: number): number {
    const end = this.text.indexOf("\n", at);
    return end < 0 ? this.text.length : end;
  }

  private indentOf(statement: SyntaxNode): string {
    return this.text.slice(this.text.lastIndexOf("\n", statement.from - 1) + 1, statement.from);
  }

  /** True if nothing else is on the lines of the statement, so that another one can follow it. */
  private isAlone(statement: SyntaxNode): boolean {
    return /^\s*$/.test(this.indentOf(statement)) && /^\s*(#.*)?$/.test(this.text.slice(statement.to, this.lineEnd(statement.to)));
  }

  /** The knob calls for a variable from its statement to the next one that gives it a value. */
  private callsAfter(statement: SyntaxNode, name: string): KnobCall[] {
    const found: KnobCall[] = [];
    for (let s = statement.nextSibling; s; s = s.nextSibling) {
      s.cursor().iterate(({ node }) => {
        const call = knobCall(node, this.text, this.known);
        const first = call && named(call.base.getChild("ArgList"), this.text)[0];
        if (call && first?.name === null && this.slice(first.value) === name) found.push(call);
      });
      const target = s.firstChild;
      const isKnob = found.some((c) => s && c.from >= s.from && c.to <= s.to);
      if (/^(Assign|Update)Statement$/.test(s.name) && target && this.slice(target) === name && !isKnob) break;
    }
    return found;
  }

  private afterStatement(statement: SyntaxNode, name: string): void {
    const calls = this.callsAfter(statement, name);
    if (calls.length > 0) {
      this.change(calls);
      return;
    }
    const callee = this.callee();
    this.what = callee.hasBuilder
      ? `${callee.text}(${name}).${this.wanted.call}(${this.wanted.argument}=${literal(this.wanted.value)})`
      : `${callee.text}(${name}, ${this.functionText()})`;
    const at = this.lineEnd(statement.to);
    this.changes.push({ from: at, to: at, insert: `\n${this.indentOf(statement)}${this.what}` });
  }

  private functionText(): string {
    return functionArguments(this.wanted)
      .map(([name, value]) => `${name}=${literal(value)}`)
      .join(", ");
  }

  private wrap(top: SyntaxNode): void {
    if (top.parent?.name === "AssignStatement" && top.name === "VariableName") throw new Impossible("The value has a name of its own; its knob belongs where it is computed.");
    const callee = this.callee();
    this.what = `${callee.text}(…, ${this.functionText()})`;
    this.changes.push({ from: top.from, to: top.from, insert: `${callee.text}(` }, { from: top.to, to: top.to, insert: `, ${this.functionText()})` });
  }

  /** Gives the argument to the last of the calls that has it, or else to the last one that can take it. */
  private change(calls: readonly KnobCall[]): void {
    const { call: method, argument, value } = this.wanted;
    const backwards = [...calls].reverse();
    const ofMethod = (c: KnobCall) => [...c.methods].reverse().filter((m) => m.name === method);
    const has = backwards.flatMap((c) => ofMethod(c).map((m) => ({ c, m, old: methodArgument(m.args, this.text, argument) }))).find((x) => x.old);
    this.what = `.${method}(${argument}=${literal(value)})`;
    if (argument === "tile_size") this.fitLayouts(calls);
    if (has?.old) {
      this.replace(has.old, literal(value));
      return;
    }
    const base = backwards.find((c) => functionArgumentNames(this.wanted).some((n) => baseArgument(c, this.text, n)));
    const open = backwards.find((c) => ofMethod(c).length > 0);
    const builder = backwards.find((c) => c.methods.length > 0 || (c.callee.hasBuilder && named(c.base.getChild("ArgList"), this.text).length === 1));
    if (base) this.changeBase(base);
    else if (open) this.addArgument((ofMethod(open)[0] as KnobCall["methods"][number]).args, argument, value);
    else if (builder && !isWrapped(builder)) this.changes.push({ from: builder.to, to: builder.to, insert: this.what });
    else this.changeBase(backwards[0] as KnobCall);
  }

  private changeBase(call: KnobCall): void {
    for (const [name, value] of functionArguments(this.wanted)) {
      const old = baseArgument(call, this.text, name);
      if (old) this.replace(old, literal(value));
      else this.addArgument(call.base.getChild("ArgList") as SyntaxNode, name, value);
    }
    this.what = `${call.callee.text}(…, ${this.functionText()})`;
  }

  /** A tile of layout(…) must fit that of tile_op(…). */
  private fitLayouts(calls: readonly KnobCall[]): void {
    for (const { methods } of calls)
      for (const m of methods) {
        const old = m.name === "layout" ? methodArgument(m.args, this.text, "tile_size") : null;
        if (old) this.replace(old, literal(layoutTile(this.wanted)));
      }
  }

  private replace(node: SyntaxNode, insert: string): void {
    this.changes.push({ from: node.from, to: node.to, insert });
  }

  private addArgument(args: SyntaxNode, name: string, value: KnobValue): void {
    const close = args.lastChild as SyntaxNode;
    const before = close.prevSibling;
    const text = `${name}=${literal(value)}`;
    const at = before?.to ?? close.from;
    const insert = before?.name === "(" ? text : before?.name === "," ? ` ${text}` : `, ${text}`;
    this.changes.push({ from: at, to: at, insert });
  }

  /** How knobs are called here; imports them if nothing does. */
  private callee(): Callee {
    const best = this.known[0];
    if (best) return best;
    const name = ["knob", "knobs", "nki_knob", "nki_knob_2"].find((n) => !isBound(this.tree, this.text, n)) ?? "knob";
    const as = name === "knob" ? "knob" : `knob as ${name}`;
    const imports = importsOf(this.tree);
    const first = this.tree.topNode.firstChild;
    const beside = imports.find((s) => /^from\s+nkigen\s+import\s+[\w, ]+$/.test(this.slice(s)));
    const body = ["FunctionDefinition", "DecoratedStatement", "ClassDefinition"].flatMap((n) => this.tree.topNode.getChildren(n).map((d) => d.from));
    const last = imports.filter((i) => i.from < Math.min(...body)).at(-1);
    if (beside) this.changes.push({ from: beside.to, to: beside.to, insert: `, ${as}` });
    else if (last) this.insertLine(this.lineEnd(last.to), as);
    else if (first?.name === "ExpressionStatement" && first.firstChild?.name === "String") this.insertLine(this.lineEnd(first.to), as);
    else this.changes.push({ from: 0, to: 0, insert: `from nkigen import ${as}\n` });
    return { text: `${name}.knob`, hasBuilder: true };
  }

  private insertLine(at: number, as: string): void {
    this.changes.push({ from: at, to: at, insert: `\nfrom nkigen import ${as}` });
  }
}

function functionArgumentNames({ argument }: Wanted): string[] {
  return argument === "tile_size" ? ["tile_size", "reduction_tile"] : [argument];
}

/** True if the call stands for its value in an expression, where a builder could not. */
function isWrapped(call: KnobCall): boolean {
  return call.base.parent?.name !== "ExpressionStatement" && call.methods.length === 0;
}

export function apply(text: string, changes: readonly Change[]): string {
  return [...changes].sort((a, b) => b.from - a.from).reduce((t, { from, to, insert }) => t.slice(0, from) + insert + t.slice(to), text);
}

/** The offsets of a range of the text; null if it is not there. */
export function spanIn(text: string, range: SourceRange): Span | null {
  return spanOfRange(Text.of(text.split("\n")), range);
}

/** Where the changes put a range of the old text. */
export function movedRange(text: string, changes: readonly Change[], range: SourceRange): SourceRange {
  const span = spanIn(text, range);
  if (!span) return range;
  const by = (isBefore: (c: Change) => boolean) => changes.reduce((sum, c) => (isBefore(c) ? sum + c.insert.length - (c.to - c.from) : sum), 0);
  const doc = Text.of(apply(text, changes).split("\n"));
  const [from, to] = [span.from + by((c) => c.to <= span.from), span.to + by((c) => c.from < span.to)];
  const [first, last] = [doc.lineAt(from), doc.lineAt(to)];
  return { ...range, line: first.number, col: columnOfOffset(first.text, from - first.from), end_line: last.number, end_col: columnOfOffset(last.text, to - last.from) };
}

/** Writes the knob for the value of the expression text.slice(from, to). */
export function writeKnob(text: string, from: number, to: number, wanted: Wanted): Written {
  try {
    return new Writer(text, wanted).write(from, to);
  } catch (e) {
    if (e instanceof Impossible) return { why: e.message };
    throw e;
  }
}
