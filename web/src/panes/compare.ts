// compare: result A, which the user has pinned, against result B, which the page shows.
//
// B follows the editor, the target and the options.  The tables say which stages differ, and in what; the chosen stage, or
// the sources, stand below them side by side.
import { getDiff } from "../api/client";
import { Problem } from "../api/problem";
import type { CompileRequest, Stage, StageDiff } from "../api/types";
import { DiffColumns, linesOf, sideOfStage } from "../editor/diffcolumns";
import type { DiffSide } from "../editor/diffview";
import type { AppState, AppStore } from "../state/app";
import { versionName } from "../state/compilers";
import { requestOf, type Compiler } from "../state/compiler";
import { kernelOf, type KernelOutcome, type Outcome } from "../state/outcome";
import { cause, difference, figures, localDiff, pairStages, verdict, type Figure, type StagePair } from "../state/pairs";
import { time } from "../state/units";
import { compilePin, keepA, pinOtherPipeline, sameJob, swapPin, type Job, type Pin } from "../state/pin";
import { settings } from "../state/settings";
import { choose } from "../state/view";
import { byId, button, el, fill, plural, toggle } from "./dom";
import { icon } from "./icons";
import { ValueParting } from "./valueparting";

const SOURCE = "source";
/** Pixels; in a narrower pane two columns show too little of each line. */
const SPLIT_MIN = 760;

function figure(value: number, unit: Figure["unit"]): string {
  if (unit === "µs") return time(value);
  if (unit === "KiB") return `${value.toLocaleString("en", { maximumFractionDigits: 1 })} KiB`;
  if (unit === "bytes") return value >= 1 << 20 ? `${(value / (1 << 20)).toFixed(1)} MiB` : `${(value / 1024).toFixed(1)} KiB`;
  return value.toLocaleString("en");
}

function change(f: Figure): string {
  if (f.a === f.b) return "=";
  if (f.a === 0) return "new";
  const percent = ((f.b - f.a) / f.a) * 100;
  return `${percent > 0 ? "+" : "−"}${Math.abs(percent).toFixed(Math.abs(percent) < 9.5 ? 1 : 0)} %`;
}

/** What sets a job apart from the other. */
function describe(job: Job, other: Job, name: string, versions: AppState["versions"]): string {
  const parts = [name];
  const version = versionName(versions, job.version);
  if (job.version !== other.version && name !== version) parts.push(`by ${version}`);
  if (job.target !== other.target) parts.push(`for ${job.target}`);
  if (job.byHand.join() !== other.byHand.join()) parts.push(job.byHand.length > 0 ? `with ${job.byHand.join("; ")}` : "with the pipeline unchanged");
  if (job.pipeline !== other.pipeline) parts.push(job.pipeline === "reference" ? "with the reference's stages" : "with all stages");
  if (JSON.stringify(job.inputs) !== JSON.stringify(other.inputs)) parts.push(job.inputs ? "with its shapes" : "with the source's shapes");
  return parts.filter((p) => p !== "").join(" ");
}

interface Sides {
  a: KernelOutcome;
  b: KernelOutcome;
  outcomeA: Outcome;
  outcomeB: Outcome;
}

/** The head of a column; one without a name heads nothing. */
function headCell(name: string): HTMLElement {
  return name === "" ? el("td") : el("th", { attrs: { scope: "col" } }, name);
}

export class ComparePane {
  private readonly columns: DiffColumns;
  private readonly where = el("span", { class: "note compare-where" });
  private readonly message = el("p", { class: "diff-message compare-message", attrs: { hidden: true } });
  private readonly title = el("span", { class: "compare-stage" });
  private readonly known = new WeakMap<Stage, WeakMap<Stage, StageDiff>>();
  private readonly fullButton = toggle("full text", "NISA as the compiler prints it (r)", () => settings.set({ fullText: !settings.state.fullText }));
  private pairs: StagePair[] = [];
  private sides: Sides | null = null;
  private shown: { a: unknown; b: unknown } | null = null;
  /** The diff that is shown next is to be shown from its first change on, or at a line of B. */
  private wantsFirst = false;
  private wantsLine = 0;
  private readonly values = new ValueParting((stage, line) => this.goToLine(stage, line));

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
    private readonly say: (text: string) => void,
  ) {
    const host = byId("compare-columns");
    this.columns = new DiffColumns(host, {
      picked: (which, op) => this.picked(which, op),
      moved: () => this.drawWhere(),
    });
    host.append(this.message);
    byId("compare-bar").after(this.values.bar);
    const step = (name: "up" | "down", title: string, by: 1 | -1) =>
      el("button", { class: "quiet tool", title, attrs: { type: "button", "aria-label": title }, on: { click: () => this.columns.step(by) } }, icon(name));
    fill(
      byId("compare-bar"),
      this.title,
      el("span", { class: "spring" }),
      button("first difference", "Go to the first line at which A and B part, of the first stage that differs", () => this.goToFirst()),
      button("values", "Go to the first operation whose values differ between A and B, on the inputs of a check", () => this.findValues()),
      this.where,
      step("up", "Previous change (Shift+F7)", -1),
      step("down", "Next change (F7)", 1),
      this.fullButton,
      button("all lines", "Show the equal lines, too", () => this.columns.expandAll()),
    );
    fill(
      byId("compare-tools"),
      button("other stages", "A becomes what the other pipeline makes of this kernel: all stages, or those of the reference", () => pinOtherPipeline(store)),
      button("swap", "B becomes A, and A what the page shows (x)", () => this.swap()),
      button("keep A", "Back to A, and unpin it", () => keepA(store, compiler)),
      button("keep B", "Go on with B, and unpin A", () => this.unpin()),
    );
    const stages = byId("compare-stages");
    stages.addEventListener("click", (e) => {
      const row = e.target instanceof Element ? e.target.closest<HTMLElement>("[data-key]") : null;
      if (row?.dataset["key"]) store.set({ comparedKey: row.dataset["key"] });
    });
    settings.watch(["fullText"], () => {
      this.columns.setFull(settings.state.fullText);
      this.fullButton.setAttribute("aria-pressed", String(settings.state.fullText));
    });
    store.watch(["mode", "pinned"], () => {
      const { mode, pinned } = store.state;
      if (mode === "compare" && !pinned) store.set({ mode: "read" });
    });
    store.watch(["mode", "pinned", "outcome", "kernelName", "compiling"], () => this.draw());
    store.watch(["comparedKey", "mode"], () => this.drawPick());
  }

  get isOpen(): boolean {
    return this.store.state.mode === "compare";
  }

  step(by: 1 | -1): void {
    this.columns.step(by);
  }

  swap(): void {
    if (this.store.state.pinned) swapPin(this.store, this.compiler);
  }

  /** Goes to the place where the results part: the first change of the first stage that both have and that differs. */
  private goToFirst(): void {
    const pair = this.pairs.find((p) => p.state === "differs");
    if (!pair) {
      this.say("The stages that A and B both have are the same.");
      return;
    }
    const isShown = this.current().key === pair.key && this.shown?.a === pair.a;
    this.wantsFirst = !isShown;
    if (isShown) this.columns.first();
    else this.store.set({ comparedKey: pair.key });
  }

  /** What A and B are; a simulated run or a check of them changes no value. */
  private requests(pinned: Pin): [CompileRequest, CompileRequest] {
    const without = { simulate: false, check: false };
    return [requestOf({ ...pinned.job, ...without }), requestOf({ ...this.store.state, ...without })];
  }

  private findValues(): void {
    const { pinned } = this.store.state;
    if (pinned) void this.values.find(...this.requests(pinned));
  }

  /** Goes to a line of B, in a stage that both have. */
  private goToLine(key: string, line: number): void {
    const isShown = this.current().key === key;
    this.wantsLine = isShown ? 0 : line;
    if (isShown) this.reveal(line);
    else this.store.set({ comparedKey: key });
  }

  private reveal(line: number): void {
    this.columns.expandAll(); // what computes other values may read the same
    this.columns.goToLine(line);
  }

  /** Goes to the next or previous stage that differs. */
  stepStage(by: 1 | -1): void {
    const keys = [SOURCE, ...this.pairs.filter((p) => p.state !== "same").map((p) => p.key)];
    const at = keys.indexOf(this.current()?.key ?? SOURCE);
    const to = keys[Math.min(Math.max(at + by, 0), keys.length - 1)];
    if (to !== undefined) this.store.set({ comparedKey: to });
  }

  private unpin(): void {
    this.store.set({ pinned: null, mode: "read" });
  }

  private findSides(pin: Pin): Sides | null {
    const { outcome, previous, kernelName } = this.store.state;
    // while B is compiled anew, the comparison with its last result stays
    const b = outcome && outcome.status !== "running" && outcome.status !== "cut" ? outcome : previous;
    const kernelB = kernelOf(b, kernelName);
    const kernelA = pin.outcome ? (pin.outcome.kernels.find((k) => k.name === kernelB?.name) ?? pin.outcome.kernels[0]) : undefined;
    return pin.outcome && b && kernelB && kernelA ? { a: kernelA, b: kernelB, outcomeA: pin.outcome, outcomeB: b } : null;
  }

  private draw(): void {
    const { pinned } = this.store.state;
    if (!this.isOpen || !pinned) {
      this.sides = null;
      this.shown = null;
      return;
    }
    const was = this.sides;
    const sides = this.findSides(pinned);
    this.values.keepFor(...this.requests(pinned));
    this.sides = sides;
    this.drawNames(pinned);
    if (!sides) {
      this.pairs = [];
      const text = pinned.problem ? `A could not be compiled: ${pinned.problem.message}` : "A is compiled…";
      fill(byId("compare-verdict"), text);
      fill(byId("compare-stages"));
      fill(byId("compare-figures"));
      return;
    }
    if (was && was.a === sides.a && was.b === sides.b) return;
    this.pairs = pairStages(sides.a, sides.b);
    this.drawVerdict(sides, pinned);
    this.drawStages();
    this.drawFigures(sides);
    this.drawPick();
  }

  private drawNames(pinned: Pin): void {
    const s = this.store.state;
    const same = sameJob(pinned.job, s);
    const name = (job: Job, text: string) => describe(job, text === "A" ? s : pinned.job, text === "A" ? pinned.name || "pinned" : "as it is now", s.versions);
    fill(
      byId("compare-names"),
      el("b", { class: "side side-a" }, "A"),
      el("span", { class: "note" }, name(pinned.job, "A")),
      el("b", { class: "side side-b" }, "B"),
      el("span", { class: "note" }, same ? "the same kernel: edit it, choose another target or other stages, or open another link" : name(s, "B")),
    );
  }

  private drawVerdict(sides: Sides, pinned: Pin): void {
    const { a, b } = sides;
    const targets = { a: pinned.job.target, b: this.store.state.target };
    const why = this.pairs.some((p) => p.state !== "same") ? cause(a, b) : "";
    fill(byId("compare-verdict"), el("b", {}, verdict(a, b, this.pairs, targets)), why ? el("span", { class: "note" }, why) : null);
  }

  private drawStages(): void {
    const rows: HTMLElement[] = [this.sourceRow()];
    const n = this.pairs.length;
    for (let i = 0; i < n; ) {
      let end = i;
      while (end < n && this.pairs[end]?.state === "same") end++;
      if (end > i) {
        const [first, last] = [this.pairs[i] as StagePair, this.pairs[end - 1] as StagePair];
        const names = end - i === 1 ? first.key : `${first.key} … ${last.key}`;
        rows.push(this.row(first.key, "○", names, end - i === 1 ? "identical" : `${end - i} stages, identical`, first, "same"));
        i = end;
        continue;
      }
      const pair = this.pairs[i++] as StagePair;
      rows.push(this.row(pair.key, "●", pair.key, difference(pair), pair, ""));
    }
    const differ = this.pairs.filter((p) => p.state !== "same").length;
    byId("compare-note").textContent = `${plural(n - differ, "stage")} identical, ${differ} ${differ === 1 ? "differs" : "differ"}`;
    fill(
      byId("compare-stages"),
      el("thead", {}, el("tr", {}, ...["", "stage", "what differs", "ops A", "ops B"].map(headCell))),
      el("tbody", {}, ...rows),
    );
  }

  private sourceRow(): HTMLElement {
    const { pinned, source } = this.store.state;
    const same = pinned?.job.source === source;
    return this.row(SOURCE, same ? "○" : "●", "source", same ? "identical" : "", null, same ? "same" : "");
  }

  private row(key: string, glyph: string, name: string, what: string, pair: StagePair | null, cls: string): HTMLElement {
    const ops = (s: Stage | null | undefined) => (s ? Object.values(s.op_counts).reduce((n, c) => n + c, 0).toLocaleString("en") : "–");
    return el(
      "tr",
      { class: cls, attrs: { "data-key": key } },
      el("td", { class: "glyph", attrs: { "aria-hidden": "true" } }, glyph),
      el("th", { attrs: { scope: "row" } }, el("button", { class: "link", attrs: { type: "button" }, title: `Compare ${name}` }, name)),
      el("td", { class: "what", title: what }, what),
      el("td", { class: "num" }, pair ? ops(pair.a) : ""),
      el("td", { class: "num" }, pair ? ops(pair.b) : ""),
    );
  }

  private drawFigures(sides: Sides): void {
    const list = figures(sides.a, sides.b);
    const rows = list.map((f) => {
      const most = Math.max(f.a, f.b, 1e-9);
      const bar = (side: "a" | "b", v: number) => {
        const line = el("span", { class: `bar bar-${side}` });
        line.style.width = `${(v / most) * 100}%`;
        return line;
      };
      return el(
        "tr",
        { class: f.a === f.b ? "same" : "" },
        el("th", { attrs: { scope: "row" } }, f.name),
        el("td", { class: "num" }, figure(f.a, f.unit)),
        el("td", { class: "bars", attrs: { "aria-hidden": "true" } }, bar("a", f.a), bar("b", f.b)),
        el("td", { class: "num" }, figure(f.b, f.unit)),
        el("td", { class: "num change" }, change(f)),
      );
    });
    const isTimed = sides.a.profile !== null && sides.b.profile !== null;
    const timeIt = el(
      "caption",
      {},
      isTimed ? "Of the simulated runs, and of the instructions" : "Of the instructions ",
      isTimed ? null : button("simulate both", "Run A and B on the simulated machine", () => this.simulate(), "plain"),
    );
    fill(
      byId("compare-figures"),
      timeIt,
      el("thead", {}, el("tr", {}, ...["", "A", "", "B", ""].map(headCell))),
      el("tbody", {}, ...rows),
    );
  }

  private simulate(): void {
    const { pinned } = this.store.state;
    if (!pinned) return;
    this.store.set({ simulate: true, pinned: { ...pinned, job: { ...pinned.job, simulate: true } } });
    void this.compiler.now();
    void compilePin(this.store);
    this.say("A and B are simulated");
  }

  /** The row whose texts are compared: the chosen one, otherwise the last that differs. */
  private current(): { key: string; pair: StagePair | null } {
    const { comparedKey } = this.store.state;
    if (comparedKey === SOURCE) return { key: SOURCE, pair: null };
    const chosen = this.pairs.find((p) => p.key === comparedKey);
    const pair = chosen ?? [...this.pairs].reverse().find((p) => p.state !== "same") ?? this.pairs.at(-1) ?? null;
    return pair ? { key: pair.key, pair } : { key: SOURCE, pair: null };
  }

  private drawPick(): void {
    if (!this.isOpen || !this.sides) return;
    const { key, pair } = this.current();
    for (const row of byId("compare-stages").querySelectorAll<HTMLElement>("[data-key]")) {
      const isShown = row.dataset["key"] === key;
      row.classList.toggle("shown", isShown);
      row.querySelector("button")?.setAttribute("aria-pressed", String(isShown));
    }
    if (pair) this.showStage(pair);
    else this.showSource();
  }

  private showSource(): void {
    const { pinned, source, language } = this.store.state;
    if (!pinned) return;
    if (this.shown?.a === pinned.job.source && this.shown.b === source) return;
    this.shown = { a: pinned.job.source, b: source };
    const [a, b] = [linesOf(pinned.job.source), linesOf(source)];
    const side = (lines: string[]): DiffSide => ({ language: language === "hlo" || language === "mlir" ? language : "python", origin: null, lines, short: null });
    this.show("source", side(a), side(b), localDiff(a, b));
  }

  private showStage(pair: StagePair): void {
    const { a, b } = pair;
    const { sides } = this;
    if (!sides) return;
    if (!a || !b) {
      this.shown = null;
      this.tell(pair.key, difference(pair));
      return;
    }
    if (this.shown?.a === a && this.shown.b === b) return;
    this.shown = { a, b };
    const known = this.known.get(a)?.get(b);
    if (known) this.take(pair, sides, known);
    else void this.ask(pair, sides, a, b);
  }

  /** The server's comparison knows renamed values; without it, lines are compared here. */
  private async ask(pair: StagePair, sides: Sides, a: Stage, b: Stage): Promise<void> {
    let diff: StageDiff | null = null;
    const { outcomeA, outcomeB } = sides;
    if (outcomeA.snippet === null && outcomeB.snippet === null && outcomeA.kernels.indexOf(sides.a) === outcomeB.kernels.indexOf(sides.b)) {
      try {
        diff = await getDiff({ key: outcomeA.key }, Math.max(outcomeA.kernels.indexOf(sides.a), 0), a.index, b.index, outcomeB.key);
      } catch (e) {
        if (!(e instanceof Problem)) throw e;
      }
    }
    diff ??= localDiff(linesOf(a.text), linesOf(b.text));
    const map = this.known.get(a) ?? new WeakMap<Stage, StageDiff>();
    map.set(b, diff);
    this.known.set(a, map);
    if (this.shown?.a === a && this.shown.b === b) this.take(pair, sides, diff);
  }

  private take(pair: StagePair, sides: Sides, diff: StageDiff): void {
    if (pair.a && pair.b) this.show(pair.key, sideOfStage(sides.a, pair.a), sideOfStage(sides.b, pair.b), diff);
  }

  private show(name: string, from: DiffSide, to: DiffSide, diff: StageDiff): void {
    const host = byId("compare-columns");
    host.classList.remove("told");
    this.message.hidden = true;
    this.fullButton.hidden = !from.short && !to.short;
    const labels = { both: `Changes of ${name} from A to B`, from: `A: ${name}`, to: `B: ${name}` };
    this.columns.show({ from, to, labels }, diff, host.clientWidth < SPLIT_MIN);
    if (this.wantsFirst) this.columns.first();
    if (this.wantsLine > 0) this.reveal(this.wantsLine);
    this.wantsFirst = false;
    this.wantsLine = 0;
    const facts = diff.hunks.length === 0 ? "the same" : `~${diff.changed} +${diff.added} −${diff.removed} lines`;
    fill(this.title, el("b", {}, name), el("span", { class: "note" }, facts));
    this.drawWhere();
  }

  private tell(name: string, text: string): void {
    byId("compare-columns").classList.add("told");
    fill(this.title, el("b", {}, name));
    fill(this.message, text);
    this.message.hidden = false;
    this.columns.forget();
    this.drawWhere();
  }

  private drawWhere(): void {
    const { hunk, hunks } = this.columns;
    fill(this.where, hunks === 0 ? "" : `${hunk + 1} / ${hunks}`);
  }

  /** An operation of B selects what it was made from; A's source is not on the page. */
  private picked(which: "from" | "to", op: number): void {
    const { sides } = this;
    const pair = this.current().pair;
    if (which !== "to" || !sides || !pair?.b) return;
    const stage = sides.b.stages.indexOf(pair.b);
    if (stage >= 0) choose(this.store, { kind: "ops", map: sides.b.map, stage, ops: [op] });
  }
}
