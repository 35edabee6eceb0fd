// operations: what NumPy's functions become, and the knobs, from the server; requested when first needed.
import { getOperations } from "../api/client";
import type { Knob, Operation } from "../api/types";

export interface Vocabulary {
  /** By "np.exp" or ".sum". */
  operations: ReadonlyMap<string, Operation>;
  knobs: readonly Knob[];
}

let asked: Promise<Vocabulary | null> | null = null;

async function load(): Promise<Vocabulary | null> {
  try {
    const { ops, knobs } = await getOperations();
    const names = ops.flatMap((op) => [...op.numpy, ...(op.method ? [`.${op.method}`] : [])].map((name) => [name, op] as const));
    return { operations: new Map(names), knobs };
  } catch {
    asked = null;
    return null;
  }
}

/** Null if the server cannot be reached, which is not reported, since only help shows operations; the next call asks again. */
export function vocabulary(): Promise<Vocabulary | null> {
  return (asked ??= load());
}

export async function operationNamed(name: string): Promise<Operation | null> {
  return (await vocabulary())?.operations.get(name) ?? null;
}
