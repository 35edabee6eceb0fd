// upgrade: kernels of NKI beta 1 rewritten for the newest generation by the server, and what is left to be done by hand.
import { compileWhole } from "../api/client";
import { Problem } from "../api/problem";
import type { Diagnostic, StageDiff, Upgrade } from "../api/types";
import type { AppState } from "./app";
import { requestOf } from "./compiler";
import { localDiff } from "./pairs";

export type UpgradedFile = Upgrade["files"][number];

function whereOf(d: Diagnostic): string {
  return d.range ? `${d.range.file}, line ${d.range.line}: ` : "";
}

/** The files, rewritten.  An abort stays an AbortError; every other failure is a Problem, also that a file is no Python. */
export async function askUpgrade(state: Readonly<AppState>, signal: AbortSignal): Promise<UpgradedFile[]> {
  const result = await compileWhole({ ...requestOf(state), options: { upgrade: true } }, signal);
  if (result.upgrade) return result.upgrade.files;
  const error = result.diagnostics.find((d) => d.severity === "error");
  throw new Problem("request", error?.code ?? "no-upgrade", error ? whereOf(error) + error.message : "The server did not send the new text.");
}

export interface TextChange {
  from: number;
  to: number;
  insert: string;
}

/** The changes of a text, whose lines end with one character, that make it another; each is a run of lines. */
export function changesBetween(from: readonly string[], to: readonly string[], diff: StageDiff = localDiff(from, to)): TextChange[] {
  const starts = [0];
  for (const line of from) starts.push((starts.at(-1) ?? 0) + line.length + 1);
  const end = (starts.at(-1) ?? 1) - 1; // the last line ends without one
  return diff.hunks.map((h) => {
    const [begin, stop] = [starts[h.from.line - 1] ?? end, starts[h.from.line - 1 + h.from.count] ?? end];
    const lines = to.slice(h.to.line - 1, h.to.line - 1 + h.to.count);
    if (stop <= end) return { from: begin, to: stop, insert: lines.map((l) => `${l}\n`).join("") };
    // up to the end: the end of the line before goes or comes instead
    const isFirst = begin === 0;
    return { from: isFirst ? 0 : begin - 1, to: end, insert: lines.map((l, i) => (isFirst && i === 0 ? l : `\n${l}`)).join("") };
  });
}
