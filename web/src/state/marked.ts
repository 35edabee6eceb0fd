// marked: the lines that a link points at: "ir:14-20" of the shown stage, "src:3" of the source.
export interface Marked {
  pane: "source" | "ir";
  first: number;
  last: number;
}

export function markedText(m: Marked | null): string | null {
  if (!m) return null;
  return `${m.pane === "ir" ? "ir" : "src"}:${m.first}${m.last > m.first ? `-${m.last}` : ""}`;
}

export function markedFromText(text: string | null): Marked | null {
  const m = /^(ir|src):(\d{1,7})(?:-(\d{1,7}))?$/.exec(text ?? "");
  if (!m) return null;
  const first = Number(m[2]);
  return { pane: m[1] === "ir" ? "ir" : "source", first, last: Math.max(first, Number(m[3] ?? first)) };
}

/** After a click on a line's number: that line, the lines up to it, or none if it was the only one. */
export function markedBy(now: Marked | null, pane: Marked["pane"], line: number, extend: boolean): Marked | null {
  if (now?.pane !== pane) return { pane, first: line, last: line };
  if (extend) return { pane, first: Math.min(now.first, line), last: Math.max(now.first, line) };
  return now.first === line && now.last === line ? null : { pane, first: line, last: line };
}
