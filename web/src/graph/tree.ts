// tree: the operations of an HLO module as a tree of groups, with the edges between the operations.
//
//   entry ─┬─ parameter x
//          ├─ attention ─┬─ rmsnorm ── multiply, reduce, …       a call of a function of the kernel
//          │             └─ dot
//          └─ while ─────┬─ body ── parameter, dot, …            an instruction that calls computations
//                        └─ condition ── compare
//
// The values of constants are written into the operations that use them, unless the reader asks for the constants.
import type { Call } from "./drawing";
import { readHlo, type Computation, type HloOp } from "./hlo";

export interface Leaf {
  id: string;
  op: HloOp;
  parent: Group;
  /** By operand: the value of a constant that is written here; null for an operand that an edge brings. */
  values: readonly (string | null)[];
  /** Lines of the operations that are written here. */
  absorbed: number[];
  /** Of an instruction that only applies a small computation to numbers: what that does, "add". */
  applied: string;
  isParameter: boolean;
  isResult: boolean;
}

export interface Group {
  id: string;
  name: string;
  /** The instruction that calls the computation; null for a call of a function of the kernel. */
  op: HloOp | null;
  range: number;
  parent: Group | null;
  children: (Leaf | Group)[];
}

export interface Tree {
  root: Group;
  edges: { from: Leaf; to: Leaf }[];
}

/** A computation of at most so many instructions on numbers is written into the instruction that applies it. */
const APPLIED_MAX = 6;
/** A module in which computations call each other often is not unfolded beyond this. */
const LEAVES_MAX = 20_000;
const VALUE_MAX = 14;

export function isLeaf(item: Leaf | Group): item is Leaf {
  return "values" in item;
}

function short(value: string): string {
  return value.length > VALUE_MAX ? `${value.slice(0, VALUE_MAX - 1)}…` : value;
}

/** What a small computation on numbers does, "add"; "" if it is none. */
function appliedName(computation: Computation | undefined): string {
  if (!computation || computation.ops.length > APPLIED_MAX) return "";
  const isOnNumbers = computation.ops.every((op) => !op.shape.includes("×") && !op.shape.includes(" ") && op.calls.length === 0);
  return isOnNumbers ? (computation.ops.find((op) => op.isRoot)?.opcode ?? "") : "";
}

/** The value of an operand that is a constant, or a constant in every element; null for any other. */
function valueOf(op: HloOp | undefined, byName: ReadonlyMap<string, HloOp>): { text: string; lines: number[] } | null {
  if (!op || op.isRoot) return null;
  if (op.opcode === "constant") return { text: short(op.literal), lines: [op.line] };
  if (op.opcode !== "broadcast") return null;
  const inner = byName.get(op.operands[0] ?? "");
  return inner?.opcode === "constant" && !inner.shape.includes(" ") ? { text: short(inner.literal), lines: [op.line, inner.line] } : null;
}

function commonPrefix(lists: readonly (readonly Call[])[]): number {
  const first = lists[0];
  if (!first) return 0;
  let n = first.length;
  for (const list of lists) {
    let i = 0;
    while (i < n && list[i]?.range === first[i]?.range) i++;
    n = i;
  }
  return n;
}

class Builder {
  readonly edges: { from: Leaf; to: Leaf }[] = [];
  private readonly computations = new Map<string, Computation>();
  private leaves = 0;

  constructor(
    list: readonly Computation[],
    private readonly calls: readonly (readonly Call[])[],
    private readonly constants: boolean,
  ) {
    for (const c of list) this.computations.set(c.name, c);
  }

  private callsOf(op: HloOp): readonly Call[] {
    return this.calls[op.line - 1] ?? [];
  }

  /** Puts the operations of a computation into a group.  Returns what produces its result and what takes its arguments. */
  place(computation: Computation, into: Group): { results: Leaf[]; parameters: Map<number, Leaf[]> } {
    const byName = new Map(computation.ops.map((op) => [op.name, op]));
    const values = new Map<string, { text: string; lines: number[] }>();
    for (const op of computation.ops) {
      const value = this.constants ? null : valueOf(op, byName);
      if (value) values.set(op.name, value);
    }
    const shown = computation.ops.filter((op) => !values.has(op.name));
    const groups = this.groupsOf(shown, into, computation.isEntry ? 0 : commonPrefix(shown.map((op) => this.callsOf(op)).filter((calls) => calls.length > 0)));
    const results = new Map<string, Leaf[]>();
    const parameters = new Map<number, Leaf[]>();
    let last: Leaf[] = [];
    for (const op of shown) {
      const group = groups.get(op) ?? into;
      const found = this.placeOp(op, group, values, results, computation.isEntry);
      results.set(op.name, found);
      if (op.opcode === "parameter") parameters.set(Number(op.literal), found);
      if (op.isRoot || last.length === 0) last = found;
    }
    return { results: last, parameters };
  }

  private placeOp(op: HloOp, group: Group, values: ReadonlyMap<string, { text: string; lines: number[] }>, results: ReadonlyMap<string, Leaf[]>, isEntry: boolean): Leaf[] {
    const producers = op.operands.map((name) => (values.has(name) ? [] : (results.get(name) ?? [])));
    const called = op.calls.flatMap(({ role, name }) => {
      const computation = this.computations.get(name);
      return computation ? [{ role, computation }] : [];
    });
    const applied = called.length === 1 ? appliedName(called[0]?.computation) : "";
    if (called.length > 0 && applied === "" && this.leaves < LEAVES_MAX) return this.placeCall(op, group, called, producers);
    const absorbed = op.operands.flatMap((name) => values.get(name)?.lines ?? []);
    const leaf: Leaf = {
      id: `${group.id}:${op.line}`,
      op,
      parent: group,
      values: op.operands.map((name) => values.get(name)?.text ?? null),
      absorbed,
      applied,
      isParameter: isEntry && op.opcode === "parameter",
      isResult: isEntry && op.isRoot,
    };
    this.leaves++;
    group.children.push(leaf);
    for (const from of new Set(producers.flat())) this.edges.push({ from, to: leaf });
    return [leaf];
  }

  private placeCall(op: HloOp, parent: Group, called: readonly { role: string; computation: Computation }[], producers: readonly Leaf[][]): Leaf[] {
    const group: Group = { id: `${parent.id}@${op.line}`, name: op.opcode, op, range: -1, parent, children: [] };
    parent.children.push(group);
    const results: Leaf[] = [];
    for (const { role, computation } of called) {
      const into: Group = called.length === 1 ? group : { id: `${group.id}.${role}`, name: role, op: null, range: -1, parent: group, children: [] };
      if (into !== group) group.children.push(into);
      const inner = this.place(computation, into);
      const isDirect = inner.parameters.size === producers.length;
      for (const [number, leaves] of inner.parameters)
        for (const to of leaves) for (const from of new Set(isDirect ? producers[number] : producers.flat())) this.edges.push({ from, to });
      if (role !== "condition") results.push(...inner.results);
    }
    return results;
  }

  /** The group of each operation, by the calls that led to it.  Calls of the same expression are one group unless
   * operations between them depend on one and feed the other, as in the rounds of a loop. */
  private groupsOf(ops: readonly HloOp[], into: Group, skip: number): Map<HloOp, Group> {
    const of = new Map<HloOp, Group>();
    const split = (list: readonly HloOp[], parent: Group, depth: number): void => {
      const runs: { call: Call; ops: HloOp[] }[] = [];
      const byCall = new Map<number, HloOp[]>();
      let call: Call | undefined;
      for (const op of list) {
        const next = this.callsOf(op)[depth];
        if (next && next.range === call?.range) runs.at(-1)?.ops.push(op);
        else if (next) runs.push({ call: next, ops: [op] });
        if (next) byCall.set(next.range, [...(byCall.get(next.range) ?? []), op]);
        call = next;
      }
      const counts = new Map<number, number>();
      for (const run of runs) {
        const all = byCall.get(run.call.range) ?? [];
        const isWhole = all.length === run.ops.length || isConvex(all, ops);
        const n = (counts.get(run.call.range) ?? 0) + 1;
        counts.set(run.call.range, n);
        if (isWhole && n > 1) continue; // in the group of the first run
        const members = isWhole ? all : run.ops;
        if (members.length < 2) continue;
        const group: Group = { id: `${parent.id}/${run.call.range}${n > 1 ? `~${n}` : ""}`, name: n > 1 ? `${run.call.name} (${n})` : run.call.name, op: null, range: run.call.range, parent, children: [] };
        for (const op of members) of.set(op, group);
        split(members, group, depth + 1);
      }
    };
    split(ops, into, skip);
    // a group takes its place in its parent where its first operation stands
    const placed = new Set<Group>([into]);
    const place = (group: Group): void => {
      if (placed.has(group) || !group.parent) return;
      placed.add(group);
      place(group.parent);
      group.parent.children.push(group);
    };
    for (const op of ops) {
      const group = of.get(op);
      if (group) place(group);
    }
    return of;
  }
}

/** Whether no path between two of the operations leads through another. */
function isConvex(members: readonly HloOp[], all: readonly HloOp[]): boolean {
  const inside = new Set(members.map((op) => op.name));
  const after = new Set<string>();
  for (const op of all) {
    const isAfter = op.operands.some((name) => after.has(name));
    if (inside.has(op.name)) {
      if (isAfter) return false;
    } else if (isAfter || op.operands.some((name) => inside.has(name))) after.add(op.name);
  }
  return true;
}

/** Puts the only member of a group in the group's place. */
function dissolve(group: Group): void {
  group.children = group.children.flatMap((child) => {
    if (isLeaf(child)) return [child];
    dissolve(child);
    if (child.children.length > 1 || child.op) return child.children.length > 0 ? [child] : [];
    for (const only of child.children) only.parent = group;
    return child.children;
  });
}

/** A group of more operations is divided. */
const CHILDREN_MAX = 120;
const PART = 50;

/** Divides what has too many members to be drawn at once into stretches of the text: no operation of a stretch depends on
 * a later one. */
function divide(group: Group): void {
  for (const child of group.children) if (!isLeaf(child)) divide(child);
  while (group.children.length > CHILDREN_MAX) {
    const divided: Group["children"] = [];
    for (let i = 0; i < group.children.length; i += PART) {
      const members = group.children.slice(i, i + PART);
      const part: Group = { id: `${group.id}+${divided.length}.${group.children.length}`, name: `${nameOf(members[0])} … ${nameOf(members.at(-1))}`, op: null, range: -1, parent: group, children: members };
      for (const m of members) m.parent = part;
      divided.push(part);
    }
    group.children = divided;
  }
}

function nameOf(item: Leaf | Group | undefined): string {
  if (!item) return "";
  return isLeaf(item) ? item.op.name : (item.op?.name ?? item.name.replace(/ … .*/, ""));
}

export function treeOf(text: string, calls: readonly (readonly Call[])[], constants: boolean): Tree {
  const list = readHlo(text.split("\n"));
  const entry = list.find((c) => c.isEntry) ?? list.at(-1);
  const root: Group = { id: "", name: entry?.name ?? "", op: null, range: -1, parent: null, children: [] };
  const builder = new Builder(list, calls, constants);
  if (entry) builder.place(entry, root);
  dissolve(root);
  divide(root);
  return { root, edges: builder.edges };
}
