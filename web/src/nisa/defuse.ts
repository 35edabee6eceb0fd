// defuse: where a value of a stage is defined, and how far its name means it.  For MLIR and HLO as they are printed.
//
// A name may be given again in another region or computation, so a definition holds until the next one of its name.

function quoted(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Tests lines for a definition of the name: a result, a loop's counter, or an argument of a function or block. */
function definer(name: string): (line: string) => boolean {
  const n = quoted(name);
  const result = new RegExp(`^[\\s%\\w$.,:-]*?(?:^|[\\s,])${n}(?::\\d+)?(?:,[\\s%\\w$.,:-]*)? = `);
  const argument = new RegExp(`[(,]\\s*${n}(?: = |: )`);
  return (line) => line.includes(name) && (result.test(line) || (name.startsWith("%") && argument.test(line)));
}

export interface Definition {
  /** From 1; 0 if the text has none. */
  line: number;
  /** The line of the name's next definition, or the one after the last. */
  end: number;
}

export function definitionOf(lines: readonly string[], name: string, at: number): Definition {
  const defines = definer(name);
  let line = Math.min(at, lines.length);
  while (line > 0 && !defines(lines[line - 1] as string)) line--;
  let end = Math.max(line, at) + 1;
  while (end <= lines.length && !defines(lines[end - 1] as string)) end++;
  return { line, end };
}

/** The first use after line `from`, or else the first after the definition; 0 for none. */
export function useAfter(lines: readonly string[], name: string, def: Definition, from: number): number {
  const use = new RegExp(`(?<![\\w$.%-])${quoted(name)}(?![\\w$.-])`);
  const find = (first: number, end: number) => {
    for (let line = first; line < end; line++) if (use.test(lines[line - 1] ?? "")) return line;
    return 0;
  };
  return find(Math.max(from, def.line) + 1, def.end) || find(def.line + 1, Math.min(from, def.end));
}
