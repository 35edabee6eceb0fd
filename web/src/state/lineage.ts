// lineage: what a stage has of a selection, counted by operation, and the pass that introduced each of them.
import type { KernelOutcome } from "./outcome";
import { describe, ranked, type Described, type Kind } from "./ranking";
import type { Place } from "./sourcemap";

/** Operations with one name that one pass introduced. */
export interface Part {
  label: string;
  kind: Kind;
  /** In the order of the text. */
  ops: readonly number[];
  /** The stage in which this work appears first. */
  introduced: number;
  /** The names that it had since then, the present one last, each with the stage that gave it. */
  names: readonly { label: string; stage: number }[];
}

/** What became an operation of the same group is the same work under another name. */
function groupOf(kind: Kind): Kind {
  return kind === "reduce" || kind === "scalar" ? "compute" : kind;
}

/** The operation of the stage before that did the same work; null if the pass introduced it. */
function parentOf(kernel: KernelOutcome, stage: number, one: Described): Described | null {
  const before = kernel.stages[stage - 1];
  const from = kernel.stages[stage]?.from?.[one.op];
  if (!before || !from) return null;
  const links = kernel.map.linksOf(before);
  const same = from.flatMap((op) => describe(before, links, op) ?? []).filter((d) => groupOf(d.kind) === groupOf(one.kind));
  return same.find((d) => d.label === one.label) ?? same[0] ?? null;
}

function namesOf(kernel: KernelOutcome, stage: number, one: Described): Part["names"] {
  const names = [{ label: one.label, stage }];
  let here = one;
  for (let at = stage; at > 0; at--) {
    const parent = parentOf(kernel, at, here);
    if (!parent) break;
    if (parent.label === here.label && names[0]) names[0].stage = at - 1;
    else names.unshift({ label: parent.label, stage: at - 1 });
    here = parent;
  }
  return names;
}

/** The best first. */
export function partsOf(kernel: KernelOutcome, stage: number, ops: readonly number[]): Part[] {
  const at = kernel.stages[stage];
  if (!at) return [];
  const parts = new Map<string, Part & { ops: number[] }>();
  for (const one of ranked(at, kernel.map.linksOf(at), ops)) {
    const names = namesOf(kernel, stage, one);
    const introduced = names[0]?.stage ?? stage;
    const key = `${one.label} ${introduced}`;
    const part = parts.get(key);
    if (part) part.ops.push(one.op);
    else parts.set(key, { label: one.label, kind: one.kind, ops: [one.op], introduced, names });
  }
  return [...parts.values()];
}

/** The places of a constant or buffer that several expressions use, and how many more there are at least; null if it is not
 * shared. */
export function sharedBy(kernel: KernelOutcome, stage: number, part: Part): { places: readonly Place[]; more: number } | null {
  if (part.kind !== "constant" && part.kind !== "buffer") return null;
  const at = kernel.stages[stage];
  const links = at && kernel.map.linksOf(at);
  if (!links) return null;
  let most: { places: readonly Place[]; more: number } = { places: [], more: 0 };
  for (const op of part.ops) {
    const line = links.opLines.get(op)?.[0] ?? 0;
    const [places, more] = [links.places[line - 1] ?? [], links.more[line - 1] ?? 0];
    if (places.length + more > most.places.length + most.more) most = { places, more };
  }
  return most.places.length + most.more > 1 ? most : null;
}
