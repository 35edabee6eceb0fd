// nest: the loops of an MLIR text as a drawing: a box for each loop, its rounds written at its head, its work inside.
import type { TokenClass } from "../highlight/token";
import { mlirClass } from "../highlight/opclass";
import { rankOf } from "../state/ranking";
import { CHAR, LINE, TABLE_MAX, type Box, type Drawing, type Table, type Wanted } from "./drawing";
import { loopsOf, type Row } from "./loops";

/** At first, loops are open as long as there are not more rows than this. */
const ROWS_AT_FIRST = 90;
/** Never more than this. */
const ROWS_MAX = 6000;
const HEAD = 24;
const ROW = LINE + 5;
const PAD = 8;
const GAP = 5;
const TEXT_MAX = 150;
const NAMES_MAX = 4;

interface Node {
  row: Row;
  id: string;
  depth: number;
  parent: Node | null;
  children: Node[];
  isOpen: boolean;
}

function nodesOf(rows: readonly Row[], parent: Node | null): Node[] {
  const seen = new Map<number, number>();
  return rows.map((row) => {
    // the loops that an operation stands for have its line
    const nth = (seen.get(row.op.line) ?? 0) + 1;
    seen.set(row.op.line, nth);
    const node: Node = { row, id: `${parent ? `${parent.id}/` : ""}${row.op.line}${nth > 1 ? `~${nth}` : ""}`, depth: parent ? parent.depth + 1 : 0, parent, children: [], isOpen: false };
    node.children = nodesOf(row.children, node);
    return node;
  });
}

function size(nodes: readonly Node[]): number {
  return nodes.reduce((n, node) => n + 1 + size(node.children), 0);
}

/** Opens what the user has opened, otherwise as much as fits, the outer loops first. */
function open(top: readonly Node[], opened: ReadonlyMap<string, boolean>): void {
  let rows = top.length;
  let level = [...top];
  while (level.length > 0) {
    const next: Node[] = [];
    for (const node of level) {
      if (node.children.length === 0) continue;
      const told = opened.get(node.id);
      if (told === undefined ? rows + size(node.children) > ROWS_AT_FIRST && rows + node.children.length > ROWS_AT_FIRST : !told) continue;
      if (rows + node.children.length > ROWS_MAX) continue;
      node.isOpen = true;
      rows += node.children.length;
      next.push(...node.children);
    }
    level = next;
  }
}

function cut(text: string): string {
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX - 1)}…` : text;
}

/** What a closed loop does: the names of its operations, the most telling first. */
function work(node: Node): string {
  const names = new Map<string, number>();
  const visit = (n: Node) => {
    if (n.row.kind !== "loop" && n.row.text !== "" && (n.row.kind === "block" || n.row.title !== "")) names.set(n.row.op.label.replace(/^(?:nisa|linalg)\./, ""), rankOf(n.row.tone));
    if (n.row.kind !== "block" || n.row.text === "") n.children.forEach(visit);
  };
  node.children.forEach(visit);
  const list = [...names].sort((a, b) => a[1] - b[1]).map(([name]) => name);
  return list.length > NAMES_MAX ? `${list.slice(0, NAMES_MAX).join(", ")} and ${list.length - NAMES_MAX} more` : list.join(", ");
}

function detailOf(node: Node): string {
  const { row } = node;
  const loop = [row.range, row.trip === "" ? "" : `${row.trip} ${row.trip === "1" ? "round" : "rounds"}`, ...row.kinds].filter((p) => p !== "").join(" · ");
  if (row.kind === "op") return cut([row.text, row.shapes].filter((p) => p !== "").join("   "));
  if (row.kind === "block" && row.text !== "") return node.isOpen ? row.shapes : cut(`${loopsText(node)}   ${row.text}   ${row.shapes}`);
  return node.isOpen ? loop : [loop, work(node)].filter((p) => p !== "").join(" · ");
}

/** The implied loops of a closed operation: "d0 128 · d1 64 reduction". */
function loopsText(node: Node): string {
  const parts: string[] = [];
  for (let at: Node | undefined = node.children[0]; at && at.row.kind === "loop"; at = at.children[0]) {
    const isPlain = at.row.kinds.length === 0 || at.row.kinds[0] === "parallel";
    parts.push(`${at.row.title} ${at.row.range}${isPlain ? "" : ` ${at.row.kinds.join(" ")}`}`);
  }
  return parts.join(" · ");
}

function linesOf(row: Row): number[] {
  return [row.op.line, ...row.children.flatMap(linesOf)];
}

function toneOf(row: Row): TokenClass {
  return row.kind === "loop" ? "control" : mlirClass(row.op.label);
}

class Layout {
  readonly boxes: Box[] = [];
  private readonly widths = new Map<Node, number>();

  /** A column of boxes; returns the y below it. */
  place(nodes: readonly Node[], x: number, y: number): number {
    let at = y;
    for (const node of nodes) {
      const box = this.box(node, x, at);
      this.boxes.push(box);
      if (node.isOpen) {
        const below = this.place(node.children, x + PAD + 6, at + HEAD + 2);
        box.height = below - at + PAD - GAP;
      }
      at += box.height + GAP;
    }
    return at;
  }

  /** As wide as its text and its members. */
  width(node: Node): number {
    let width = this.widths.get(node);
    if (width === undefined) {
      const own = (node.row.title.length + detailOf(node).length + (node.row.kind === "op" ? 2 : 5)) * CHAR + 2 * PAD;
      const inner = node.isOpen ? Math.max(0, ...node.children.map((c) => this.width(c))) + 2 * PAD + 6 : 0;
      this.widths.set(node, (width = Math.round(Math.max(own, inner))));
    }
    return width;
  }

  private box(node: Node, x: number, y: number): Box {
    const { row } = node;
    const isFold = node.children.length > 0;
    return {
      id: node.id,
      kind: row.kind === "loop" ? "loop" : row.kind === "block" ? "group" : "op",
      x,
      y,
      width: this.width(node),
      height: isFold ? HEAD : ROW,
      title: row.title,
      detail: detailOf(node),
      tone: toneOf(row),
      line: row.op.line,
      lines: node.isOpen ? [row.op.line] : linesOf(row),
      open: isFold ? node.isOpen : null,
      depth: node.depth,
      range: -1,
    };
  }
}

function tableOf(nodes: readonly Node[]): Table {
  const rows: { line: number; depth: number; cells: string[] }[] = [];
  const visit = (node: Node) => {
    const { row } = node;
    const what = row.kind === "op" || row.text !== "" ? [row.text, row.shapes].filter((t) => t !== "").join("   ") : "";
    rows.push({ line: row.op.line, depth: node.depth, cells: [row.title, row.range, row.trip, row.kinds.join(", "), what] });
    node.children.forEach(visit);
  };
  nodes.forEach(visit);
  return { heads: ["loop or operation", "range", "rounds", "kind", "on what"], rows: rows.slice(0, TABLE_MAX), more: Math.max(rows.length - TABLE_MAX, 0) };
}

export function nestDrawing(wanted: Wanted): Drawing {
  const nodes = nodesOf(loopsOf(wanted.text, wanted.dialect, wanted.constants), null);
  open(nodes, wanted.opened);
  const layout = new Layout();
  const bottom = layout.place(nodes, PAD, PAD);
  const width = Math.max(0, ...nodes.map((n) => layout.width(n))) + 2 * PAD;
  const all = (list: readonly Node[]): Node[] => list.flatMap((n) => [n, ...all(n.children)]);
  const loops = all(nodes).filter((n) => n.row.kind === "loop" && /\./.test(n.row.op.label) && !n.row.op.label.startsWith("linalg.")).length;
  const operations = new Set(all(nodes).filter((n) => n.row.kind !== "loop").map((n) => n.row.op.line)).size;
  const summary = `${loops > 0 ? `${loops} ${loops === 1 ? "loop" : "loops"}, ` : ""}${operations} operations`;
  return { width, height: bottom + PAD, boxes: layout.boxes, edges: [], table: tableOf(nodes), summary };
}
