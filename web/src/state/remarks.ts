// remarks: a pass's remarks, by line of its stage and by range of the source.
import type { Remark, Stage } from "../api/types";
import type { KernelOutcome } from "./outcome";
import { images, type Anchor } from "./selection";
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

/** Every pass's remarks about the operations and the expressions of the selection; of equal ones of a pass the first that
 * has a knob. */
export function aboutAnchor(kernel: KernelOutcome, anchor: Anchor): { stage: Stage; remark: Remark }[] {
  const ranges = new Set(anchor.kind === "ranges" ? anchor.ranges : []);
  return images(anchor, kernel).flatMap(({ ops }, i) => {
    const stage = kernel.stages[i];
    if (!stage?.remarks) return [];
    const own = new Set(ops);
    const byText = new Map<string, Remark>();
    for (const r of stage.remarks) {
      const range = rangeOfRemark(r, kernel.map);
      if (!(r.op !== undefined && own.has(r.op)) && !(range !== null && ranges.has(range))) continue;
      const known = byText.get(r.text);
      if (!known || (!known.knob && r.knob)) byText.set(r.text, r);
    }
    return [...byText.values()].map((remark) => ({ stage, remark }));
  });
}
