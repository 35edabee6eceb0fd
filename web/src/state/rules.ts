// rules: the rules by which passes decide, from the server; requested when reasons are first opened.
import { getRules } from "../api/client";
import type { Rule } from "../api/types";

let asked: Promise<ReadonlyMap<string, Rule> | null> | null = null;

async function load(): Promise<ReadonlyMap<string, Rule> | null> {
  try {
    return new Map((await getRules()).map((r) => [r.name, r]));
  } catch {
    asked = null;
    return null;
  }
}

/** By name; null if the server cannot be reached.  The next call asks again. */
export function rules(): Promise<ReadonlyMap<string, Rule> | null> {
  return (asked ??= load());
}
