// access: an operand as NumPy would write it.
//
//   %sbuf_1[d0, %i, 0, d1] of 128x2x1x512    %sbuf_1[:, i]
//   %arg1[%0 + d0, d1], %0 = 128·j           %arg1[128·j..]
//   %sbuf[d0, d1] in full                    %sbuf
//   %sbuf as bf16[d0, d1 + 64]               %sbuf as bf16[:, 64..], and 64..96 if the tile ends before the value
//
// ".." without an end goes as far as the value does, or, from a place that a loop decides, as far as the tile does: the
// line's shape says how many elements that are.  What follows the last index that selects is left out, as in NumPy.
import { isAccess, type Access, type Operand } from "./read";
import type { Scope } from "./scope";

const FULL = ":";

/** One dimension: ":" if all of it is taken, "" if it has one element. */
function part(expr: string, extent: string | undefined, tile: readonly string[], scope: Scope): { text: string; dim: number } | null {
  const terms = scope.terms(expr);
  if (!terms) return null;
  const tiles = terms.filter((t) => /^d\d+$/.test(t.name));
  const offset = scope.sum(terms.filter((t) => !/^d\d+$/.test(t.name)));
  const [d] = tiles;
  if (!d) return { text: extent === "1" && offset === "" ? "" : offset || "0", dim: -1 };
  if (tiles.length > 1 || d.minus) return null;
  const dim = Number(d.name.slice(1));
  const size = tile[dim];
  if (d.factor !== "1") return { text: `${offset || "0"}..:${d.factor}`, dim };
  if (size === "1") return { text: extent === "1" && offset === "" ? "" : offset || "0", dim };
  if (offset === "") return { text: size === extent ? FULL : `..${size}`, dim };
  const end = /^\d+$/.test(offset) ? Number(offset) + Number(size) : extent;
  return { text: String(end) === extent ? `${offset}..` : `${offset}..${end}`, dim };
}

function baseText(a: Access, scope: Scope): string {
  return scope.text(a.base) + (a.other ? ` as ${a.other}` : "");
}

/** Several tile coordinates in one index, or in another order than the tile's: as printed, but short. */
function literal(a: Access, scope: Scope): string {
  const short = (expr: string) => {
    const terms = scope.terms(expr);
    return (terms && scope.sum(terms)) || (terms ? "0" : expr);
  };
  return `${baseText(a, scope)}[${(a.index ?? []).map(short).join(", ")}]`;
}

export function accessText(a: Access, scope: Scope): string {
  if (!a.index) return `${baseText(a, scope)} by ${a.map.replace(/>(?=\[[^\]]*\]$)/, " of ")}`;
  const parts = a.index.map((expr, r) => part(expr, a.type.dims[r], a.tile, scope));
  const dims = parts.flatMap((p) => (p && p.dim >= 0 && p.text !== "" ? [p.dim] : []));
  if (parts.includes(null) || dims.some((d, i) => i > 0 && d <= (dims[i - 1] as number))) return literal(a, scope);
  let n = parts.length;
  while (n > 0 && (parts[n - 1]?.text === FULL || parts[n - 1]?.text === "")) n--;
  const shown = parts.slice(0, n).map((p) => p?.text || "0");
  return baseText(a, scope) + (n > 0 ? `[${shown.join(", ")}]` : "");
}

export function operandText(o: Operand | undefined, scope: Scope): string {
  if (o === undefined) return "?";
  return isAccess(o) ? accessText(o, scope) : scope.text(o.value);
}

/** "128×512 f32" */
export function shapeText(dims: readonly string[], dtype: string): string {
  return dims.length > 0 ? `${dims.join("×")} ${dtype}` : dtype;
}

/** "HBM", "SBUF", "PSUM" */
export function memoryName(space: string): string {
  return space.endsWith("hbm") ? "HBM" : space.toUpperCase();
}
