// rows: which lines of a stage's text each row of the view shows.
//
// The page speaks of lines of the stage's text everywhere: links, maps, remarks, differences.  Only the viewer knows rows.
// A row covers neighbouring lines, and every line belongs to exactly one row:
//
//   row 1   attention(%arg0 …)                  lines 1–3    its own line is 3
//   row 2   ▸ 12 allocations, 840 KiB SBUF      lines 4–15   folded
//   row 3   T  %psum += %a @ %b                 line 16
//
// The head of an opened fold is the only row without lines.
import type { Stage } from "../api/types";
import { compactLines, foldText, type CompactLine } from "../nisa/compact";
import { shortLine } from "../nisa/short";

export interface Detail {
  /** The text as it is. */
  full: boolean;
  /** Attributes are shown; only where the text is not full. */
  attributes: boolean;
}

export class Rows {
  /** By row, from 0: its first line, from 1; one more entry than rows. */
  private readonly starts: Int32Array;
  /** By row: the line that it is about; 0 for the head of an opened fold. */
  private readonly mains: Int32Array;
  private ends: Int32Array | null = null;

  constructor(
    readonly texts: readonly string[],
    starts: readonly number[],
    mains: readonly number[],
    /** Open or closed, by row from 1. */
    readonly folds: ReadonlyMap<number, { open: boolean }>,
    readonly lineCount: number,
    /** The rows are in the compact form, with the engine's letter before the indentation. */
    readonly isCompact: boolean,
  ) {
    this.starts = Int32Array.from([...starts, lineCount + 1]);
    this.mains = Int32Array.from(mains);
  }

  get count(): number {
    return this.texts.length;
  }

  /** The line of a row (from 1) that clicks, colours and the margin's number mean; for the head of an opened fold, the
   * first line below it. */
  lineOf(row: number): number {
    const at = Math.min(Math.max(row, 1), this.count) - 1;
    return this.mains[at] || (this.starts[at] as number);
  }

  /** True for the head of an opened fold, which stands for no line. */
  isHead(row: number): boolean {
    return this.mains[row - 1] === 0;
  }

  /** The lines of a row: from `first` up to but not `end`. */
  linesOf(row: number): { first: number; end: number } {
    return { first: this.starts[row - 1] ?? this.lineCount + 1, end: this.starts[row] ?? this.lineCount + 1 };
  }

  /** The row that shows a line: the last one that begins at or before it. */
  rowOf(line: number): number {
    let low = 0;
    let high = this.count - 1;
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      if ((this.starts[mid] as number) <= line) low = mid;
      else high = mid - 1;
    }
    return low + 1;
  }

  /** The last row of the region that a row opens; the row itself if it opens none. */
  regionEnd(row: number): number {
    this.ends ??= regionEnds(this.texts, this.isCompact);
    return this.ends[row - 1] ?? row;
  }
}

/** By row, from 0: the last row, from 1, that stands deeper, or the row itself. */
function regionEnds(texts: readonly string[], isCompact: boolean): Int32Array {
  const depths = texts.map((t) => (t.trim() === "" ? Infinity : t.slice(isCompact ? 2 : 0).search(/\S|$/)));
  const ends = new Int32Array(texts.length);
  const open: number[] = [];
  const close = (before: number) => (ends[open.pop() as number] = before);
  depths.forEach((depth, i) => {
    while (open.length > 0 && (depths[open.at(-1) as number] as number) >= depth) close(i);
    open.push(i);
  });
  while (open.length > 0) close(texts.length);
  return ends;
}

const lineTexts = new WeakMap<Stage, readonly string[]>();

/** The lines of a stage's text, without the empty one after the last newline. */
export function linesOfStage(stage: Stage): readonly string[] {
  let lines = lineTexts.get(stage);
  if (!lines) lineTexts.set(stage, (lines = stage.text.replace(/\n$/, "").split("\n")));
  return lines;
}

const compacted = new WeakMap<Stage, CompactLine[]>();

/** By line - 1, of a stage of NISA. */
export function compactOf(stage: Stage): readonly CompactLine[] {
  let lines = compacted.get(stage);
  if (!lines) compacted.set(stage, (lines = compactLines(linesOfStage(stage))));
  return lines;
}

function oneEach(texts: readonly string[]): Rows {
  const numbers = texts.map((_, i) => i + 1);
  return new Rows(texts, numbers, numbers, new Map(), texts.length, false);
}

class Builder {
  private readonly texts: string[] = [];
  private readonly starts: number[] = [];
  private readonly mains: number[] = [];
  private readonly folds = new Map<number, { open: boolean }>();
  private waiting = 0; // the first of the lines that belong to the next row; 0: none

  row(text: string, line: number, isHead = false): void {
    this.texts.push(text);
    this.starts.push(this.waiting || line);
    this.mains.push(isHead ? 0 : line);
    if (!isHead) this.waiting = 0;
  }

  /** The line belongs to the row below it. */
  wait(line: number): void {
    this.waiting ||= line;
  }

  get isEmpty(): boolean {
    return this.texts.length === 0;
  }

  head(text: string, line: number, open: boolean): void {
    this.row(text, line, open);
    this.folds.set(this.texts.length, { open });
  }

  finish(lineCount: number): Rows {
    if (this.isEmpty) this.row("", 1);
    return new Rows(this.texts, this.starts, this.mains, this.folds, lineCount, true);
  }
}

/** The end of the run of lines that fold together and begins at `from`. */
function runEnd(lines: readonly CompactLine[], from: number): number {
  let end = from;
  while (end < lines.length && lines[end]?.kind && !lines[end]?.joins && lines[end]?.depth === lines[from]?.depth) end++;
  return end;
}

function compactRows(lines: readonly CompactLine[], opened: ReadonlySet<number>): Rows {
  const out = new Builder();
  for (let i = 0; i < lines.length; ) {
    const line = lines[i] as CompactLine;
    const end = line.joins ? i : runEnd(lines, i);
    if (end > i + 1) {
      const open = opened.has(i + 1);
      const indent = "  ".repeat(line.depth + 1);
      out.head(`${indent}${open ? "▾" : "▸"} ${foldText(lines.slice(i, end))}`, i + 1, open);
      for (let k = i; open && k < end; k++) out.row(lines[k]?.text ?? "", k + 1);
      i = end;
      continue;
    }
    if (line.joins === "below" || (line.text === null && out.isEmpty)) out.wait(i + 1);
    else if (line.text !== null && line.joins === null) out.row(line.text, i + 1);
    i++;
  }
  return out.finish(lines.length);
}

/** opened: the first lines of the folds that are open. */
export function rowsOfStage(stage: Stage, detail: Detail, opened: ReadonlySet<number>): Rows {
  const lines = linesOfStage(stage);
  if (detail.full) return oneEach(lines);
  if (stage.dialect === "nisa") return compactRows(compactOf(stage), opened);
  return oneEach(lines.map((line) => shortLine(line, stage.dialect, detail.attributes)));
}
