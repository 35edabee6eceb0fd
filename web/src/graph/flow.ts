// flow: the data flow of an HLO module as a drawing: operations as boxes, layer by layer from the parameters down to the
// result, groups as frames around their operations.
import { Graph, layout } from "@dagrejs/dagre";
import { hloClass } from "../highlight/opclass";
import { CHAR, LINE, type Box, type Drawing, type Edge, type Table, type Wanted } from "./drawing";
import { isLeaf, treeOf, type Group, type Leaf, type Tree } from "./tree";

/** At first, groups are open as long as there are not more boxes than this. */
const BOXES_AT_FIRST = 56;
/** Never more than this: laying out takes more than linear time. */
const BOXES_MAX = 400;
const TITLE_MAX = 34;
const PAD = 10;
const HEAD = 22;

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function titleOf({ op, values, applied }: Leaf): string {
  const name = applied === "" ? op.opcode : `${op.opcode} ${applied}`;
  if (op.opcode === "parameter") return op.name;
  if (op.opcode === "constant" || op.opcode === "iota") return cut(`${name} ${op.literal}`, TITLE_MAX);
  const hasValues = values.some((v) => v !== null) && !(applied !== "" && op.opcode === "reduce");
  const args = hasValues ? `(${values.map((v) => v ?? "·").join(", ")})` : "";
  return cut(`${name}${args}${op.attributes ? ` ${op.attributes}` : ""}`, TITLE_MAX);
}

function detailOf({ op, isParameter, isResult }: Leaf): string {
  if (isParameter) return `parameter ${op.literal} · ${op.shape}`;
  return `${isResult ? "result · " : ""}${cut(op.name, 18)} · ${op.shape}`;
}

function count(group: Group): number {
  return group.children.reduce((n, child) => n + (isLeaf(child) ? 1 : count(child)), 0);
}

function leavesOf(item: Leaf | Group): Leaf[] {
  return isLeaf(item) ? [item] : item.children.flatMap(leavesOf);
}

/** The groups that are open: what the user says, otherwise as many as fit, the outer ones first. */
function openGroups(root: Group, opened: ReadonlyMap<string, boolean>): Set<Group> {
  const open = new Set<Group>([root]);
  let boxes = root.children.length;
  let level = [root];
  while (level.length > 0) {
    const next = level.flatMap((g) => g.children.filter((c): c is Group => !isLeaf(c)));
    const opening = next.filter((g) => {
      const told = opened.get(g.id);
      const fits = boxes + g.children.length - 1 <= BOXES_AT_FIRST;
      if (!(told ?? fits) || boxes + g.children.length > BOXES_MAX) return false;
      boxes += g.children.length - 1;
      return true;
    });
    for (const g of opening) open.add(g);
    level = opening;
  }
  return open;
}

function boxOfLeaf(leaf: Leaf, depth: number): Box {
  const [title, detail] = [titleOf(leaf), detailOf(leaf)];
  const kind = leaf.isParameter ? "parameter" : leaf.isResult ? "result" : leaf.op.opcode === "constant" ? "constant" : "op";
  const width = Math.round(Math.max(title.length, detail.length) * CHAR + 2 * PAD);
  const { line } = leaf.op;
  return { id: leaf.id, kind, x: 0, y: 0, width, height: 2 * LINE + 8, title, detail, tone: hloClass(leaf.op.opcode), line, lines: [line, ...leaf.absorbed], open: null, depth, range: -1 };
}

function linesOf(group: Group): number[] {
  const own = group.op ? [group.op.line] : [];
  return [...own, ...group.children.flatMap((c) => (isLeaf(c) ? [c.op.line, ...c.absorbed] : linesOf(c)))];
}

function boxOfGroup(group: Group, isOpen: boolean, depth: number): Box {
  const n = count(group);
  const title = cut(group.op ? `${group.name} ${group.op.name}` : group.name, TITLE_MAX);
  const detail = `${n} operations${group.op ? ` · ${group.op.shape}` : ""}`;
  const width = Math.round(Math.max(title.length + 2, detail.length) * CHAR + 2 * PAD);
  return { id: group.id, kind: "group", x: 0, y: 0, width, height: 2 * LINE + 8, title, detail, tone: "control", line: group.op?.line ?? 0, lines: linesOf(group), open: isOpen, depth, range: group.range };
}

interface Shown {
  boxes: Map<string, Box>;
  parents: Map<string, string>;
  /** The box that shows a leaf: its own, or that of the outermost closed group around it. */
  of: Map<Leaf, Box>;
}

function shownOf(root: Group, open: ReadonlySet<Group>): Shown {
  const shown: Shown = { boxes: new Map(), parents: new Map(), of: new Map() };
  const visit = (group: Group, depth: number): void => {
    for (const child of group.children) {
      const isOpen = !isLeaf(child) && open.has(child);
      const box = isLeaf(child) ? boxOfLeaf(child, depth) : boxOfGroup(child, isOpen, depth);
      shown.boxes.set(box.id, box);
      if (group !== root) shown.parents.set(box.id, group.id);
      if (isOpen) visit(child as Group, depth + 1);
      else for (const leaf of leavesOf(child)) shown.of.set(leaf, box);
    }
  };
  visit(root, 0);
  return shown;
}

/** Between the shown boxes, each pair once. */
function shownEdges(tree: Tree, shown: Shown): Edge[] {
  const found = new Map<string, { from: Box; to: Box; texts: Set<string> }>();
  for (const { from, to } of tree.edges) {
    const [a, b] = [shown.of.get(from), shown.of.get(to)];
    if (!a || !b || a === b) continue;
    const key = `${a.id}\n${b.id}`;
    const edge = found.get(key) ?? { from: a, to: b, texts: new Set<string>() };
    edge.texts.add(`${from.op.name} · ${from.op.shape}`);
    found.set(key, edge);
  }
  return [...found.values()].map(({ from, to, texts }) => ({ from: from.id, to: to.id, points: [], text: [...texts].slice(0, 6).join("\n") }));
}

function laidOut(shown: Shown, edges: readonly Edge[]): { width: number; height: number; edges: Edge[] } {
  const graph = new Graph<object, { x: number; y: number; width: number; height: number }, { points: { x: number; y: number }[] }>({ compound: true });
  graph.setGraph({ rankdir: "TB", nodesep: 14, edgesep: 8, ranksep: 26, marginx: PAD, marginy: PAD, ranker: "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({ points: [] }));
  for (const box of shown.boxes.values()) graph.setNode(box.id, { x: 0, y: 0, width: box.width, height: box.height });
  for (const [id, parent] of shown.parents) graph.setParent(id, parent);
  for (const { from, to } of edges) graph.setEdge(from, to);
  layout(graph as never);
  for (const box of shown.boxes.values()) {
    const at = graph.node(box.id);
    const head = box.open ? HEAD - 6 : 0;
    Object.assign(box, { width: at.width, height: at.height + head, x: at.x - at.width / 2, y: at.y - at.height / 2 - head });
  }
  const placed = edges.map((e) => ({ ...e, points: graph.edge(e.from, e.to).points.map((p): [number, number] => [Math.round(p.x), Math.round(p.y)]) }));
  const size = graph.graph() as { width?: number; height?: number };
  return { width: size.width ?? 0, height: size.height ?? 0, edges: placed };
}

function tableOf(tree: Tree): Table {
  const takers = new Map<Leaf, number>();
  for (const { from } of tree.edges) takers.set(from, (takers.get(from) ?? 0) + 1);
  const givers = new Map<Leaf, string[]>();
  for (const { from, to } of tree.edges) givers.set(to, [...(givers.get(to) ?? []), from.op.name]);
  const rows: { line: number; depth: number; cells: string[] }[] = [];
  const visit = (item: Leaf | Group, depth: number): void => {
    if (!isLeaf(item)) {
      if (item.parent) rows.push({ line: item.op?.line ?? 0, depth, cells: [item.name, item.op?.name ?? "", item.op?.shape ?? "", `${count(item)} operations`, ""] });
      for (const child of item.children) visit(child, item.parent ? depth + 1 : depth);
      return;
    }
    const inputs = [...(givers.get(item) ?? []), ...item.values.filter((v) => v !== null)];
    rows.push({ line: item.op.line, depth, cells: [titleOf(item), item.op.name, item.op.shape, inputs.join(", "), String(takers.get(item) ?? 0)] });
  };
  visit(tree.root, 0);
  return { heads: ["operation", "name", "shape", "operands", "uses"], rows };
}

export function flowDrawing(wanted: Wanted): Drawing {
  const tree = treeOf(wanted.text, wanted.calls, wanted.constants);
  const shown = shownOf(tree.root, openGroups(tree.root, wanted.opened));
  const { width, height, edges } = laidOut(shown, shownEdges(tree, shown));
  const groups = [...shown.boxes.values()].filter((b) => b.kind === "group");
  const summary = `${count(tree.root)} operations${groups.length > 0 ? ` in ${groups.length} groups` : ""}`;
  return { width, height, boxes: [...shown.boxes.values()], edges, table: tableOf(tree), summary };
}
