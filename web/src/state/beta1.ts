// beta1: whether a source has kernels of NKI beta 1, and what an upgrade of them has left.
import type { UpgradeMark } from "../api/types";

/** What the comment above such a statement begins with; nkx/nki_upgrade.py writes it. */
const MARK = "# nkx: not upgraded: ";

/** Whether a file imports NKI's beta 1. */
export function hasBeta1(text: string): boolean {
  return /^[ \t]*(?:import\s+neuronxcc\.nki|from\s+neuronxcc(?:\.nki[\w.]*)?\s+import)\b/m.test(text);
}

export function linesOfText(text: string): string[] {
  return text.split(/\r\n?|\n/);
}

/** The statements that an upgrade left to be done by hand. */
export function marksOf(text: string): UpgradeMark[] {
  if (!text.includes(MARK)) return [];
  return linesOfText(text).flatMap((line, i) => (line.trimStart().startsWith(MARK) ? [{ line: i + 1, reason: line.trim().slice(MARK.length) }] : []));
}
