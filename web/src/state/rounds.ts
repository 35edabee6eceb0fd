// rounds: the rounds of Python loops that operations belong to, and the choice of one.
//
// A loop is known by the number of its header in its source map, whatever calls led there.  A choice maps loops to a round, counted from
// 0; of the loops that it does not name, all rounds are meant.
import type { Source, SourceRange } from "../api/types";

type Box = readonly (number | readonly [number, number] | readonly number[])[];

/** The rounds of one place of an operation. */
export interface PlaceRounds {
  /** The loops around it, the outermost first. */
  loops: readonly number[];
  /** By depth of the chain of calls: how many of the loops are around that frame. */
  around: readonly number[];
  boxes: readonly Box[];
  /** There are rounds that the boxes do not have. */
  isCut: boolean;
}

export type Choice = ReadonlyMap<number, number>;

export const ALL: Choice = new Map();

function span(box: Box, i: number): readonly [number, number] {
  const x = box[i] ?? 0;
  return typeof x === "number" ? [x, x] : [x[0] ?? 0, x[1] ?? 0];
}

export function boxesOf(source: Source | undefined, place: number): readonly Box[] {
  return source?.rounds?.[place] ?? [];
}

/** True if the place was reached in a chosen round.  A loop that is not around the place chooses nothing. */
export function isChosen(rounds: PlaceRounds | null, choice: Choice): boolean {
  if (!rounds || rounds.isCut || choice.size === 0) return true;
  return rounds.boxes.some((box) =>
    rounds.loops.every((loop, i) => {
      const want = choice.get(loop);
      const [first, last] = span(box, i);
      return want === undefined || (first <= want && want <= last);
    }),
  );
}

/** The largest number of rounds of each loop, into `most`. */
export function countRounds(rounds: PlaceRounds, most: Map<number, number>): void {
  for (const box of rounds.boxes)
    rounds.loops.forEach((loop, i) => most.set(loop, Math.max(most.get(loop) ?? 0, span(box, i)[1] + 1)));
}

/** The loops for which all rounds of the place are one round. */
export function choiceOf(rounds: PlaceRounds | null): Choice {
  const choice = new Map<number, number>();
  if (!rounds || rounds.isCut) return choice;
  rounds.loops.forEach((loop, i) => {
    const first = rounds.boxes.map((box) => span(box, i));
    const [low, high] = [Math.min(...first.map((s) => s[0])), Math.max(...first.map((s) => s[1]))];
    if (low === high) choice.set(loop, low);
  });
  return choice;
}

/** "round 2 of 12", "rounds 1–3, 5 of 12", of several loops "round 2 of 12, round 1 of 3"; "" outside of loops. */
export function roundText(rounds: PlaceRounds | null, most: ReadonlyMap<number, number>): string {
  if (!rounds) return "";
  return rounds.loops
    .map((loop, i) => {
      const spans = rounds.boxes.map((box) => span(box, i)).map(([a, b]) => (a === b ? `${a + 1}` : `${a + 1}–${b + 1}`));
      const names = [...new Set(spans)];
      const few = names.length > 4 ? [...names.slice(0, 4), "…"] : names;
      const one = names.length === 1 && !names[0]?.includes("–") && !rounds.isCut;
      return `${one ? "round" : "rounds"} ${few.join(", ")}${rounds.isCut ? " and more" : ""} of ${most.get(loop) ?? 0}`;
    })
    .join(", ");
}

/** The choice as written in links: a round or * for each of the loops. */
export function choiceText(loops: readonly number[], choice: Choice): string {
  return loops.some((l) => choice.has(l)) ? `~${loops.map((l) => choice.get(l) ?? "*").join(".")}` : "";
}

export function choiceFromText(loops: readonly number[], text: string | undefined): Choice {
  const choice = new Map<number, number>();
  text?.split(".").forEach((part, i) => {
    const loop = loops[i];
    if (loop !== undefined && /^\d{1,9}$/.test(part)) choice.set(loop, Number(part));
  });
  return choice;
}

/** The same choice in a newer result; loops that are not there any more are left out. */
export function choiceIn(choice: Choice, loops: readonly SourceRange[], find: (range: SourceRange) => number | null): Choice {
  const now = new Map<number, number>();
  for (const [loop, round] of choice) {
    const range = loops[loop];
    const at = range ? find(range) : null;
    if (at !== null) now.set(at, round);
  }
  return now;
}
