// rows: checks the rows of stages, for test_rows.py.
//
//   node rows.mjs check RESULT.json    every stage in every form: lines and rows must belong to each other
//   node rows.mjs print TEXT.nisa      the compact form, every fold open
import { readFileSync } from "node:fs";
import type { Result, Stage } from "../../web/src/api/types";
import { linesOfStage, type Rows, rowsOfStage } from "../../web/src/editor/rows";

const DETAILS = [
  { full: false, attributes: true },
  { full: false, attributes: false },
  { full: true, attributes: true },
];
/** Lines that may look as printed: their printed form is short. */
const PLAIN = /^(?:\}|module|func\.func|return|%\S+ = arith\.|scf\.)/;

function checkMaps(rows: Rows, stage: Stage): string[] {
  const wrong: string[] = [];
  let next = 1;
  for (let row = 1; row <= rows.count; row++) {
    const { first, end } = rows.linesOf(row);
    if (first !== next) wrong.push(`row ${row} begins at ${first}, not ${next}`);
    if (rows.isHead(row) ? first !== end : first >= end) wrong.push(`row ${row} has lines ${first} to ${end}`);
    const line = rows.lineOf(row);
    if (!rows.isHead(row) && (line < first || line >= end || rows.rowOf(line) !== row)) wrong.push(`row ${row} is not that of its line ${line}`);
    for (let l = first; l < end; l++) if (rows.rowOf(l) !== row) wrong.push(`line ${l} is in row ${rows.rowOf(l)}, not ${row}`);
    next = end;
  }
  if (next !== stage.lines.length + 1) wrong.push(`the rows end at line ${next} of ${stage.lines.length}`);
  return wrong;
}

/** In the compact form every instruction has a row of its own, and none is shown as it is printed. */
function checkCompact(rows: Rows, stage: Stage, lines: readonly string[]): string[] {
  const wrong: string[] = [];
  lines.forEach((text, i) => {
    const row = rows.rowOf(i + 1);
    const isInstruction = /^\s*(?:%\S+ = )?nisa\.\w+\(/.test(text);
    if (isInstruction && rows.lineOf(row) !== i + 1) wrong.push(`line ${i + 1} is an instruction without a row`);
    if (stage.lines[i]?.op !== undefined && !PLAIN.test(text.trim()) && rows.texts[row - 1]?.includes(text.trim()))
      wrong.push(`line ${i + 1} is not understood: ${text.trim().slice(0, 120)}`);
  });
  return wrong;
}

function check(result: Result) {
  const wrong: string[] = [];
  let [instructions, wide, wider] = [0, 0, 0];
  for (const kernel of result.kernels)
    for (const stage of kernel.stages) {
      const lines = linesOfStage(stage);
      const every = new Set(lines.map((_, i) => i + 1));
      for (const detail of DETAILS)
        for (const opened of [new Set<number>(), every]) {
          const rows = rowsOfStage(stage, detail, opened);
          const found = checkMaps(rows, stage);
          if (rows.isCompact) found.push(...checkCompact(rows, stage, lines));
          if (detail.full && rows.texts.join("\n") !== lines.join("\n")) found.push("the full text is another");
          wrong.push(...found.map((w) => `${kernel.name}, ${stage.name}, ${JSON.stringify(detail)}: ${w}`));
          if (!rows.isCompact || opened === every) continue;
          const widths = rows.texts.filter((t) => /^[TVSGYD] /.test(t)).map((t) => t.length);
          instructions += widths.length;
          wide += widths.filter((w) => w > 62).length;
          wider += widths.filter((w) => w > 72).length;
        }
    }
  return { wrong, instructions, wide, wider };
}

const [what, path = ""] = process.argv.slice(2);
const text = readFileSync(path, "utf8");
if (what === "check") console.log(JSON.stringify(check(JSON.parse(text) as Result)));
else {
  const stage = { text, dialect: "nisa", name: path } as Stage;
  const all = new Set(linesOfStage(stage).map((_, i) => i + 1));
  console.log(rowsOfStage(stage, { full: false, attributes: true }, all).texts.join("\n"));
}
