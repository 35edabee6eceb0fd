// short: a line of HLO or MLIR without what hides the operation: locations, large constants, and attributes if wished; a line
// of NKI whose code leaves room for what the analysis says after it.
import { groupEnd } from "./read";

/** Characters of a constant that are still shown. */
const CONSTANT_MAX = 48;
/** Where the notes of nki-ast begin. */
const NOTE_AT = 46;
/** What shows the work of an operation, not how it came about. */
const MEANT = /^\{\s*(?:indexing_maps|\w+ = affine_map|value =)/;

/** Replaces each bracketed group that begins at a match of `start` by what `by` makes of it. */
function replaceGroups(line: string, start: RegExp, by: (group: string) => string): string {
  let out = "";
  let from = 0;
  start.lastIndex = 0;
  for (let m = start.exec(line); m; m = start.exec(line)) {
    const open = m.index + m[0].length - 1;
    const end = groupEnd(line, open);
    if (end < 0) break;
    out += line.slice(from, open) + by(line.slice(open, end));
    from = end;
    start.lastIndex = end;
  }
  return out + line.slice(from);
}

function cut(group: string): string {
  return group.length > CONSTANT_MAX ? `${group[0]}…${group.at(-1)}` : group;
}

function shortMlir(line: string, attributes: boolean): string {
  let out = line;
  if (line.length > CONSTANT_MAX) out = replaceGroups(out, /\b(?:dense|dense_resource|array)</g, cut);
  if (out.includes(" loc(")) out = replaceGroups(out, / loc\(/g, () => "()").replaceAll(" loc()", "");
  // a dictionary of attributes, not a region: its first word is followed by "=", "," or the closing brace
  if (!attributes && out.includes("{"))
    out = replaceGroups(out, /\{(?=\s*(?:[\w$.]+|"[^"]*")\s*(?:=|,|\}))/g, (g) => (MEANT.test(g) ? g : "{}")).replace(/ (?:attributes )?\{\}/g, "");
  return out;
}

function shortHlo(line: string, attributes: boolean): string {
  let out = line;
  if (line.length > CONSTANT_MAX) out = replaceGroups(out, /\bconstant\(/g, cut);
  if (!attributes) {
    out = replaceGroups(out, /, (?:metadata|frontend_attributes|backend_config|sharding|entry_computation_layout)=\{/g, () => "{}");
    out = out.replace(/, \w+=\{\}/g, "").replace(/(\])\{[\d,:TSE()*]*\}/g, "$1");
  }
  return out;
}

function shortNki(line: string): string {
  const [, code = "", note] = /^(.*\S) {2,}(# .*)$/.exec(line) ?? [];
  if (note === undefined) return line;
  return `${code.length > NOTE_AT ? `${code.slice(0, NOTE_AT - 1)}…` : code.padEnd(NOTE_AT)}  ${note}`;
}

export function shortLine(line: string, dialect: string, attributes: boolean): string {
  if (dialect === "nki") return shortNki(line);
  return dialect === "hlo" ? shortHlo(line, attributes) : shortMlir(line, attributes);
}
