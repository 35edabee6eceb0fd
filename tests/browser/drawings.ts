// drawings: checks the pictures of stages, for test_drawings.py.
//
//   node drawings.mjs check RESULT.json            every stage, as at first and with every group and loop open
//   node drawings.mjs loops FILE.mlir              the loops and the work in them, one row a line
//   node drawings.mjs flow FILE.hlo                the boxes of the graph, one a line
import { readFileSync } from "node:fs";
import type { Result } from "../../web/src/api/types";
import { callsOfStage } from "../../web/src/graph/calls";
import type { Box, Drawing, Wanted } from "../../web/src/graph/drawing";
import { flowDrawing } from "../../web/src/graph/flow";
import { readHlo } from "../../web/src/graph/hlo";
import { nestDrawing } from "../../web/src/graph/nest";
import { frozenOutcome } from "../../web/src/state/outcome";

function draw(dialect: string, text: string, calls: Wanted["calls"], opened: Wanted["opened"], constants: boolean): Drawing {
  const wanted: Wanted = { id: 0, dialect, text, calls, opened, constants };
  return dialect === "hlo" ? flowDrawing(wanted) : nestDrawing(wanted);
}

/** Opens everything, level by level. */
function unfolded(dialect: string, text: string, calls: Wanted["calls"], constants: boolean): Drawing {
  const opened = new Map<string, boolean>();
  for (;;) {
    const drawing = draw(dialect, text, calls, opened, constants);
    const closed = drawing.boxes.filter((b) => b.open === false && !opened.has(b.id));
    if (closed.length === 0) return drawing;
    for (const b of closed) opened.set(b.id, true);
  }
}

const contains = (a: Box, b: Box) => a.x <= b.x + 1 && a.y <= b.y + 1 && a.x + a.width >= b.x + b.width - 1 && a.y + a.height >= b.y + b.height - 1;
const meets = (a: Box, b: Box) => a.x + 1 < b.x + b.width && b.x + 1 < a.x + a.width && a.y + 1 < b.y + b.height && b.y + 1 < a.y + a.height;

/** Boxes overlap only if one is an open frame around the other. */
function overlaps(drawing: Drawing): string[] {
  const wrong: string[] = [];
  const { boxes } = drawing;
  const ids = new Set(boxes.map((b) => b.id));
  if (ids.size !== boxes.length) wrong.push("two boxes have one id");
  boxes.forEach((a, i) => {
    if (a.x < -1 || a.y < -1 || a.x + a.width > drawing.width + 1 || a.y + a.height > drawing.height + 1) wrong.push(`${a.title} leaves the drawing`);
    for (const b of boxes.slice(i + 1)) if (meets(a, b) && !(a.open && contains(a, b)) && !(b.open && contains(b, a))) wrong.push(`${a.title} ${a.id} overlaps ${b.title} ${b.id}`);
  });
  for (const e of drawing.edges) {
    if (!ids.has(e.from) || !ids.has(e.to)) wrong.push(`an edge ${e.from} ${e.to} has no box`);
    if (e.points.length < 2 || e.text === "") wrong.push(`an edge ${e.from} ${e.to} has no way or no text`);
  }
  return wrong;
}

function check(result: Result) {
  const wrong: string[] = [];
  let boxes = 0;
  const outcome = frozenOutcome(new Map((result.files ?? []).map((f) => [f, ""])), result, "x", 1);
  for (const kernel of outcome.kernels)
    for (const [i, stage] of kernel.stages.entries()) {
      if (kernel.stages[i - 1]?.text === stage.text) continue;
      const calls = callsOfStage(kernel.map, stage);
      for (const constants of i === 0 || stage.dialect !== "hlo" ? [false, true] : [false])
        for (const drawing of [draw(stage.dialect, stage.text, calls, new Map(), constants), unfolded(stage.dialect, stage.text, calls, constants)]) {
          const found = overlaps(drawing);
          const shown = new Set(drawing.boxes.flatMap((b) => b.lines));
          const lines = stage.text.split("\n");
          if (stage.dialect === "hlo") {
            const entry = readHlo(lines).find((c) => c.isEntry)?.ops ?? [];
            for (const op of entry) if (!shown.has(op.line) && !(op.opcode === "constant" || op.opcode === "broadcast")) found.push(`line ${op.line} is not shown: ${op.opcode}`);
          } else
            lines.forEach((text, i) => {
              if (/^\s*(?:%\S+ = )?(?:linalg\.(?!yield|index)|nisa\.\w+\(|scf\.(?:for|while|if))/.test(text) && !shown.has(i + 1)) found.push(`line ${i + 1} is not shown: ${text.trim().slice(0, 60)}`);
            });
          boxes += drawing.boxes.length;
          wrong.push(...found.slice(0, 3).map((w) => `${kernel.name}, ${stage.name}: ${w}`));
        }
    }
  return { wrong, boxes };
}

const [what, path = ""] = process.argv.slice(2);
const text = readFileSync(path, "utf8");
if (what === "check") console.log(JSON.stringify(check(JSON.parse(text) as Result)));
else
  for (const b of unfolded(what === "flow" ? "hlo" : "mlir", text, [], false).boxes) console.log(`${"  ".repeat(b.depth)}${b.title}${b.title && b.detail ? "  " : ""}${b.detail}`);
