// nki: the calls of nki.isa and the names of nki.language, from the server; requested when first needed.
import { getNkiCalls } from "../api/client";
import type { NkiCall } from "../api/types";

let asked: Promise<ReadonlyMap<string, NkiCall> | null> | null = null;

async function load(): Promise<ReadonlyMap<string, NkiCall> | null> {
  try {
    return new Map((await getNkiCalls()).map((call) => [call.name, call]));
  } catch {
    asked = null;
    return null;
  }
}

/** By "nisa.nc_matmul" or "nl.load".  Null if the server cannot be reached, which is not reported, since only help shows
 * calls; the next call asks again. */
export function nkiCalls(): Promise<ReadonlyMap<string, NkiCall> | null> {
  return (asked ??= load());
}
