// parting: where two results part in values; the server compares them (POST /api/v1/parting).
import { searchFor } from "../api/client";
import { Problem } from "../api/problem";
import type { CompileRequest, Parting, PartingPlace, PartingResults } from "../api/types";

/** Compares, and tells how far it is.  An abort stays an AbortError; every other failure is a Problem. */
export async function findParting(a: CompileRequest, b: CompileRequest, signal: AbortSignal, said: (p: Parting) => void): Promise<Parting> {
  const found: Parting[] = [];
  let failure: string | null = null;
  await searchFor("/parting", { a, b }, signal, (frame) => {
    if (frame.frame === "parting") (frame.parting.done === true ? (p: Parting) => found.push(p) : said)(frame.parting);
    if (frame.frame === "diagnostic") failure = frame.diagnostic.message;
  });
  const last = found.at(-1);
  if (!last) throw new Problem("request", "search", failure ?? "The comparison ended early.");
  return last;
}

function number(x: number | null | undefined): string {
  return x === null || x === undefined ? "no finite number" : Number(x.toPrecision(6)).toString();
}

/** What differs there, in words. */
export function describeValues(p: PartingPlace): string {
  if (!p.index) return "the shapes differ";
  return `at [${p.index.join(", ")}] A has ${number(p.a?.value)}, B has ${number(p.b?.value)}; they differ by up to ${number(p.max_abs_err)}`;
}

/** Whether what the kernels return differs, as a sentence. */
export function describeResults(r: PartingResults | undefined): string {
  if (r?.same === undefined) return `The results were not compared: ${r?.reason ?? "the time was up"}.`;
  if (r.same && r.max_abs_err) return `The results are the same within the check's tolerances: they differ by up to ${number(r.max_abs_err)}.`;
  if (r.same) return "The results are the same.";
  const name = r.name ?? "A result";
  if (!r.index) return `The results differ: ${name} has other shapes.`;
  return `The results differ: ${name} at [${r.index.join(", ")}] is ${number(r.a)} in A, ${number(r.b)} in B; it differs by up to ${number(r.max_abs_err)}.`;
}
