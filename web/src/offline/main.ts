// main: the script of a self-contained file: sources, stages and the links between their lines.
//
// A click on a line follows it: in the source, to the lines of the stage that came from it; in a stage, to its ranges in the
// source.  Text is only ever set through textContent.
import type { SourceRange, Stage } from "../api/types";
import { BANDS } from "../highlight/bands";
import { tokenizerOf } from "../highlight/dialect";
import { byId, el } from "../panes/dom";
import { stageKeys } from "../state/outcome";
import { lineOfNote, readNotes } from "../state/notes";
import { SourceMap, Sources, type StageLinks } from "../state/sourcemap";
import { showTheme } from "../state/theme";
import type { OfflineData } from "./data";

interface Shown {
  stage: Stage;
  map: SourceMap;
  links: StageLinks;
}

const data = JSON.parse(byId("data").textContent ?? "null") as OfflineData;
const name = data.request.filename ?? data.result.files[0] ?? "kernel";
const texts = new Map([[name, data.request.source ?? ""], ...(data.request.files ?? []).map((f): [string, string] => [f.name, f.source])]);
const sources = new Sources();
sources.add(data.result);
const kernels = data.result.kernels.map((kernel) => {
  const map = new SourceMap([...texts.keys()], sources);
  for (const stage of kernel.stages) map.addStage(stage);
  return { kernel, map };
});
const { notes } = readNotes(data.view?.notes);
/** The rows of the source by file, and of the stage that is shown, by line - 1. */
const sourceRows = new Map<string, HTMLElement[]>();
let stageRows: HTMLElement[] = [];
let shown: Shown | null = null;

function row(line: number, band: number | null | undefined, ...text: (Node | string)[]): HTMLElement {
  const cls = band === null || band === undefined ? "line" : `line band band-${band % BANDS}`;
  return el("div", { class: cls }, el("span", { class: "no" }, String(line)), el("span", { class: "words" }, ...text));
}

/** The notes on lines of a text, by the line's number. */
function notesOn(stage: string | null, kernel: string, file: string, lines: readonly string[]): Map<number, HTMLElement[]> {
  const out = new Map<number, HTMLElement[]>();
  for (const thread of notes) {
    const line = thread.stage === stage && thread.kernel === kernel && thread.file === file ? lineOfNote(thread, lines) : null;
    if (line === null) continue;
    const items = thread.sayings.map(({ by, text }) => el("div", { class: "said" }, el("b", {}, `${by || "someone"}: `), text));
    out.set(line, [...(out.get(line) ?? []), ...items]);
  }
  return out;
}

// ---- the source

function drawSources(): void {
  for (const [file, text] of texts) {
    const bands = kernels[0]?.map.bands(file) ?? new Map<number, number>();
    const rows = text.split("\n").map((line, i) => row(i + 1, bands.get(i + 1), line));
    rows.forEach((r, i) => r.addEventListener("click", () => followSource(file, i + 1)));
    sourceRows.set(file, rows);
    if (texts.size > 1) byId("source").append(el("div", { class: "file" }, file));
    const said = notesOn(null, "", file, text.split("\n"));
    byId("source").append(...rows.flatMap((r, i) => [r, ...(said.get(i + 1) ?? [])]));
  }
}

/** Marks the columns of a range in a row; they count code points. */
function markRange(r: HTMLElement, range: SourceRange, line: number): void {
  const words = r.querySelector(".words");
  if (!words) return;
  const points = [...(words.textContent ?? "")];
  const from = line === range.line ? range.col - 1 : 0;
  const to = line === range.end_line ? range.end_col - 1 : points.length;
  const part = (a: number, b: number) => points.slice(a, b).join("");
  words.replaceChildren(part(0, from), el("mark", {}, part(from, to)), part(to, points.length));
}

function clear(): void {
  for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
  for (const mark of document.querySelectorAll("mark")) {
    const words = mark.parentElement;
    words?.replaceChildren(words.textContent ?? "");
  }
}

function light(rows: readonly (HTMLElement | undefined)[]): void {
  const lit = rows.filter((r) => r !== undefined);
  for (const r of lit) r.classList.add("lit");
  lit[0]?.scrollIntoView({ block: "nearest" });
}

// ---- following

function followSource(file: string, line: number): void {
  if (!shown) return;
  const { map, links } = shown;
  const covers = (n: number) => {
    const range = map.ranges[n];
    return range !== undefined && range.file === file && range.line <= line && line <= range.end_line;
  };
  clear();
  light([sourceRows.get(file)?.[line - 1]]);
  light(stageRows.filter((_, i) => links.places[i]?.some((place) => place.some(covers))));
}

function followStage(index: number): void {
  if (!shown) return;
  const { map, links } = shown;
  clear();
  light([stageRows[index]]);
  const ranges = (links.places[index] ?? []).flatMap((place) => place[0] ?? []).filter((n) => map.isShown(n));
  const rows: (HTMLElement | undefined)[] = [];
  for (const n of ranges) {
    const range = map.ranges[n];
    if (!range) continue;
    for (let line = range.line; line <= range.end_line; line++) {
      const r = sourceRows.get(range.file)?.[line - 1];
      if (r && !rows.includes(r)) markRange(r, range, line);
      rows.push(r);
    }
  }
  light(rows);
}

// ---- the stages

function words(stage: Stage, line: string): (Node | string)[] {
  const out: (Node | string)[] = [];
  let at = 0;
  for (const { from, to, cls } of tokenizerOf(stage.dialect)(line)) {
    if (from > at) out.push(line.slice(at, from));
    out.push(el("span", { class: `ir-${cls}` }, line.slice(from, to)));
    at = to;
  }
  out.push(line.slice(at));
  return out;
}

function show(stage: Stage, key: string, kernel: string, map: SourceMap, button: HTMLElement): void {
  const links = map.linksOf(stage);
  shown = { stage, map, links };
  for (const b of document.querySelectorAll("#stages [aria-current]")) b.removeAttribute("aria-current");
  button.setAttribute("aria-current", "true");
  byId("text-title").textContent = `${stage.name} (${stage.dialect})`;
  const lines = stage.text.split("\n");
  const said = notesOn(key, kernel, "", lines);
  stageRows = lines.map((line, i) => row(i + 1, map.bandOfPlaces(links.places[i] ?? []), ...words(stage, line)));
  stageRows.forEach((r, i) => r.addEventListener("click", () => followStage(i)));
  byId("text").replaceChildren(...stageRows.flatMap((r, i) => [r, ...(said.get(i + 1) ?? [])]));
  clear();
}

function drawStages(): void {
  let last: HTMLElement | null = null;
  for (const { kernel, map } of kernels) {
    byId("stages").append(el("h3", {}, kernel.name));
    const keys = stageKeys(kernel.stages.map((s) => s.name));
    for (const [i, stage] of kernel.stages.entries()) {
      const button = el("button", { class: stage.changed ? "" : "same", attrs: { type: "button" } }, stage.name);
      button.addEventListener("click", () => show(stage, keys[i] ?? stage.name, kernel.name, map, button));
      byId("stages").append(button);
      last = button;
    }
  }
  last?.click();
  last?.scrollIntoView({ block: "nearest" });
}

showTheme("system");
const title = data.title ?? kernels[0]?.kernel.name ?? "Kernel";
document.title = `${title} · Neuron Kernel Explorer`;
byId("title").textContent = title;
byId("about").textContent = data.result.diagnostics.length > 0
  ? data.result.diagnostics.map((d) => `${d.severity}: ${d.message}`).join(" · ")
  : `for ${data.result.target}: click a line to follow it`;
drawSources();
drawStages();
