// operations: what the server says that NumPy's functions become; asked for when first wanted.
import { getOperations } from "../api/client";
import type { Operation } from "../api/types";

let asked = false;
const byName = new Map<string, Operation>();

/** Starts asking; a failure is no one's trouble, since only hovers tell of operations. */
export function loadOperations(): void {
  if (asked) return;
  asked = true;
  getOperations().then(
    (list) => {
      for (const op of list) {
        for (const name of op.numpy) byName.set(name, op);
        if (op.method) byName.set(`.${op.method}`, op);
      }
    },
    () => {
      asked = false;
    },
  );
}

/** By "np.exp" or ".sum". */
export function operationNamed(name: string): Operation | null {
  return byName.get(name) ?? null;
}
