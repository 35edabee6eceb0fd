// operations: the tooltip of a NumPy call: what the function becomes in each stage.
import type { Operation } from "../api/types";
import { el } from "./dom";

const LEVELS = [
  ["HLO", "hlo"],
  ["linalg", "linalg"],
  ["NISA", "nisa"],
] as const;

export function operationTip(op: Operation): HTMLElement {
  const rows = LEVELS.flatMap(([label, level]) => {
    const names = op[level];
    return names.length > 0 ? [el("dt", {}, label), el("dd", {}, names.join(" · "))] : [];
  });
  const name = op.numpy[0] ?? (op.method ? `.${op.method}` : op.name);
  return el("dl", { class: "operation-tip" }, el("dt", {}, "NumPy"), el("dd", {}, el("b", {}, name), ` as in ${op.example}`), ...rows);
}
