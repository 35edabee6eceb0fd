// remarks: a pass's remarks, by line of its stage and by range of the source.
import type { Remark, Stage } from "../api/types";
import type { SourceMap, StageLinks } from "./sourcemap";

/** Each text once, with its number of occurrences. */
function counted(texts: readonly string[]): string[] {
  const times = new Map<string, number>();
  for (const text of texts) times.set(text, (times.get(text) ?? 0) + 1);
  return [...times].map(([text, n]) => (n > 1 ? `${text} ×${n}` : text));
}

function group<K>(remarks: readonly Remark[], keyOf: (r: Remark) => K | null): Map<K, string[]> {
  const groups = new Map<K, string[]>();
  for (const r of remarks) {
    const key = keyOf(r);
    if (key === null) continue;
    const list = groups.get(key);
    if (list) list.push(r.text);
    else groups.set(key, [r.text]);
  }
  for (const [key, texts] of groups) groups.set(key, counted(texts));
  return groups;
}

/** By line, from 1. */
export function remarksByLine(stage: Stage, links: StageLinks): Map<number, string[]> {
  return group(stage.remarks ?? [], (r) => (r.op === undefined ? null : (links.opLines.get(r.op)?.[0] ?? null)));
}

/** The innermost range of a remark that is in the text that the editor shows. */
export function rangeOfRemark(remark: Remark, map: SourceMap): number | null {
  if (remark.src === undefined) return null;
  for (const place of map.placesOf(remark.src)) for (const n of place) if (map.isShown(n)) return n;
  return null;
}

export function remarksByRange(stage: Stage, map: SourceMap): Map<number, string[]> {
  return group(stage.remarks ?? [], (r) => rangeOfRemark(r, map));
}
