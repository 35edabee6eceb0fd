// inputs: shapes as they stand in links and snippets, checked: a link can be made by anyone.
import type { InputSpec } from "../api/types";

/** Throws when it is no list of shapes. */
export function readInputs(list: unknown): InputSpec[] {
  if (!Array.isArray(list)) throw new SyntaxError("inputs are no list");
  return list.map((x: unknown) => {
    const { name, shape, dtype } = (x ?? {}) as Record<string, unknown>;
    if (!Array.isArray(shape) || typeof dtype !== "string") throw new SyntaxError("an input without shape or dtype");
    const spec: InputSpec = { shape: shape.map(Number), dtype };
    if (typeof name === "string") spec.name = name;
    return spec;
  });
}
