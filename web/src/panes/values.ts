// values: what one value of a stage holds: statistics, histogram, heat map, a part of its elements, and where it first parts
// from the reference.
//
// A request is sent for each new value, execution or part; a newer one cancels it.  Answers are kept for as long as the
// result is the same, so that going back shows them at once.
import { isAbort } from "../api/client";
import { Problem } from "../api/problem";
import type { SliceQuery, Value, ValueQuery } from "../api/types";
import type { AppStore } from "../state/app";
import type { Outcome } from "../state/outcome";
import { numberText } from "../state/units";
import { askValue, blockAt, choicesOf, type Choice } from "../state/value";
import { choose, showStage, allRows } from "../state/view";
import { button, el, fill, plural, saveFile, setAttr, toggle } from "./dom";
import { Elements } from "./elements";
import { HeatCanvas } from "./heatmap";
import { histogramPicture, svgText } from "./pictures";
import type { Look, Subject } from "./inspect";

/** Milliseconds after which the drawer says that it waits: an answer that comes at once must not flicker. */
const PATIENCE_MS = 150;
/** Answers that are kept. */
const KEPT_MAX = 48;
/** The heat map's table joins cells until it has at most as many rows and columns. */
const TWIN_MAX = 16;

export class ValuesLook implements Look {
  readonly body = el("div", { class: "inspect-body values", attrs: { tabindex: 0, role: "region", "aria-label": "The value" } });
  readonly tools: readonly HTMLElement[];
  private readonly tablesButton: HTMLButtonElement;
  private readonly message = el("p", { class: "value-message", attrs: { role: "status" } });
  private readonly picks = el("div", { class: "value-picks", attrs: { role: "group", "aria-label": "Values of the line" } });
  private readonly rounds = el("span", { class: "value-rounds" });
  private readonly verdict = el("p", { class: "value-verdict" });
  private readonly facts = el("dl", { class: "value-facts" });
  private readonly heatBox = el("figure", { class: "value-heat" });
  private readonly heatHost = el("div", {});
  private readonly heatSaid = el("figcaption", { class: "note", attrs: { "aria-live": "polite" } });
  private readonly heatTable = el("div", { class: "value-twin", attrs: { tabindex: 0, role: "region", "aria-label": "Heat map as a table" } });
  private readonly bars = el("figure", { class: "value-bars" });
  private readonly content: HTMLElement;
  private readonly heat: HeatCanvas;
  private readonly elements: Elements;

  private subject: Subject | null = null;
  private choice: Choice | null = null;
  private execution: number | null = null;
  /** The element that the table of elements shows, among others; null: the first one. */
  private at: number[] | null = null;
  private value: Value | null = null;
  private running: AbortController | null = null;
  private kept = new Map<string, Value>();
  private keptOf: Outcome | null = null;
  private asTables = false;

  constructor(private readonly store: AppStore) {
    this.heat = new HeatCanvas(this.heatHost, { chosen: (r, c) => this.goToCell(r, c), said: (text) => (this.heatSaid.textContent = text || this.heatCaption()) });
    this.elements = new Elements((at) => this.goTo(at));
    this.heatBox.append(this.heatHost, this.heatTable, this.heatSaid);
    this.content = el("div", { class: "value-content" }, this.verdict, el("div", { class: "value-main" }, this.heatBox, el("div", { class: "value-side" }, this.facts, this.bars)), this.elements.box);
    this.body.append(el("div", { class: "value-head" }, this.picks, this.rounds), this.message, this.content);
    this.tablesButton = toggle("tables", "The same facts as tables (t)", () => this.showTables(!this.asTables));
    this.tools = [
      this.tablesButton,
      button("PNG", "Save the heat map as a picture", () => void this.savePng()),
      button("SVG", "Save the histogram as a picture", () => this.saveSvg()),
      button("CSV", "Save the elements that are shown", () => this.saveCsv()),
    ];
    this.body.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || (e.target instanceof Element && e.target.matches("input, select"))) return;
      if (e.key === "t") this.showTables(!this.asTables);
      else if (e.key === "[" || e.key === "]") this.stepExecution(e.key === "]" ? 1 : -1);
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
    store.watch(["targets"], () => this.value && this.draw());
  }

  clear(why: string): void {
    this.running?.abort();
    this.running = null;
    this.say(why);
    setAttr(this.body, "aria-busy", null);
  }

  /** Says why what is shown is not what is selected. */
  private say(why: string): void {
    this.message.textContent = why;
    this.message.hidden = false;
    this.content.classList.add("old");
  }

  show(subject: Subject): void {
    const was = this.subject;
    const isSame = was?.shown.stage === subject.shown.stage && was.line === subject.line && was.name === subject.name && this.keptOf === this.store.state.outcome;
    if (isSame && this.message.hidden && subject.execution === null) return;
    if (!isSame) {
      const choices = choicesOf(subject.shown, subject.line);
      const own = subject.name === null ? undefined : (choices.find((c) => c.name === subject.name) ?? choices.find((c) => c.operand !== null && c.label.endsWith(` ${subject.name}`)));
      this.choice = own ?? choices[0] ?? { label: "", name: null, operand: null };
      this.execution = null;
      this.at = null;
    }
    if (subject.execution !== null) this.execution = subject.execution;
    this.subject = subject;
    this.drawPicks(choicesOf(subject.shown, subject.line));
    void this.ask();
  }

  private showTables(on: boolean): void {
    this.asTables = on;
    this.tablesButton.setAttribute("aria-pressed", String(on));
    if (this.value) this.draw();
  }

  // ---- asking

  private query(): ValueQuery | null {
    const { subject, choice } = this;
    if (!subject || !choice) return null;
    const query: ValueQuery = { stage: String(subject.shown.stage.index), line: subject.line };
    if (choice.name !== null) query.name = choice.name;
    if (choice.operand !== null) query.operand = choice.operand;
    if (this.execution !== null) query.execution = this.execution;
    const slice = this.slice();
    if (slice) query.slice = slice;
    return query;
  }

  private slice(): SliceQuery[] | null {
    const { at, value } = this;
    const heat = value?.heat;
    return at && heat && value.shape ? blockAt(at, value.shape, heat.row_dim, heat.column_dim) : null;
  }

  private async ask(): Promise<void> {
    this.running?.abort();
    const { outcome } = this.store.state;
    const query = this.query();
    if (!query || !this.subject || !outcome) return;
    if (this.keptOf !== outcome) {
      this.kept.clear();
      this.keptOf = outcome;
    }
    const kernel = this.subject.shown.row.kernel.name;
    const key = JSON.stringify([kernel, query]);
    const known = this.kept.get(key);
    if (known) {
      this.arrived(known);
      return;
    }
    const mine = new AbortController();
    this.running = mine;
    setAttr(this.body, "aria-busy", "true");
    window.setTimeout(() => this.running === mine && this.say("The value is being computed…"), PATIENCE_MS);
    try {
      const value = await askValue(this.store, kernel, query, mine.signal);
      if (this.running !== mine) return;
      if (this.kept.size >= KEPT_MAX) this.kept.delete(this.kept.keys().next().value as string);
      this.kept.set(key, value);
      this.arrived(value);
    } catch (e) {
      if (isAbort(e) || this.running !== mine) return;
      this.clear(e instanceof Problem ? e.message : `This page failed: ${String(e)}`);
      if (!(e instanceof Problem)) console.error(e);
    }
  }

  private arrived(value: Value): void {
    this.running = null;
    setAttr(this.body, "aria-busy", null);
    this.content.classList.remove("old");
    if (value.reason !== undefined) {
      this.value = null;
      this.message.textContent = `There is no value: ${value.reason}.`;
      this.message.hidden = false;
      this.content.hidden = true;
      this.drawRounds();
      return;
    }
    this.value = value;
    this.message.hidden = true;
    this.content.hidden = false;
    this.draw();
  }

  private pick(choice: Choice): void {
    this.choice = choice;
    this.at = null;
    if (this.subject) this.drawPicks(choicesOf(this.subject.shown, this.subject.line));
    void this.ask();
  }

  private stepExecution(by: number): void {
    const { value } = this;
    if (value) this.goToExecution((value.execution ?? 1) + by);
  }

  private goToExecution(n: number): void {
    const most = this.value?.executions ?? n;
    const next = Math.min(Math.max(Math.round(n), 1), most);
    if (!Number.isFinite(next) || next === this.value?.execution) return;
    this.execution = next;
    void this.ask();
  }

  /** Shows the part of the elements that has this one. */
  private goTo(at: number[]): void {
    this.at = at;
    const { value } = this;
    if (!value?.heat || !value.shape) return;
    // the part may be in the block that is here already
    const { start, shape } = value.slice ?? {};
    const isHere = start && shape && at.every((i, d) => i >= (start[d] ?? 0) && i < (start[d] ?? 0) + (shape[d] ?? 0));
    this.draw(); // with empty cells, if they are not here
    if (!isHere) void this.ask();
  }

  private goToCell(row: number, column: number): void {
    const { heat } = this.value ?? {};
    if (heat) this.goTo(heat.at.map((i, d) => (d === heat.row_dim ? row : d === heat.column_dim ? column : i)));
  }

  // ---- drawing

  private drawPicks(choices: readonly Choice[]): void {
    const isPicked = (c: Choice) => c.name === this.choice?.name && c.operand === this.choice.operand;
    const buttons = choices.map((c) => {
      const b = toggle(c.label, `The value of ${c.label}`, () => this.pick(c));
      b.classList.add("value-pick");
      b.setAttribute("aria-pressed", String(isPicked(c)));
      return b;
    });
    const had = [...this.picks.children].indexOf(document.activeElement as Element);
    fill(this.picks, ...buttons);
    if (had >= 0) buttons[had]?.focus();
  }

  private drawRounds(): void {
    const { execution, executions } = this.value ?? {};
    this.rounds.hidden = executions === undefined || executions < 2;
    if (execution === undefined || executions === undefined || executions < 2) return;
    const focus = document.activeElement;
    const at = [...this.rounds.querySelectorAll("button, input")].indexOf(focus as Element);
    const step = (by: number, label: string, text: string) => {
      const b = button(text, `${label} (${by < 0 ? "[" : "]"})`, () => this.stepExecution(by));
      b.setAttribute("aria-label", label);
      b.disabled = by < 0 ? execution <= 1 : execution >= executions;
      return b;
    };
    const field = el("input", { attrs: { type: "text", inputmode: "numeric", size: String(executions).length + 1, value: execution, "aria-label": "Execution" } });
    field.addEventListener("change", () => this.goToExecution(Number(field.value)));
    fill(this.rounds, "execution", step(-1, "Previous execution", "‹"), field, step(1, "Next execution", "›"), `of ${executions.toLocaleString("en")}`);
    const next = this.rounds.querySelectorAll<HTMLElement>("button, input")[at];
    if (at >= 0) (next?.matches(":disabled") ? field : next)?.focus();
  }

  private draw(): void {
    const { value } = this;
    if (!value) return;
    this.drawRounds();
    this.drawVerdict(value);
    this.drawFacts(value);
    this.drawBars(value);
    const heat = value.heat;
    this.heatBox.hidden = !heat;
    const shown = this.elements.show(value, this.at, this.wrong(value));
    if (!heat) return;
    const wrong = this.wrong(value);
    const isInPlane = wrong?.every((i, d) => d === heat.row_dim || d === heat.column_dim || i === heat.at[d]);
    const of = (index: readonly number[], d: number) => (d < 0 ? 0 : (index[d] ?? 0));
    this.heatHost.hidden = this.asTables;
    this.heatTable.hidden = !this.asTables;
    this.heatSaid.textContent = this.heatCaption();
    if (this.asTables) fill(this.heatTable, this.twin(value));
    else this.heat.show(heat, shown, wrong && isInPlane ? { row: of(wrong, heat.row_dim), column: of(wrong, heat.column_dim) } : null);
  }

  private wrong(value: Value): number[] | null {
    return value.reference?.differs?.index ?? null;
  }

  private heatCaption(): string {
    const heat = this.value?.heat;
    if (!heat) return "";
    const { row_dim, column_dim, row_step, column_step } = heat;
    const rows = row_dim < 0 ? "one row" : `dimension ${row_dim} down`;
    const cell = row_step * column_step > 1 ? `; a cell is the mean of ${row_step}×${column_step} elements` : "";
    return `${rows}, dimension ${column_dim} across${cell}`;
  }

  private drawVerdict(value: Value): void {
    const r = value.reference;
    this.verdict.hidden = !r;
    if (!r) return;
    const whose = r.of === "numpy" ? "NumPy's" : "the trace's";
    const error = r.max_abs_err === null ? "" : `, largest error ${numberText(r.max_abs_err)}`;
    const line = button(`${r.name} (line ${r.line})`, "Show it in the trace", () => this.showTrace(r.line), "at");
    const order = r.order === "transposed" ? ", transposed" : "";
    this.verdict.className = `value-verdict ${r.pass ? "pass" : "fail"}`;
    const d = r.differs;
    if (r.pass) fill(this.verdict, "✓ equals ", `${whose} `, line, `${order}${error}`);
    else
      fill(
        this.verdict,
        "✕ parts from ",
        `${whose} `,
        line,
        order,
        ...(d ? [" first at ", button(`[${d.index.join(", ")}]`, "Show this element", () => this.goTo(d.index), "at"), ": it is ", el("b", {}, numberText(d.got ?? "not finite")), ", it should be ", el("b", {}, numberText(d.want ?? "not finite"))] : []),
        error,
      );
  }

  private showTrace(line: number): void {
    const { store, subject } = this;
    const kernel = subject?.shown.row.kernel;
    const trace = kernel?.stages[0];
    const row = allRows(store.state).find((r) => r.stage === trace);
    if (!kernel || !trace || !row) return;
    const op = kernel.map.linksOf(trace).lineOp[line - 1] ?? -1;
    showStage(store, row);
    if (op >= 0) choose(store, { kind: "ops", map: kernel.map, stage: 0, ops: [op] });
  }

  private drawFacts(v: Value): void {
    const shape = v.shape ?? [];
    const n = shape.reduce((a, b) => a * b, 1);
    const isWhole = !/float|bf|f\d/.test(v.dtype ?? "");
    const fact = (name: string, text: string, cls = "") => [el("dt", {}, name), el("dd", { class: cls }, text)];
    const count = (name: string, k: number | undefined, isBad: boolean) =>
      k === undefined ? [] : fact(name, k === 0 ? "0" : `${k.toLocaleString("en")} (${k === n ? "all" : `${((100 * k) / n).toPrecision(2)} %`})`, isBad && k > 0 ? "bad" : k === 0 ? "none" : "");
    fill(
      this.facts,
      ...fact("shape", shape.length === 0 ? "scalar" : shape.join(" × ")),
      ...fact("type", v.dtype ?? "–"),
      ...fact("elements", n.toLocaleString("en")),
      ...count("zero", v.zero, false),
      ...fact("min", numberText(v.min, isWhole)),
      ...fact("max", numberText(v.max, isWhole)),
      ...fact("mean", numberText(v.mean)),
      ...fact("std", numberText(v.std)),
      ...count("NaN", v.nan, true),
      ...count("inf", v.inf, true),
      ...count("unwritten", v.unwritten, true),
    );
  }

  private drawBars(v: Value): void {
    const h = v.histogram;
    this.bars.hidden = !h || h.from === h.to;
    if (!h || h.from === h.to) return;
    const step = (h.to - h.from) / h.counts.length;
    const caption = `${plural(h.counts.length, "step")} of ${numberText(step)}`;
    if (!this.asTables) {
      fill(this.bars, histogramPicture(h) as unknown as HTMLElement, el("figcaption", { class: "note" }, caption));
      return;
    }
    const rows = h.counts.map((n, i) => el("tr", {}, el("th", { attrs: { scope: "row" } }, numberText(h.from + i * step)), el("td", { class: "num" }, n.toLocaleString("en"))));
    fill(this.bars, el("table", { class: "facts" }, el("caption", {}, `Histogram: ${caption}`), el("thead", {}, el("tr", {}, el("th", { attrs: { scope: "col" } }, "from"), el("th", { class: "num", attrs: { scope: "col" } }, "elements"))), el("tbody", {}, ...rows)));
  }

  /** The heat map as a table: cells are joined until it is small enough to read. */
  private twin(v: Value): HTMLElement {
    const heat = v.heat;
    if (!heat) return el("div", {});
    const [jr, jc] = [Math.ceil(heat.rows / TWIN_MAX), Math.ceil(heat.columns / TWIN_MAX)];
    const mean = (r0: number, c0: number) => {
      let sum = 0;
      let n = 0;
      for (let r = r0; r < Math.min(r0 + jr, heat.rows); r++)
        for (let c = c0; c < Math.min(c0 + jc, heat.columns); c++) {
          const x = heat.means[r * heat.columns + c];
          if (x === null || x === undefined) continue;
          sum += x;
          n++;
        }
      return n > 0 ? numberText(Number((sum / n).toPrecision(4))) : "–";
    };
    const starts = (n: number, by: number) => Array.from({ length: Math.ceil(n / by) }, (_, i) => i * by);
    const columns = starts(heat.columns, jc);
    const head = el("tr", {}, el("td", {}), ...columns.map((c) => el("th", { class: "num", attrs: { scope: "col" } }, String(c * heat.column_step))));
    const rows = starts(heat.rows, jr).map((r) => el("tr", {}, el("th", { attrs: { scope: "row" } }, String(r * heat.row_step)), ...columns.map((c) => el("td", { class: "num" }, mean(r, c)))));
    const size = `${jr * heat.row_step}×${jc * heat.column_step}`;
    return el("table", { class: "facts grid" }, el("caption", {}, size === "1×1" ? "The elements" : `Means of ${size} elements, by the first of them`), el("thead", {}, head), el("tbody", {}, ...rows));
  }

  // ---- saving

  private fileName(ending: string): string {
    const { subject, choice } = this;
    const what = (choice?.label ?? "").replace(/[^\w.-]+/g, "_");
    return `${subject?.shown.stage.name ?? "value"}-${subject?.line ?? 0}-${what}.${ending}`;
  }

  private async savePng(): Promise<void> {
    if (this.asTables) this.showTables(false);
    const blob = this.value?.heat ? await this.heat.png() : null;
    if (blob) saveFile(this.fileName("png"), blob);
  }

  private saveSvg(): void {
    if (this.asTables) this.showTables(false);
    const picture = this.bars.querySelector("svg");
    if (picture) saveFile(this.fileName("svg"), new Blob([svgText(picture)], { type: "image/svg+xml" }));
  }

  private saveCsv(): void {
    if (this.value) saveFile(this.fileName("csv"), new Blob([this.elements.csv()], { type: "text/csv" }));
  }
}
