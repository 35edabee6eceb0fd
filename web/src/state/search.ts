// search: the lines of all stages that have a text, stage by stage.
//
// A line is found by its full text and by what its row shows in the compact form, so that "nisa.matmul" and "+=" both find a
// product.  Neighbouring stages with one text are one group.
import type { Stage } from "../api/types";
import { type Rows, linesOfStage, rowsOfStage } from "../editor/rows";

export interface Hit {
  /** Of the stage's text, from 1. */
  line: number;
  /** What is shown of it, and where the match is in that. */
  text: string;
  from: number;
  to: number;
}

export interface StageHits {
  /** Index in the kernel's stages; the last of the stages with this text. */
  first: number;
  last: number;
  hits: Hit[];
  /** Hits that are not listed. */
  more: number;
}

/** Hits of a stage that are listed. */
const LISTED = 100;
/** Characters before a match that are shown. */
const LEAD = 24;

const compactRows = new WeakMap<Stage, Rows>();

function rowsOf(stage: Stage): Rows | null {
  if (stage.dialect !== "nisa") return null;
  let rows = compactRows.get(stage);
  if (!rows) compactRows.set(stage, (rows = rowsOfStage(stage, { full: false, attributes: true }, new Set())));
  return rows;
}

/** Without regard to case, unless the query has capitals. */
function matcher(query: string): (text: string) => number {
  return query === query.toLowerCase() ? (text) => text.toLowerCase().indexOf(query) : (text) => text.indexOf(query);
}

function hitOf(line: number, text: string, at: number, length: number): Hit {
  const lead = text.length - text.trimStart().length;
  const start = at - lead > LEAD ? at - LEAD : lead;
  const mark = start > lead ? "…" : "";
  return { line, text: mark + text.slice(start, start + 200), from: mark.length + at - start, to: mark.length + at - start + length };
}

function hitsOf(stage: Stage, query: string): { hits: Hit[]; more: number } {
  const find = matcher(query);
  const rows = rowsOf(stage);
  const hits: Hit[] = [];
  let more = 0;
  linesOfStage(stage).forEach((text, i) => {
    const row = rows?.rowOf(i + 1) ?? 0;
    // a folded row shows none of its lines
    const shown = rows && rows.lineOf(row) === i + 1 && !rows.folds.has(row) ? (rows.texts[row - 1] ?? "") : "";
    const inRow = shown === "" ? -1 : find(shown);
    const at = inRow >= 0 ? inRow : find(text);
    if (at < 0) return;
    if (hits.length >= LISTED) more++;
    else hits.push(hitOf(i + 1, inRow >= 0 ? shown : text, at, query.length));
  });
  return { hits, more };
}

/** The stages with hits, in order; a stage whose text is that of the one before is part of its group. */
export function searchStages(stages: readonly Stage[], query: string): StageHits[] {
  const found: StageHits[] = [];
  if (query.trim() === "") return found;
  let group: StageHits | null = null;
  stages.forEach((stage, i) => {
    if (group && stages[i - 1]?.text === stage.text) {
      group.last = i;
      return;
    }
    group = { first: i, last: i, ...hitsOf(stage, query) };
    if (group.hits.length > 0) found.push(group);
  });
  return found;
}
