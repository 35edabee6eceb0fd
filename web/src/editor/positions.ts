// positions: converts between the API's columns (code points, from 1) and the editor's offsets (UTF-16 units, from 0).
import type { Text } from "@codemirror/state";
import type { SourceRange } from "../api/types";
import type { SourceMap } from "../state/sourcemap";

const SURROGATE = /[\ud800-\udbff][\udc00-\udfff]/;

/** The UTF-16 offset within `line` of a 1-based code point column; at most the line's length. */
export function offsetOfColumn(line: string, column: number): number {
  const points = column - 1;
  if (!SURROGATE.test(line)) return Math.max(0, Math.min(points, line.length));
  let offset = 0;
  for (let n = 0; n < points && offset < line.length; n++)
    offset += (line.codePointAt(offset) as number) > 0xffff ? 2 : 1;
  return offset;
}

export function columnOfOffset(line: string, offset: number): number {
  return SURROGATE.test(line) ? [...line.slice(0, offset)].length + 1 : offset + 1;
}

export interface Span {
  from: number;
  to: number;
}

/** Null if the range is not inside the text. */
export function spanOfRange(doc: Text, r: SourceRange): Span | null {
  if (r.line < 1 || r.line > doc.lines) return null;
  const first = doc.line(r.line);
  const from = first.from + offsetOfColumn(first.text, r.col);
  if (r.end_line > doc.lines) return { from, to: doc.length };
  const last = doc.line(Math.max(r.end_line, r.line));
  const to = last.from + offsetOfColumn(last.text, r.end_col);
  return { from, to: Math.max(from, to) };
}

/** The range's text on one line, shortened. */
export function snippet(doc: Text, r: SourceRange, max = 60): string {
  const span = spanOfRange(doc, r);
  if (!span) return "";
  const text = doc.sliceString(span.from, Math.min(span.to, span.from + 4 * max)).replace(/\s+/g, " ");
  return text.length > max ? text.slice(0, max - 1) + "…" : text;
}

export function rangeText(r: SourceRange): string {
  if (r.line === r.end_line && r.col >= r.end_col) return `${r.line}:${r.col}`;
  return r.line === r.end_line ? `${r.line}:${r.col}–${r.end_col}` : `${r.line}:${r.col} – ${r.end_line}:${r.end_col}`;
}

/** The same with the file's name, unless it is the main file. */
export function placeText(map: SourceMap, r: SourceRange): string {
  return map.isElsewhere(r) ? `${r.file} ${rangeText(r)}` : rangeText(r);
}
