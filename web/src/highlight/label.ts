// label: the short name of the operation on a line, for chips and announcements.

const HLO = /^\s*(?:ROOT\s+)?%?([\w.-]+)\s*=/;
const MLIR = /^\s*(?:%[^=]*=\s*)?"?((?:[A-Za-z_][\w$]*\.)*[A-Za-z_][\w$]*)"?/;

export function opLabel(line: string, dialect: string): string {
  const m = (dialect === "hlo" ? HLO : MLIR).exec(line);
  return m?.[1] ?? line.trim().slice(0, 24);
}
