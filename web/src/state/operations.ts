// operations: what NumPy's functions become, from the server; requested when first needed.
import { getOperations } from "../api/client";
import type { Operation } from "../api/types";

let asked: Promise<Map<string, Operation>> | null = null;

async function load(): Promise<Map<string, Operation>> {
  const byName = new Map<string, Operation>();
  for (const op of await getOperations()) {
    for (const name of op.numpy) byName.set(name, op);
    if (op.method) byName.set(`.${op.method}`, op);
  }
  return byName;
}

/** By "np.exp" or ".sum".  A failure is not reported, since only tooltips show operations; the next tooltip asks again. */
export async function operationNamed(name: string): Promise<Operation | null> {
  asked ??= load();
  try {
    return (await asked).get(name) ?? null;
  } catch {
    asked = null;
    return null;
  }
}
