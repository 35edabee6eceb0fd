// tiles: the buffers of an instruction with what it touches: the present round of its loops solid, all rounds faint.
//
//   reads src %sbuf_2            writes dst %psum
//   ┌────────┬───────┐           ┌────────────────┐
//   │████████│░░░░░░░│           │████████████████│  partitions down, bytes of a partition across
//   └────────┴───────┘           └────────────────┘
import type { AppStore } from "../state/app";
import { linesOfStage } from "../editor/rows";
import { compactLines } from "../nisa/compact";
import { extentOf, regionOf, roundAt, tilesOf, type Rect, type Round, type Tile, type Tiles } from "../nisa/tiles";
import { memoryName } from "../nisa/access";
import { bytesText } from "../state/units";
import { choose } from "../state/view";
import { button, el, fill, saveFile, toggle } from "./dom";
import type { Look, Subject } from "./inspect";
import { svgTexts, tilePicture } from "./pictures";

/** Rounds that are drawn; of more, as many at equal distances. */
const ROUNDS_MAX = 2048;

export class TilesLook implements Look {
  readonly body = el("div", { class: "inspect-body tiles", attrs: { tabindex: 0, role: "region", "aria-label": "The tiles of the instruction" } });
  readonly tools: readonly HTMLElement[];
  private readonly tablesButton: HTMLButtonElement;
  private readonly message = el("p", { class: "value-message", attrs: { role: "status" } });
  private readonly formula = el("code", { class: "tile-formula" });
  private readonly rounds = el("span", { class: "value-rounds" });
  private readonly note = el("p", { class: "note" });
  private readonly pictures = el("div", { class: "tile-pictures" });
  private readonly table = el("div", { class: "value-twin", attrs: { tabindex: 0, role: "region", "aria-label": "Operands as a table" } });
  private readonly content: HTMLElement;
  private subject: Subject | null = null;
  private tiles: Tiles | null = null;
  private round = 0;
  private asTables = false;
  private width = 0;

  constructor(private readonly store: AppStore) {
    this.content = el("div", {}, el("div", { class: "value-head" }, this.formula, this.rounds), this.note, this.pictures, this.table);
    this.body.append(this.message, this.content);
    this.tablesButton = toggle("tables", "The same facts as a table (t)", () => this.showTables(!this.asTables));
    this.tools = [this.tablesButton, button("SVG", "Save the pictures", () => this.save())];
    this.body.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || (e.target instanceof Element && e.target.matches("input"))) return;
      if (e.key === "t") this.showTables(!this.asTables);
      else if (e.key === "[" || e.key === "]") this.goTo(this.round + (e.key === "]" ? 1 : -1));
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
    new ResizeObserver(() => {
      if (Math.abs(this.body.clientWidth - this.width) > 8) this.draw();
    }).observe(this.body);
  }

  clear(why: string): void {
    this.message.textContent = why;
    this.message.hidden = false;
    this.content.hidden = true;
  }

  show(subject: Subject): void {
    const { stage } = subject.shown;
    const isSame = this.subject?.shown.stage === stage && this.subject.line === subject.line;
    this.subject = subject;
    if (!isSame) {
      this.round = 0;
      const lines = linesOfStage(stage);
      this.tiles = tilesOf(lines, subject.line);
      const text = this.tiles ? compactLines(lines)[subject.line - 1]?.text : null;
      this.formula.textContent = text?.slice(1).trim().replace(/\s+/g, " ") ?? "";
    }
    if (subject.execution !== null) this.round = Math.min(subject.execution, this.tiles?.rounds ?? 1) - 1;
    if (!this.tiles || this.tiles.tiles.length === 0) {
      this.clear("Select an instruction of a NISA stage: its tiles are drawn on the buffers that it reads and writes.");
      return;
    }
    this.message.hidden = true;
    this.content.hidden = false;
    if (!isSame || subject.execution !== null || this.body.clientWidth !== this.width) this.draw();
  }

  private showTables(on: boolean): void {
    this.asTables = on;
    this.tablesButton.setAttribute("aria-pressed", String(on));
    this.draw();
  }

  private goTo(round: number): void {
    const next = Math.min(Math.max(Math.round(round), 0), (this.tiles?.rounds ?? 1) - 1);
    if (!Number.isFinite(next) || next === this.round) return;
    this.round = next;
    this.draw();
  }

  private draw(): void {
    const { tiles, body } = this;
    if (!tiles || !this.subject || body.clientWidth === 0) return;
    this.width = body.clientWidth;
    this.drawRounds(tiles);
    const at = roundAt(tiles.loops, this.round);
    const notes = [
      tiles.descriptor > 0 ? `Descriptors of ${bytesText(tiles.descriptor)}.` : "",
      tiles.isCounted ? "" : "The rounds of a loop around it depend on data: one is drawn.",
      tiles.rounds > ROUNDS_MAX ? `Of ${tiles.rounds.toLocaleString("en")} rounds ${ROUNDS_MAX.toLocaleString("en")} are drawn.` : "",
    ];
    this.note.textContent = notes.join(" ").trim();
    this.note.hidden = this.note.textContent === "";
    this.pictures.hidden = this.asTables;
    this.table.hidden = !this.asTables;
    if (this.asTables) fill(this.table, this.twin(tiles, at));
    else fill(this.pictures, ...tiles.tiles.map((t) => this.figure(tiles, t, at)));
  }

  private drawRounds(tiles: Tiles): void {
    this.rounds.hidden = tiles.loops.length === 0;
    const at = roundAt(tiles.loops, this.round);
    const counters = tiles.loops.map((l) => `${l.name.slice(1)} = ${at.get(l.name) ?? 0}`).join(", ");
    const had = [...this.rounds.querySelectorAll("button, input")].indexOf(document.activeElement as Element);
    const step = (by: 1 | -1, label: string, text: string) => {
      const b = button(text, `${label} (${by < 0 ? "[" : "]"})`, () => this.goTo(this.round + by));
      b.setAttribute("aria-label", label);
      b.disabled = by < 0 ? this.round === 0 : this.round >= tiles.rounds - 1;
      return b;
    };
    const field = el("input", { attrs: { type: "text", inputmode: "numeric", size: String(tiles.rounds).length + 1, value: this.round + 1, "aria-label": "Round" } });
    field.addEventListener("change", () => this.goTo(Number(field.value) - 1));
    fill(this.rounds, "round", step(-1, "Previous round", "‹"), field, step(1, "Next round", "›"), `of ${tiles.rounds.toLocaleString("en")}`, el("b", {}, counters));
    const next = this.rounds.querySelectorAll<HTMLElement>("button, input")[had];
    if (had >= 0) (next?.matches(":disabled") ? field : next)?.focus();
  }

  /** The regions of all rounds, or of as many as are drawn. */
  private everywhere(tiles: Tiles, t: Tile): Rect[] {
    const n = Math.min(tiles.rounds, ROUNDS_MAX);
    const seen = new Set<string>();
    const rects: Rect[] = [];
    for (let i = 0; i < n; i++) {
      const at = roundAt(tiles.loops, n < tiles.rounds ? Math.floor((i * tiles.rounds) / n) : i);
      for (const rect of regionOf(t, at) ?? []) {
        const key = `${rect.row},${rect.column},${rect.rows},${rect.columns}`;
        if (!seen.has(key)) rects.push(rect);
        seen.add(key);
      }
    }
    return rects;
  }

  private verb(t: Tile): string {
    const { op } = this.tiles?.instruction ?? {};
    return t.writes ? (op === "matmul" && t.name === "dst" ? "adds to" : "writes") : "reads";
  }

  private figure(tiles: Tiles, t: Tile, at: Round): HTMLElement {
    const here = regionOf(t, at);
    const title = `${this.verb(t)} ${t.name} ${t.access.base}`;
    const width = Math.max(Math.min(this.width - 28, this.width >= 620 ? (this.width - 42) / 2 : this.width - 28), 200);
    const picture = tilePicture({ title, kind: t.writes ? "write" : "read", extent: extentOf(t), elementBytes: t.elementBytes, isOnChip: t.isOnChip, here: here ?? [], everywhere: this.everywhere(tiles, t) }, width);
    const [what = "", ...more] = this.facts(t);
    const region = here && here.length > 0 ? this.boxText(t, here) : "the place depends on data";
    const figure = el(
      "figure",
      { class: "tile" },
      picture as unknown as HTMLElement,
      el("figcaption", { class: "note" }, ...[what, region, ...more].map((text) => el("span", {}, text)), t.line > 0 && button(this.placeOf(t, at), `Show the allocation of ${t.access.base}`, () => this.showLine(t.line), "quiet at")),
    );
    figure.style.width = `${width}px`;
    return figure;
  }

  /** The tile and its buffer; how it lies in memory. */
  private facts(t: Tile): string[] {
    const { access, dims, extents, run, elementBytes, strides } = t;
    const memory = memoryName(access.type.space);
    const steps = strides.map((s, k) => `d${k} ${s === null ? "partition" : `${s.toLocaleString("en")} B`}`).join(", ");
    return [
      `${extents.join("×")} of ${dims.join("×")} ${access.type.dtype} in ${memory || "memory"}`,
      `runs of ${bytesText(run * elementBytes)} · steps: ${steps || "none"}`,
    ];
  }

  /** Where its memory is: what allocate-memory said. */
  private placeOf(t: Tile, at: Round): string {
    if (!t.at) return "allocation";
    const [first, byte] = t.at;
    const copy = t.copies > 1 ? `, copy ${t.copy(at)} of ${t.copies}` : "";
    return `${t.access.type.space === "psum" ? `bank ${first}` : `from partition ${first}`}, byte ${byte.toLocaleString("en")}${copy}`;
  }

  private showLine(line: number): void {
    const { store, subject } = this;
    if (!subject) return;
    const { kernel } = subject.shown.row;
    const { stage } = subject.shown;
    const op = kernel.map.linksOf(stage).lineOp[line - 1] ?? -1;
    if (op >= 0) choose(store, { kind: "ops", map: kernel.map, stage: kernel.stages.indexOf(stage), ops: [op] });
  }

  private twin(tiles: Tiles, at: Round): HTMLElement {
    const heads = ["operand", "", "tile", "of the buffer", "index", "steps in bytes", "contiguous", "in this round"];
    const rows = tiles.tiles.map((t) => {
      const region = regionOf(t, at);
      const box = region && region.length > 0 ? this.boxText(t, region) : "depends on data";
      const steps = t.strides.map((s) => (s === null ? "partition" : s.toLocaleString("en"))).join(", ");
      const cells = [this.verb(t), t.extents.join("×"), `${t.access.base} ${t.dims.join("×")} ${t.access.type.dtype}`, `[${(t.access.index ?? []).join(", ")}]`, steps, bytesText(t.run * t.elementBytes), box];
      return el("tr", {}, el("th", { attrs: { scope: "row" } }, t.name), ...cells.map((c) => el("td", {}, c)));
    });
    const caption = `Operands${tiles.descriptor > 0 ? `; descriptors of ${bytesText(tiles.descriptor)}` : ""}`;
    return el("table", { class: "facts" }, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads.map((h) => el(h === "" ? "td" : "th", h === "" ? {} : { attrs: { scope: "col" } }, h)))), el("tbody", {}, ...rows));
  }

  private boxText(t: Tile, region: readonly Rect[]): string {
    const row = Math.min(...region.map((r) => r.row));
    const column = Math.min(...region.map((r) => r.column));
    const rows = Math.max(...region.map((r) => r.row + r.rows)) - row;
    const columns = Math.max(...region.map((r) => r.column + r.columns)) - column;
    const range = (from: number, n: number) => `${from.toLocaleString("en")}–${(from + n - 1).toLocaleString("en")}`;
    return `${t.isOnChip ? "partitions" : "rows"} ${range(row, rows)}, bytes ${range(column * t.elementBytes, columns * t.elementBytes)}`;
  }

  private save(): void {
    if (this.asTables) this.showTables(false);
    const pictures = [...this.pictures.querySelectorAll<SVGElement>("svg")];
    const { subject } = this;
    if (subject && pictures.length > 0) saveFile(`${subject.shown.stage.name}-${subject.line}-tiles.svg`, new Blob([svgTexts(pictures)], { type: "image/svg+xml" }));
  }
}
