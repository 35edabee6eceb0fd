// diff: the rows of a comparison, made from the server's hunks.
//
// A row is a line on one side or on both.  Long stretches without a change are folded into a row of their own.
import type { StageDiff, WordRange } from "../api/types";

export type RowKind = "same" | "changed" | "removed" | "added" | "gap";

export interface DiffRow {
  kind: RowKind;
  /** Line numbers, 0 where the side has none; of a gap, its first lines. */
  from: number;
  to: number;
  wordsFrom: readonly WordRange[];
  wordsTo: readonly WordRange[];
  /** Lines that a gap folds. */
  count: number;
  /** Number of the hunk it is part of, or -1. */
  hunk: number;
  /** Its lines are shown as they are printed, not in the compact form. */
  full?: boolean;
}

/** Unchanged lines that are shown around a change. */
const CONTEXT = 4;
/** Fewer lines than this are not folded. */
const GAP_MIN = 4;
const NONE: readonly WordRange[] = [];

function row(kind: RowKind, from: number, to: number, hunk = -1): DiffRow {
  return { kind, from, to, wordsFrom: NONE, wordsTo: NONE, count: 1, hunk };
}

function same(rows: DiffRow[], from: number, to: number, count: number, isFirst: boolean, isLast: boolean, open: boolean): void {
  const head = isFirst ? 0 : CONTEXT;
  const tail = isLast ? 0 : CONTEXT;
  const folded = open || count < head + tail + GAP_MIN ? 0 : count - head - tail;
  for (let i = 0; i < count; i++) {
    if (folded > 0 && i === head) {
      rows.push({ ...row("gap", from + i, to + i), count: folded });
      i += folded - 1;
    } else {
      rows.push(row("same", from + i, to + i));
    }
  }
}

/** `open`: first lines (of `from`) of the gaps that are unfolded, or "all". */
export function diffRows(diff: StageDiff, open: ReadonlySet<number> | "all"): DiffRow[] {
  const rows: DiffRow[] = [];
  let from = 1;
  let to = 1;
  const between = (endFrom: number, isLast: boolean) => {
    const count = endFrom - from;
    const isFirst = from === 1;
    const at = from + (isFirst ? 0 : CONTEXT);
    same(rows, from, to, count, isFirst, isLast, open === "all" || open.has(at));
    from += count;
    to += count;
  };
  diff.hunks.forEach((h, n) => {
    between(h.from.line, false);
    const endFrom = h.from.line + h.from.count;
    const endTo = h.to.line + h.to.count;
    for (const pair of [...h.pairs, null]) {
      while (from < (pair?.from ?? endFrom)) rows.push(row("removed", from++, 0, n));
      while (to < (pair?.to ?? endTo)) rows.push(row("added", 0, to++, n));
      if (!pair) break;
      rows.push({ ...row("changed", from++, to++, n), wordsFrom: pair.words_from, wordsTo: pair.words_to });
    }
  });
  between(diff.lines_from + 1, true);
  return rows;
}

/** The short form of each line, by line - 1; null for a line of which nothing is shown.  A side without one is null. */
export type ShortLines = readonly (string | null)[] | null;

/** Changed lines of one comparison whose words are compared. */
const WORDS_MAX = 3000;

/** The rows in the short form of their lines: lines of which nothing is shown have no row.  A change that the short form does
 * not show is shown in full. */
export function shortRows(rows: readonly DiffRow[], from: ShortLines, to: ShortLines, words: (a: string, b: string) => { from: WordRange[]; to: WordRange[] }): DiffRow[] {
  if (!from && !to) return [...rows];
  const at = (side: ShortLines, line: number) => (side ? (side[line - 1] ?? null) : "");
  let compared = 0;
  const hidden = (r: DiffRow) => (r.from === 0 || at(from, r.from) === null) && (r.to === 0 || at(to, r.to) === null);
  const seen = new Set(rows.filter((r) => r.hunk >= 0 && !hidden(r)).map((r) => r.hunk));
  return rows.flatMap((r): DiffRow[] => {
    if (r.kind === "gap") {
      const count = from ? from.slice(r.from - 1, r.from - 1 + r.count).filter((t) => t !== null).length : r.count;
      return [{ ...r, count }];
    }
    if (hidden(r)) return r.hunk >= 0 && !seen.has(r.hunk) ? [{ ...r, full: true }] : [];
    if (r.kind !== "changed" || !from || !to) return [from && to ? r : { ...r, wordsFrom: from ? NONE : r.wordsFrom, wordsTo: to ? NONE : r.wordsTo }];
    const [a, b] = [at(from, r.from) ?? "", at(to, r.to) ?? ""];
    if (a === b) return [{ ...r, full: true }];
    const found = compared++ < WORDS_MAX ? words(a, b) : { from: NONE, to: NONE };
    return [{ ...r, wordsFrom: found.from, wordsTo: found.to }];
  });
}

/** One line of a view. */
export interface DiffLine {
  side: "from" | "to" | "both";
  kind: RowKind | "filler";
  from: number;
  to: number;
  words: readonly WordRange[];
  count: number;
  hunk: number;
  full: boolean;
}

const filler = (r: DiffRow, side: "from" | "to"): DiffLine => ({ side, kind: "filler", from: 0, to: 0, words: NONE, count: 1, hunk: r.hunk, full: true });

/** One side of two, with one line for each row. */
export function sideLines(rows: readonly DiffRow[], side: "from" | "to"): DiffLine[] {
  return rows.map((r) => {
    if (r[side] === 0) return filler(r, side);
    const { kind, from, to, count, hunk } = r;
    return { side, kind, from, to, words: side === "from" ? r.wordsFrom : r.wordsTo, count, hunk, full: r.full === true };
  });
}

/** Both sides in one column: removed lines above added ones. */
export function unifiedLines(rows: readonly DiffRow[]): DiffLine[] {
  const lines: DiffLine[] = [];
  for (let i = 0; i < rows.length; ) {
    const first = rows[i] as DiffRow;
    if (first.hunk < 0) {
      lines.push({ side: "both", kind: first.kind, from: first.from, to: first.to, words: NONE, count: first.count, hunk: -1, full: first.full === true });
      i++;
      continue;
    }
    let end = i;
    while (rows[end]?.hunk === first.hunk && rows[end]?.kind === first.kind) end++;
    const run = rows.slice(i, end);
    for (const r of run)
      if (r.from > 0) lines.push({ side: "from", kind: r.kind === "changed" ? "changed" : "removed", from: r.from, to: 0, words: r.wordsFrom, count: 1, hunk: r.hunk, full: r.full === true });
    for (const r of run)
      if (r.to > 0) lines.push({ side: "to", kind: r.kind === "changed" ? "changed" : "added", from: 0, to: r.to, words: r.wordsTo, count: 1, hunk: r.hunk, full: r.full === true });
    i = end;
  }
  return lines;
}
