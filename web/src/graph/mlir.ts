// mlir: the operations of an MLIR text as a tree of regions: one operation a line, as the compiler prints them.
import { opLabel } from "../highlight/label";

export interface MlirOp {
  /** In the text, from 1. */
  line: number;
  /** The last line of its regions. */
  end: number;
  label: string;
  /** Without indentation. */
  text: string;
  /** Names of its results. */
  results: string[];
  /** The operations of its regions. */
  body: MlirOp[];
  /** The names of block arguments of its first block: "%in", "%out". */
  blockArguments: string[];
}

const RESULTS = /^(%[^=]*?)(?::\d+)? = /;

/** The operations of the functions, without the module around them. */
export function readMlir(lines: readonly string[]): MlirOp[] {
  const top: MlirOp[] = [];
  const stack: MlirOp[] = [];
  lines.forEach((raw, i) => {
    const text = raw.trim();
    const line = i + 1;
    if (text === "" || text.startsWith("//") || text.startsWith("#")) return;
    if (text.startsWith("^")) {
      const owner = stack.at(-1);
      if (owner && owner.blockArguments.length === 0) owner.blockArguments = [...text.matchAll(/(%[\w$.-]+):/g)].map((m) => m[1] ?? "");
      return;
    }
    if (text.startsWith("}")) {
      const owner = stack.at(-1);
      if (owner) owner.end = line;
      if (!text.endsWith("{")) stack.pop(); // "} else {" goes on in the same operation
      return;
    }
    const results = (RESULTS.exec(text)?.[1] ?? "").split(",").map((n) => n.trim()).filter((n) => n !== "");
    const op: MlirOp = { line, end: line, label: opLabel(text, "mlir"), text, results, body: [], blockArguments: [] };
    (stack.at(-1)?.body ?? top).push(op);
    if (text.endsWith("{") && !text.endsWith("}")) stack.push(op);
  });
  return top.flatMap((op) => (op.label === "module" || op.label === "builtin.module" ? op.body : [op]));
}

/** "tensor<128x1024xf32>" as its extents and its type of element; null for what is neither a tensor nor a memref. */
export function shapeOf(type: string): { dims: string[]; dtype: string } | null {
  const m = /^(?:tensor|memref|vector)<((?:(?:\d+|\?|\*)x)*)([\w!.]+)/.exec(type.trim());
  return m ? { dims: (m[1] ?? "").split("x").slice(0, -1), dtype: m[2] ?? "" } : null;
}

/** "128×1024 f32" */
export function shapeText(type: string): string {
  const shape = shapeOf(type);
  if (!shape) return type.trim().slice(0, 20);
  return shape.dims.length > 0 ? `${shape.dims.join("×")} ${shape.dtype}` : shape.dtype;
}
