// inputs: the shapes in a link or a snippet, checked, because anyone can make a link.
import type { Dtype, InputSpec } from "../api/types";

/** Throws when it is not a list of shapes.  The server refuses an unknown dtype. */
export function readInputs(list: unknown): InputSpec[] {
  if (!Array.isArray(list)) throw new SyntaxError("inputs are not a list");
  return list.map((x: unknown) => {
    const { name, shape, dtype } = (x ?? {}) as Record<string, unknown>;
    if (!Array.isArray(shape) || typeof dtype !== "string") throw new SyntaxError("an input without shape or dtype");
    const spec: InputSpec = { shape: shape.map(Number), dtype: dtype as Dtype };
    if (typeof name === "string") spec.name = name;
    return spec;
  });
}
