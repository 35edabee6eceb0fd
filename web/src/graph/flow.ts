// flow: the data flow of an HLO module as a drawing: operations as boxes, layer by layer from the parameters down to the
// result, groups as frames around their operations.
import { Graph, layout } from "@dagrejs/dagre";
import { hloClass } from "../highlight/opclass";
import { CHAR, LINE, TABLE_MAX, type Box, type Drawing, type Edge, type Table, type Wanted } from "./drawing";
import { isLeaf, treeOf, type Group, type Leaf, type Tree } from "./tree";

/** At first, all groups of a level are open if there are not more boxes than this; otherwise only the first ones, up to
 * the lower number. */
const BOXES_AT_FIRST = 56;
const BOXES_ANYWAY = 16;
/** Never more than this: laying out takes more than linear time. */
const BOXES_MAX = 400;
const TITLE_MAX = 34;
const PAD = 10;
/** The room for the sign that opens a group. */
const FOLD = 14;
/** So many parameters of one closed group are one box. */
const BUNDLE_MIN = 3;
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
  return `${isResult && op.name !== "result" ? "result · " : ""}${cut(op.name, 18)} · ${op.shape}`;
}

function count(group: Group): number {
  return group.children.reduce((n, child) => n + (isLeaf(child) ? 1 : count(child)), 0);
}

function leavesOf(item: Leaf | Group): Leaf[] {
  return isLeaf(item) ? [item] : item.children.flatMap(leavesOf);
}

/** The groups that are open: what the user says, otherwise whole levels as long as they fit. */
function openGroups(root: Group, opened: ReadonlyMap<string, boolean>): Set<Group> {
  const open = new Set<Group>([root]);
  let boxes = root.children.length;
  let level = [root];
  while (level.length > 0) {
    const next = level.flatMap((g) => g.children.filter((c): c is Group => !isLeaf(c)));
    const whole = next.reduce((n, g) => n + g.children.length - 1, boxes) <= BOXES_AT_FIRST;
    const opening = next.filter((g) => {
      const told = opened.get(g.id);
      const fits = whole || boxes + g.children.length - 1 <= BOXES_ANYWAY;
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
  const width = Math.round(Math.max(title.length, detail.length) * CHAR + 2 * PAD + FOLD);
  return { id: group.id, kind: "group", x: 0, y: 0, width, height: 2 * LINE + 8, title, detail, tone: "control", line: group.op?.line ?? 0, lines: isOpen ? (group.op ? [group.op.line] : []) : linesOf(group), open: isOpen, depth, range: group.range };
}

/** Parameters that only one closed group uses become one box. */
function bundle(tree: Tree, shown: Shown): void {
  const users = new Map<Leaf, Set<Box>>();
  for (const { from, to } of tree.edges) {
    const box = shown.of.get(to);
    if (from.isParameter && box) users.set(from, (users.get(from) ?? new Set<Box>()).add(box));
  }
  const bundles = new Map<Box, Leaf[]>();
  for (const [parameter, boxes] of users) {
    const [user] = boxes;
    if (user && boxes.size === 1 && user.open === false) bundles.set(user, [...(bundles.get(user) ?? []), parameter]);
  }
  for (const [user, leaves] of bundles) {
    if (leaves.length < BUNDLE_MIN) continue;
    const [title, detail] = [`${leaves.length} parameters`, cut(leaves.map((l) => l.op.name).join(", "), TITLE_MAX)];
    const width = Math.round(Math.max(title.length, detail.length) * CHAR + 2 * PAD + FOLD);
    const box: Box = { id: `parameters of ${user.id}`, kind: "parameter", x: 0, y: 0, width, height: 2 * LINE + 8, title, detail, tone: "alloc", line: 0, lines: leaves.map((l) => l.op.line), open: null, depth: user.depth, range: -1 };
    for (const leaf of leaves) {
      const own = shown.of.get(leaf);
      if (own) shown.boxes.delete(own.id);
      if (own) shown.parents.delete(own.id);
      shown.of.set(leaf, box);
    }
    shown.boxes.set(box.id, box);
    const frame = shown.parents.get(user.id);
    if (frame !== undefined) shown.parents.set(box.id, frame);
  }
}

interface Shown {
  boxes: Map<string, Box>;
  parents: Map<string, string>;
  /** The box that shows a leaf: its own, or that of the outermost closed group around it. */
  of: Map<Leaf, Box>;
}

/** A parameter that only one open group uses stands in it, so that its edge is short. */
function moveParameters(tree: Tree, open: ReadonlySet<Group>): Map<Leaf, Group> {
  const users = new Map<Leaf, Leaf[]>();
  for (const { from, to } of tree.edges) if (from.isParameter) users.set(from, [...(users.get(from) ?? []), to]);
  const moved = new Map<Leaf, Group>();
  for (const [parameter, list] of users) {
    const around = (leaf: Leaf): Group[] => {
      const groups: Group[] = [];
      for (let g: Group | null = leaf.parent; g; g = g.parent) groups.unshift(g);
      return groups;
    };
    const first = around(list[0] as Leaf);
    let depth = 0;
    while (depth + 1 < first.length && open.has(first[depth + 1] as Group) && list.every((leaf) => around(leaf)[depth + 1] === first[depth + 1])) depth++;
    if (depth > 0) moved.set(parameter, first[depth] as Group);
  }
  return moved;
}

function shownOf(tree: Tree, open: ReadonlySet<Group>): Shown {
  const { root } = tree;
  const moved = moveParameters(tree, open);
  const shown: Shown = { boxes: new Map(), parents: new Map(), of: new Map() };
  const visit = (group: Group, depth: number): void => {
    for (const child of group.children) {
      const isOpen = !isLeaf(child) && open.has(child);
      const box = isLeaf(child) ? boxOfLeaf(child, depth) : boxOfGroup(child, isOpen, depth);
      shown.boxes.set(box.id, box);
      const frame = (isLeaf(child) && moved.get(child)) || group;
      if (frame !== root) shown.parents.set(box.id, frame.id);
      if (isOpen) visit(child as Group, depth + 1);
      else for (const leaf of leavesOf(child)) shown.of.set(leaf, box);
    }
  };
  visit(root, 0);
  bundle(tree, shown);
  // a frame comes before what stands in it
  shown.boxes = new Map([...shown.boxes].sort(([, a], [, b]) => Number(b.open === true) - Number(a.open === true)));
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
  // the head of a frame at the top stands above it
  const down = Math.max(0, PAD - Math.min(...[...shown.boxes.values()].map((b) => b.y)));
  for (const box of shown.boxes.values()) box.y += down;
  const placed = edges.map((e) => ({ ...e, points: graph.edge(e.from, e.to).points.map((p): [number, number] => [Math.round(p.x), Math.round(p.y + down)]) }));
  const size = graph.graph() as { width?: number; height?: number };
  return { width: size.width ?? 0, height: (size.height ?? 0) + down, edges: placed };
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
  return { heads: ["operation", "name", "shape", "operands", "uses"], rows: rows.slice(0, TABLE_MAX), more: Math.max(rows.length - TABLE_MAX, 0) };
}

export function flowDrawing(wanted: Wanted): Drawing {
  const tree = treeOf(wanted.text, wanted.calls, wanted.constants);
  const shown = shownOf(tree, openGroups(tree.root, wanted.opened));
  const { width, height, edges } = laidOut(shown, shownEdges(tree, shown));
  const groups = [...shown.boxes.values()].filter((b) => b.kind === "group");
  const summary = `${count(tree.root)} operations${groups.length > 0 ? ` in ${groups.length} groups` : ""}`;
  return { width, height, boxes: [...shown.boxes.values()], edges, table: tableOf(tree), summary };
}
