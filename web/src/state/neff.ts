// neff: a NEFF, as the server describes it.
import { describeNeff } from "../api/client";
import { Problem } from "../api/problem";
import type { Neff } from "../api/types";

/** Bytes that the server reads (JOB_NEFF_MAX). */
export const NEFF_MAX = 8 * 1024 * 1024;

const HEADER_SIZE = 1024;

/** By its name, or by the size of its header, which the header says at byte 8. */
export function isNeff(name: string, head: Uint8Array): boolean {
  if (/\.neff$/i.test(name)) return true;
  if (head.length < HEADER_SIZE) return false;
  return new DataView(head.buffer, head.byteOffset).getBigUint64(8, true) === BigInt(HEADER_SIZE);
}

/** An abort stays an AbortError; every other failure is a Problem, also that the file is refused. */
export async function askNeff(file: Blob, signal: AbortSignal): Promise<Neff> {
  if (file.size > NEFF_MAX) throw new Problem("limit", "too-large", `The file is larger than ${NEFF_MAX / 1024 / 1024} MiB, the most that is read here. In a terminal, nkx neff info reads larger ones.`);
  const result = await describeNeff(file, signal);
  if (result.neff) return result.neff;
  const error = result.diagnostics.find((d) => d.severity === "error");
  throw new Problem("request", error?.code ?? "no-neff", error?.message ?? "The server did not say what the file holds.");
}

/** The sum of a list, null if a part is not known. */
export function total(list: readonly (number | null)[]): number | null {
  return list.reduce((sum, n) => (sum === null || n === null ? null : sum + n), 0 as number | null);
}
