// diffcolumns: a comparison of two texts: side by side, or in one column; equal stretches are folded; changes are stepped through.
import type { Stage, StageDiff } from "../api/types";
import { diffRows, shortRows, sideLines, unifiedLines, type DiffLine, type ShortLines } from "../state/diff";
import { words } from "../state/pairs";
import { compactOf } from "./rows";
import type { KernelOutcome } from "../state/outcome";
import type { Light } from "../state/selection";
import { DiffColumn, opOfLine, scrollTogether, type Column, type DiffSide } from "./diffview";

export function linesOf(text: string): string[] {
  return text.replace(/\n$/, "").split("\n");
}

const shorts = new WeakMap<Stage, ShortLines>();

function shortOf(stage: Stage): ShortLines {
  let short = shorts.get(stage);
  if (!short) shorts.set(stage, (short = compactOf(stage).map((line) => line.text)));
  return short;
}

export function sideOfStage(kernel: KernelOutcome, stage: Stage): DiffSide {
  const origin = { map: kernel.map, links: kernel.map.linksOf(stage) };
  const short = stage.dialect === "nisa" ? () => shortOf(stage) : null;
  return { language: stage.dialect === "hlo" ? "hlo" : stage.dialect === "nki" ? "python" : "mlir", origin, lines: linesOf(stage.text), short };
}

export interface DiffTexts {
  from: DiffSide;
  to: DiffSide;
  /** What the columns are called: of both in one column, of the old side, of the new side. */
  labels: { both: string; from: string; to: string };
}

export interface DiffEvents {
  /** An operation was clicked. */
  picked(which: "from" | "to", op: number): void;
  /** Another change has become the current one. */
  moved(): void;
}

export class DiffColumns {
  private readonly left: DiffColumn;
  private readonly right: DiffColumn;
  private texts: DiffTexts | null = null;
  private diff: StageDiff | null = null;
  private unified = false;
  private full = false;
  private open: Set<number> | "all" = new Set();
  private columns: { left: Column; right: Column } | null = null;
  /** The current change, from 0; -1: none yet. */
  hunk = -1;

  /** `host` shall have no other children that are columns. */
  constructor(
    private readonly host: HTMLElement,
    private readonly events: DiffEvents,
  ) {
    const clicked = (line: DiffLine) => this.clicked(line);
    const column = () => {
      const box = document.createElement("div");
      box.className = "diff-column";
      return host.appendChild(box);
    };
    this.left = new DiffColumn(column(), { clicked });
    this.right = new DiffColumn(column(), { clicked });
    scrollTogether(this.left.view, this.right.view);
  }

  get hunks(): number {
    return this.diff?.hunks.length ?? 0;
  }

  /** Shows another comparison, from its first change on. */
  show(texts: DiffTexts, diff: StageDiff, unified: boolean): void {
    this.texts = texts;
    this.diff = diff;
    this.unified = unified;
    this.open = new Set();
    this.hunk = -1;
    this.draw();
    if (diff.hunks.length > 0) this.goTo(0);
  }

  forget(): void {
    this.texts = null;
    this.diff = null;
    this.columns = null;
    this.hunk = -1;
  }

  setUnified(unified: boolean): void {
    if (this.unified === unified) return;
    this.unified = unified;
    this.draw();
  }

  /** Shows lines as they are printed, or in the compact form if they have one. */
  setFull(full: boolean): void {
    if (this.full === full) return;
    this.full = full;
    this.keepPlace(() => this.draw());
  }

  setWrap(wrap: boolean): void {
    // the lines of two columns must have the same height
    this.left.setWrap(wrap && this.unified);
  }

  /** Unfolds every stretch of equal lines. */
  expandAll(): void {
    this.open = "all";
    this.keepPlace(() => this.draw());
  }

  /** Goes to the next or previous change; wraps at the ends. */
  step(by: 1 | -1): void {
    const n = this.hunks;
    if (n > 0) this.goTo((this.hunk + by + n) % n);
  }

  /** Goes to the first change. */
  first(): void {
    if (this.hunks > 0) this.goTo(0);
  }

  /** Goes to a line of the new text. */
  goToLine(line: number): void {
    const at = this.columns?.[this.unified ? "left" : "right"].lines.findIndex((l) => l.to === line && l.kind !== "gap" && l.side !== "from") ?? -1;
    if (at < 0) return;
    this.left.goTo(at);
    if (!this.unified) this.right.goTo(at);
  }

  showLights(lit: { from: Light | null; to: Light | null }): void {
    this.left.showLights(lit);
    this.right.showLights(lit);
  }

  private draw(): void {
    const { texts, diff, unified } = this;
    this.host.classList.toggle("unified", unified);
    if (!texts || !diff) return;
    const { from, to, labels } = texts;
    const { full } = this;
    const all = diffRows(diff, this.open);
    const rows = full ? all : shortRows(all, from.short?.() ?? null, to.short?.() ?? null, words);
    const left: Column = { from, to, full, lines: unified ? unifiedLines(rows) : sideLines(rows, "from") };
    const right: Column = { from, to, full, lines: unified ? [] : sideLines(rows, "to") };
    this.columns = { left, right };
    this.left.show(left, unified, unified ? labels.both : labels.from);
    if (!unified) this.right.show(right, false, labels.to);
  }

  private goTo(hunk: number): void {
    this.hunk = hunk;
    const at = this.columns?.left.lines.findIndex((l) => l.hunk === hunk) ?? -1;
    if (at < 0) return;
    this.left.goTo(at);
    if (!this.unified) this.right.goTo(at);
    this.events.moved();
  }

  private keepPlace(change: () => void): void {
    const top = this.columns?.left.lines[this.left.topLine()];
    change();
    if (!top) return;
    const at = this.columns?.left.lines.findIndex((l) => l.kind !== "gap" && ((top.from > 0 && l.from === top.from) || (top.from === 0 && top.to > 0 && l.to === top.to)));
    if (at !== undefined && at >= 0) this.left.goTo(at);
  }

  private clicked(line: DiffLine): void {
    const { columns } = this;
    if (!columns) return;
    if (line.kind === "gap") {
      if (this.open !== "all") this.open = new Set([...this.open, line.from]);
      this.draw();
      const at = this.columns?.left.lines.findIndex((l) => l.from === line.from) ?? -1;
      if (at >= 0) this.left.goTo(at);
      return;
    }
    const hit = opOfLine(columns.left, line);
    if (hit) this.events.picked(hit.which, hit.op);
  }
}
