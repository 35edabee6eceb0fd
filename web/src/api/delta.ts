// delta: the stages of a stream that the server sends as their difference from a result that the page has.
//
// The server sends them only for the run that the request names, so the stages are there; otherwise the stream is refused
// as a whole, and the page compiles again without a base.
import { Problem } from "./problem";
import type { Frame, Stage, StageDelta } from "./types";

/** A result that the page has. */
export interface Base {
  /** The key and the time of its end, which distinguishes it from other runs of the same job. */
  run: string;
  stage(kernel: number, index: number): Stage | undefined;
}

type DeltaFrame = Extract<Frame, { same: string[] }>;
export type WholeFrame = Exclude<Frame, DeltaFrame>;

export const NO_BASE = "no-base";

function textOf(delta: StageDelta["text"], base: string): string {
  if (delta === undefined || typeof delta === "string") return delta ?? base;
  const lines = base.split("\n");
  const out: string[] = [];
  for (const piece of delta) {
    if (typeof piece === "string") {
      out.push(piece);
    } else {
      const [first = 1, count = 0] = piece;
      for (let i = first - 1; i < first - 1 + count; i++) out.push(lines[i] ?? "");
    }
  }
  return out.join("\n");
}

/** Members that are the same are shared with the base, so that they take memory once and compare at once. */
function stageOf({ same, stage }: DeltaFrame, base: Stage): Stage {
  const shared = Object.fromEntries(same.map((name) => [name, base[name as keyof Stage]]));
  return { ...shared, ...stage, text: textOf(stage.text, base.text) } as Stage;
}

export function wholeFrame(frame: Frame, base: Base | null): WholeFrame {
  if (!("same" in frame)) return frame;
  const before = base?.stage(frame.kernel, frame.stage.index);
  if (!before) throw new Problem("ours", NO_BASE, "The server sent a difference from a stage that the page does not have.");
  return { frame: "stage", kernel: frame.kernel, stage: stageOf(frame, before) };
}
