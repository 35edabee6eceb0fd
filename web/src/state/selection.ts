// selection: what the user has selected or points at, and what belongs to it in each stage.
//
// The anchor is the selection: operations of one stage, or ranges of the source.  From there it is followed into every
// stage: operations by provenance, ranges by the source maps.  Stepping through the stages does not change the anchor, so
// that going back finds the same selection.
import type { SourceRange, Stage } from "../api/types";
import type { KernelOutcome } from "./outcome";
import { bestOf } from "./ranking";
import { ALL, choiceIn, choiceOf, isChosen, type Choice } from "./rounds";
import type { Place, SourceMap, StageLinks } from "./sourcemap";

export type Anchor =
  | { kind: "ops"; map: SourceMap; stage: number; ops: readonly number[] }
  /** moved: where the page's own edit has put the ranges, which the next result has there. */
  | { kind: "ranges"; map: SourceMap; ranges: readonly number[]; moved?: readonly SourceRange[]; rounds?: Choice };

/** What is highlighted in the two views. */
export interface Light {
  map: SourceMap;
  /** Operations of the shown stage. */
  ops: ReadonlySet<number>;
  /** Of a selection: the operation that says most about it, which is scrolled into sight. */
  best: number | null;
  ranges: ReadonlySet<number>;
  /** Ranges of the calls that led there. */
  callers: ReadonlySet<number>;
}

export interface Hover {
  origin: "source" | "ir";
  /** What the pointer is on. */
  anchor: Anchor;
  /** The same in the shown stage. */
  light: Light;
}

/** How an operation of another stage was found to belong to the anchor. */
export type Via = "provenance" | "range";

export interface Image {
  ops: readonly number[];
  via: Via;
}

const NOTHING: Image = { ops: [], via: "provenance" };

/** True if a place of the operation that has one of the ranges was reached in the chosen rounds. */
function isInRounds(map: SourceMap, links: StageLinks, op: number, ranges: ReadonlySet<number>, rounds: Choice): boolean {
  return (links.opLines.get(op) ?? []).some((line) => {
    const places = links.places[line - 1] ?? [];
    const known = map.roundsOf(places);
    return places.some((place, i) => place.some((n) => ranges.has(n)) && isChosen(known?.[i] ?? null, rounds));
  });
}

function opsOfRanges(map: SourceMap, links: StageLinks, ranges: Iterable<number>, rounds: Choice): number[] {
  const wanted = new Set(ranges);
  const inner = new Set<number>();
  const calls = new Set<number>();
  for (const range of wanted) {
    for (const op of links.rangeOps.get(range) ?? []) inner.add(op);
    for (const op of links.callOps.get(range) ?? []) calls.add(op);
  }
  const ops = [...(inner.size > 0 ? inner : calls)];
  return rounds.size === 0 ? ops : ops.filter((op) => isInRounds(map, links, op, wanted, rounds));
}

/** The rounds of an anchor: those chosen, or the ones that its operations belong to. */
export function roundsOfAnchor(anchor: Anchor, kernel: KernelOutcome): Choice {
  if (anchor.kind === "ranges") return anchor.rounds ?? ALL;
  const stage = kernel.stages[anchor.stage];
  const line = stage && anchor.ops.length === 1 ? kernel.map.linksOf(stage).opLines.get(anchor.ops[0] as number)?.[0] : undefined;
  const places = stage && line !== undefined ? kernel.map.linksOf(stage).places[line - 1] : null;
  return choiceOf((places && kernel.map.roundsOf(places)?.[0]) ?? null);
}

/** Depth-0 ranges of the operations. */
export function rangesOfOps(links: StageLinks, ops: Iterable<number>): Set<number> {
  const ranges = new Set<number>();
  for (const place of placesOfOps(links, ops)) if (place[0] !== undefined) ranges.add(place[0]);
  return ranges;
}

export function placesOfOps(links: StageLinks, ops: Iterable<number>): Place[] {
  const places: Place[] = [];
  const seen = new Set<string>();
  for (const op of ops) {
    for (const line of links.opLines.get(op) ?? []) {
      for (const place of links.places[line - 1] ?? []) {
        const key = place.join(",");
        if (!seen.has(key)) places.push(place);
        seen.add(key);
      }
    }
  }
  return places;
}

/** How many places the operations have, at least, besides those that are listed. */
export function hiddenOfOps(links: StageLinks, ops: Iterable<number>): number {
  let most = 0;
  for (const op of ops) for (const line of links.opLines.get(op) ?? []) most = Math.max(most, links.more[line - 1] ?? 0);
  return most;
}

function stepBack(stage: Stage, ops: readonly number[]): number[] {
  const out = new Set<number>();
  for (const op of ops) for (const f of stage.from?.[op] ?? []) out.add(f);
  return [...out];
}

function stepOn(map: SourceMap, next: Stage, ops: readonly number[]): number[] {
  const inverse = map.descendants(next);
  const out = new Set<number>();
  for (const op of ops) for (const d of inverse.get(op) ?? []) out.add(d);
  return [...out];
}

const followed = new WeakMap<Anchor, { kernel: KernelOutcome; images: Image[] }>();

/** The anchor in every stage of the kernel. */
export function images(anchor: Anchor, kernel: KernelOutcome): readonly Image[] {
  const known = followed.get(anchor);
  if (known?.kernel === kernel) return known.images;
  const found = follow(anchor, kernel);
  followed.set(anchor, { kernel, images: found });
  return found;
}

function follow(anchor: Anchor, kernel: KernelOutcome): Image[] {
  const { stages, map } = kernel;
  if (anchor.map !== map) return stages.map(() => NOTHING);
  if (anchor.kind === "ranges")
    return stages.map((s) => ({ ops: opsOfRanges(map, map.linksOf(s), anchor.ranges, anchor.rounds ?? ALL), via: "range" }));
  const found: Image[] = stages.map(() => NOTHING);
  const at = stages[anchor.stage];
  if (!at) return found;
  found[anchor.stage] = { ops: anchor.ops, via: "provenance" };
  let ops = anchor.ops;
  for (let i = anchor.stage; i > 0 && ops.length > 0; i--) {
    ops = stepBack(stages[i] as Stage, ops);
    found[i - 1] = { ops, via: "provenance" };
  }
  ops = anchor.ops;
  for (let i = anchor.stage + 1; i < stages.length && ops.length > 0; i++) {
    ops = stepOn(map, stages[i] as Stage, ops);
    found[i] = { ops, via: "provenance" };
  }
  // where provenance ends, operations from the same expression are the next best answer
  const ranges = rangesOfOps(map.linksOf(at), anchor.ops);
  const rounds = roundsOfAnchor(anchor, kernel);
  return found.map((image, i) =>
    image.ops.length > 0 ? image : { ops: opsOfRanges(map, map.linksOf(stages[i] as Stage), ranges, rounds), via: "range" },
  );
}

export function lightOfOps(map: SourceMap, stage: Stage, ops: Iterable<number>): Light {
  const set = new Set(ops);
  const ranges = new Set<number>();
  const callers = new Set<number>();
  for (const place of placesOfOps(map.linksOf(stage), set))
    place.forEach((range, depth) => (depth === 0 ? ranges : callers).add(range));
  for (const range of ranges) callers.delete(range);
  return { map, ops: set, best: null, ranges, callers };
}

export function lightOfRanges(map: SourceMap, stage: Stage | null, ranges: Iterable<number>, rounds = ALL): Light {
  const set = new Set(ranges);
  const ops = new Set(stage ? opsOfRanges(map, map.linksOf(stage), set, rounds) : []);
  return { map, ops, best: null, ranges: set, callers: new Set() };
}

export function lightOfAnchor(anchor: Anchor | null, kernel: KernelOutcome, index: number): Light | null {
  const stage = kernel.stages[index];
  if (!anchor || !stage || anchor.map !== kernel.map) return null;
  const image = images(anchor, kernel)[index] ?? NOTHING;
  const best = bestOf(stage, kernel.map.linksOf(stage), image.ops)?.op ?? null;
  if (anchor.kind === "ranges") return { ...lightOfRanges(kernel.map, stage, anchor.ranges, anchor.rounds), best };
  const light = { ...lightOfOps(kernel.map, stage, image.ops), best };
  if (image.ops.length > 0 || !kernel.stages[anchor.stage]) return light;
  // none of its operations is left in this stage; the source still shows where it came from
  const origin = lightOfOps(kernel.map, kernel.stages[anchor.stage] as Stage, anchor.ops);
  return { ...origin, ops: new Set() };
}

/** The smallest of the ranges. */
export function smallest(map: SourceMap, ranges: Iterable<number>): number | null {
  let best: number | null = null;
  let size = Infinity;
  for (const n of ranges) {
    const r = map.ranges[n] as SourceRange;
    const extent = (r.end_line - r.line) * 10_000 + (r.end_col - r.col);
    if (extent < size) [best, size] = [n, extent];
  }
  return best;
}

/** The same selection in a newer outcome: by range, or by operation if the text of its line is the same. */
export function rebind(anchor: Anchor, old: KernelOutcome, now: KernelOutcome): Anchor | null {
  if (anchor.kind === "ranges") {
    const ranges = anchor.ranges.flatMap((n, i) => now.map.find(anchor.moved?.[i] ?? (anchor.map.ranges[n] as SourceRange)) ?? []);
    const rounds = choiceIn(anchor.rounds ?? ALL, anchor.map.loops, (r) => now.map.findLoop(r));
    return ranges.length > 0 ? { kind: "ranges", map: now.map, ranges, rounds } : null;
  }
  const before = old.stages[anchor.stage];
  const after = now.stages[anchor.stage];
  if (!before || !after || before.name !== after.name) return null;
  const was = textOfOps(old.map, before, anchor.ops);
  return was !== "" && was === textOfOps(now.map, after, anchor.ops)
    ? { ...anchor, map: now.map }
    : null;
}

function textOfOps(map: SourceMap, stage: Stage, ops: readonly number[]): string {
  const links = map.linksOf(stage);
  const lines = stage.text.split("\n");
  return ops.map((op) => lines[(links.opLines.get(op)?.[0] ?? 0) - 1] ?? "").join("\n");
}
