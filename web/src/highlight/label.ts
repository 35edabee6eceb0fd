// label: the name of the operation on a line, for chips: HLO's opcode, MLIR's "dialect.operation".

const HLO = /^\s*(?:ROOT\s+)?%?[\w.-]+\s*=\s.*?[\])}]\s([a-z][\w-]*)\(/;
const MLIR = /^\s*(?:%[^=]*=\s*)?"?((?:[A-Za-z_][\w$]*\.)*[A-Za-z_][\w$]*)"?/;

const NKI = /^\s*(?:\w+ = )?((?:nisa|nl)\.\w+)\(|^(def)\b|^\s*(return|for|while|if|elif|else|with)\b/;
const NKI_INSIDE = /\b(nisa\.\w+|nl\.ndarray)\(/;

export function opLabel(line: string, dialect: string): string {
  if (dialect === "nki") return (NKI.exec(line) ?? NKI_INSIDE.exec(line))?.slice(1).find((s) => s !== undefined) ?? line.trim().slice(0, 24);
  const m = (dialect === "hlo" ? HLO : MLIR).exec(line);
  return m?.[1] ?? line.trim().slice(0, 24);
}
