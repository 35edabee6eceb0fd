// run: the view of the simulated run: the timeline, memories over time, the reasons for the time, tables of the same facts.
//
// A block of the timeline, a line of the source and an instruction of the last stage are one selection.
import type { PlacedBuffer, Profile, ProfileLane, ProfileMemory, SourceRange, Stage } from "../api/types";
import type { AppStore, Inspect } from "../state/app";
import { kernelOf, type KernelOutcome } from "../state/outcome";
import { bytesText, time } from "../state/units";
import { Runner, shownRun, type KernelRun } from "../state/run";
import { lightOfAnchor, type Anchor } from "../state/selection";
import { criticalPath, laneName, timelineRows, type Execution, type Timeline } from "../state/timeline";
import { choose } from "../state/view";
import { showHeat } from "../editor/heat";
import { BANDS } from "../editor/links";
import { linesOfStage } from "../editor/rows";
import type { EditorView } from "@codemirror/view";
import { byId, button, el, fill, plural, saveFile, toggle } from "./dom";
import css from "../style/run.late.css";
import { adoptStyle } from "../style/late";
import { Lanes } from "./lanes";
import { MemoryMap, type MapLook } from "./memorymap";
import { memoryPicture, rooflinePicture, svgText } from "./pictures";

adoptStyle(css);

const PROGRAMS = "engine-programs";

function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

function table(caption: string, heads: string[], rows: (string | Node)[][]): HTMLElement {
  return el(
    "table",
    { class: "facts" },
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ...heads.map((h, i) => el("th", { class: i > 0 ? "num" : "", attrs: { scope: "col" } }, h)))),
    el("tbody", {}, ...rows.map((r) => el("tr", {}, ...r.map((c, i) => (i === 0 ? el("th", { attrs: { scope: "row" } }, c) : el("td", { class: "num" }, c)))))),
  );
}

/** The value that a line of a stage defines; "" for none. */
function nameOnLine(stage: Stage, line: number | undefined): string {
  return /^\s*(%[\w.$-]+)/.exec(linesOfStage(stage)[(line ?? 0) - 1] ?? "")?.[1] ?? "";
}

/** The memories on chip, of two cores those of each; label says which core. */
function memoriesOf(p: Profile): { name: "SBUF" | "PSUM"; label: string; core: number; memory: ProfileMemory }[] {
  const cores = p.core1_memory ? [p.memory, p.core1_memory] : [p.memory];
  return cores.flatMap((m, core) => {
    const of = cores.length > 1 ? ` of core ${core}` : "";
    return [
      { name: "SBUF", label: `SBUF${of}`, core, memory: m.sbuf },
      { name: "PSUM", label: `PSUM${of}`, core, memory: m.psum },
    ] as const;
  });
}

/** Which of its instruction's executions it is, from 1: a lane executes them in order. */
function nthOf(t: Timeline, { lane, at }: Execution): number {
  const instr = t.lanes[lane]?.instr;
  let n = 0;
  for (let i = 0; instr && i <= at; i++) if (instr[i] === instr[at]) n++;
  return n;
}

export class RunPane {
  private readonly lanes: Lanes;
  private run: KernelRun | null = null;
  private kernel: KernelOutcome | null = null;
  private path: Execution[] = [];
  private asTable = false;
  private readonly critical: HTMLButtonElement;
  private readonly tableButton: HTMLButtonElement;
  private readonly tip = el("span", { class: "note" });
  /** Of each core, one for each memory. */
  private readonly maps: Record<"SBUF" | "PSUM", MemoryMap>[];

  constructor(
    private readonly store: AppStore,
    private readonly source: () => EditorView,
  ) {
    new Runner(store);
    this.lanes = new Lanes(byId("run-lanes"), {
      chosen: (x) => this.chosen(x),
      hovered: (x) => (this.tip.textContent = x ? this.describe(x) : ""),
      moved: () => this.run?.profile && this.drawMemory(this.run.profile),
    });
    const map = (name: "SBUF" | "PSUM") =>
      new MemoryMap(name, {
        chosen: (b, words) => this.chosenBuffer(b, words),
        pointed: (us, text) => this.pointed(us, text),
        zoom: (factor, centre) => this.lanes.zoom(factor, centre),
        pan: (share) => this.lanes.pan(share),
        reveal: (from, to) => this.lanes.reveal(from * 1e6, to * 1e6),
      });
    this.maps = [0, 1].map(() => ({ SBUF: map("SBUF"), PSUM: map("PSUM") }));
    this.critical = toggle("critical path", "Show only the critical path in full colour", () => {
      const only = this.critical.getAttribute("aria-pressed") !== "true";
      this.critical.setAttribute("aria-pressed", String(only));
      this.lanes.setCritical(only);
    });
    this.tableButton = toggle("tables", "The same facts as tables (t)", () => this.showTables(!this.asTable));
    fill(
      byId("run-tools"),
      this.critical,
      this.tableButton,
      button("Perfetto", "Save the timeline for ui.perfetto.dev", () => this.savePerfetto()),
      button("PNG", "Save the timeline as a picture", () => void this.savePng()),
    );
    store.watch(["mode", "run", "outcome", "kernelName"], () => this.draw());
    store.watch(["anchor", "mode"], () => {
      if (!this.isOpen) return;
      this.drawLanes();
      if (this.run?.profile) this.drawMemory(this.run.profile);
    });
    byId("run-pane").addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const used = e.key === "t" ? this.showTables(!this.asTable) : e.key === "[" ? this.walk(-1) : e.key === "]" ? this.walk(1) : false;
      if (used !== false) {
        e.preventDefault();
        e.stopPropagation();
      }
    });
  }

  get isOpen(): boolean {
    return this.store.state.mode === "run";
  }

  private showTables(on: boolean): void {
    this.asTable = on;
    this.tableButton.setAttribute("aria-pressed", String(on));
    byId("run-tables").hidden = !on;
    byId("run-picture").hidden = on;
  }

  /** Walks the critical path. */
  walk(by: 1 | -1): void {
    const at = this.path.findIndex((x) => x.lane === this.current?.lane && x.at === this.current.at);
    const next = this.path[at < 0 ? (by > 0 ? 0 : this.path.length - 1) : Math.min(Math.max(at + by, 0), this.path.length - 1)];
    if (!next) return;
    this.lanes.choose(next, false);
    this.chosen(next);
  }

  private current: Execution | null = null;

  private chosen(x: Execution | null): void {
    this.current = x;
    const t = this.run?.timeline;
    if (!x || !t) {
      fill(byId("run-chosen"), this.tip);
      return;
    }
    const instr = t.instructions[t.lanes[x.lane]?.instr[x.at] ?? -1];
    const anchor = instr ? this.anchorOfLine(instr.line) : null;
    const look = (inspect: Inspect) => this.store.set({ mode: "read", pane: "ir", stageKey: PROGRAMS, diffFrom: null, inspect, execution: nthOf(t, x) });
    const ways = anchor ? [" ", button("values", "What this execution computes or moves", () => look("values")), button("tiles", "What this execution touches of its buffers", () => look("tiles"))] : [];
    fill(byId("run-chosen"), el("b", {}, this.describe(x)), ...ways, " ", this.tip);
    if (anchor) choose(this.store, anchor);
  }

  /** The operation on a line of the last stage. */
  private anchorOfLine(line: number): Anchor | null {
    const { kernel } = this;
    const stage = kernel?.stages.findIndex((s) => s.name === PROGRAMS) ?? -1;
    const text = kernel?.stages[stage];
    const op = kernel && text ? (kernel.map.linksOf(text).lineOp[line - 1] ?? -1) : -1;
    return kernel && op >= 0 ? { kind: "ops", map: kernel.map, stage, ops: [op] } : null;
  }

  private describe({ lane, at }: Execution): string {
    const t = this.run?.timeline;
    const l = t?.lanes[lane];
    if (!t || !l) return "";
    const instr = t.instructions[l.instr[at] ?? -1];
    const tag = t.tags[l.tag[at] ?? -1];
    const [start, end] = [(l.starts[at] ?? 0) / 1e6, (l.ends[at] ?? 0) / 1e6];
    const parts = [`${l.name}: ${tag?.name || instr?.name || "barrier"}`, `${start.toFixed(3)}–${end.toFixed(3)} µs`];
    if (instr?.src_line) parts.push(`line ${instr.src_line}`);
    if (instr?.bytes) parts.push(`${bytesText(instr.bytes)}${instr.descriptor_bytes ? ` in runs of ${bytesText(instr.descriptor_bytes)}` : ""}`);
    if (tag?.reason && tag.reason !== "start") parts.push(`waited for ${tag.reason}`);
    if (tag?.critical) parts.push("on the critical path");
    if (instr?.low) parts.push("a cost of low confidence");
    return parts.join(" · ");
  }

  private draw(): void {
    if (!this.isOpen) {
      this.heat(null);
      return;
    }
    const { outcome, kernelName, run } = this.store.state;
    this.kernel = kernelOf(outcome, kernelName);
    this.run = shownRun(this.store);
    const p = this.run?.profile ?? null;
    const title = byId("run-verdict");
    const message = this.message();
    byId("run-message").hidden = message === "";
    byId("run-message").textContent = message;
    byId("run-pane").classList.toggle("stale", run !== null && run.of !== outcome?.key);
    if (!p) {
      fill(title, run?.status === "running" || !run ? "The kernel runs on the simulated machine…" : "There is no run to show");
      for (const id of ["run-memory", "run-side", "run-tables"]) fill(byId(id));
      this.lanes.show(null, { colour: () => "", isLit: () => false, title: () => "" });
      this.heat(null);
      return;
    }
    fill(title, el("b", {}, `${time(p.total_us)}, ${this.bound(p)}`), el("span", { class: "note" }, this.equals()));
    byId("run-note").textContent = `${plural(p.executions ?? 0, "instruction")} executed on ${p.target}${p.launch_us ? `, without the launch of ${time(p.launch_us)}` : ""}`;
    this.path = this.run?.timeline ? criticalPath(this.run.timeline) : [];
    this.chosen(null);
    this.drawLanes();
    this.drawMemory(p);
    this.drawSide(p);
    this.drawTables(p);
    this.heat(p);
  }

  private bound(p: Profile): string {
    return p.bound === "latency" ? "bound by latency" : p.bound.startsWith("bound") ? p.bound : `bound by ${p.bound}`;
  }

  private message(): string {
    const { run } = this.store.state;
    if (run?.problem) return `The run failed: ${run.problem.message}`;
    const s = this.run?.simulation;
    if (s?.fault) return `The simulated machine stopped: ${s.fault.message}${s.fault.line ? ` (line ${s.fault.line} of ${PROGRAMS})` : ""}.`;
    if (s && s.status !== "ok") return s.reason ?? "The run took too much memory or time.";
    if (run?.status === "done" && this.run && !this.run.timeline) return "The timeline is too large for the page: only the figures are shown.";
    return "";
  }

  private equals(): string {
    const outs = this.run?.simulation?.outputs ?? [];
    const judged = outs.filter((o) => o.pass !== undefined);
    if (judged.length === 0) return "nothing to compare the result with";
    const worst = judged.reduce((a, b) => ((b.max_abs_err ?? 0) > (a.max_abs_err ?? 0) ? b : a));
    const size = Math.max(Math.abs(worst.min ?? 0), Math.abs(worst.max ?? 0));
    const error = worst.max_abs_err ? `, largest error ${worst.max_abs_err.toExponential(1)} where values reach ${size.toPrecision(2)}` : "";
    const what = this.run?.simulation?.reference === "first stage" ? "the first stage" : "NumPy";
    return judged.every((o) => o.pass) ? `the simulated result equals ${what}'s${error}` : `✕ the simulated result differs from ${what}'s`;
  }

  private drawLanes(): void {
    const { kernel, run } = this;
    const t = run?.timeline ?? null;
    if (!kernel || !t) {
      this.lanes.show(null, { colour: () => "", isLit: () => false, title: () => "" });
      return;
    }
    const colours = this.colours(t, kernel);
    const stage = kernel.stages.findIndex((s) => s.name === PROGRAMS);
    const light = lightOfAnchor(this.store.state.anchor, kernel, stage);
    const links = kernel.stages[stage] ? kernel.map.linksOf(kernel.stages[stage]) : null;
    const lit = t.instructions.map((i) => light?.ops.has(links?.lineOp[i.line - 1] ?? -1) === true);
    this.lanes.show(t, { colour: (i) => colours[i] ?? "", isLit: (i) => lit[i] === true, title: (l) => l.name });
  }

  /** The colour of the source line of each instruction. */
  private colours(t: Timeline, kernel: KernelOutcome): string[] {
    const colourOf = this.lineColours(kernel);
    return t.instructions.map((i) => colourOf(i.line));
  }

  /** The colour of what a line of the last stage was made from. */
  private lineColours(kernel: KernelOutcome): (line: number) => string {
    const css = getComputedStyle(document.documentElement);
    const none = css.getPropertyValue("--dim").trim();
    const band = Array.from({ length: BANDS }, (_, i) => css.getPropertyValue(`--b${i}`).trim());
    const stage = kernel.stages.find((s) => s.name === PROGRAMS);
    const places = stage ? kernel.map.linksOf(stage).places : [];
    return (line) => {
      const n = kernel.map.bandOfPlaces(places[line - 1] ?? []);
      return n === null ? none : (band[n % BANDS] ?? none);
    };
  }

  private drawMemory(p: Profile): void {
    const range = this.lanes.range(p.total_us);
    const host = byId("run-memory");
    const parts = memoriesOf(p).map(({ name, label, core, memory: m }) => {
      const map = this.maps[core]?.[name];
      if (!map || !m.lives || m.has_places === false) return this.curve(label, m, range);
      map.show(m, range, this.mapLook(), label);
      return map.box;
    });
    // a map that is there already keeps the focus
    if (parts.some((part, i) => host.children[i] !== part)) fill(host, ...parts);
  }

  /** Without places, only how much is in use is known. */
  private curve(name: string, m: ProfileMemory, range: { from: number; to: number }): HTMLElement {
    const picture = memoryPicture(name, m, range, Math.max(byId("run-picture").clientWidth - 2, 320));
    const what = button("SVG", `Save the picture of ${name}`, () => saveFile(`${name.toLowerCase()}.svg`, new Blob([svgText(picture)], { type: "image/svg+xml" })));
    return el("figure", { class: "memory" }, picture, what);
  }

  private mapLook(): MapLook {
    const { kernel } = this;
    const stage = kernel?.stages.findIndex((s) => s.name === PROGRAMS) ?? -1;
    const text = kernel?.stages[stage];
    if (!kernel || !text) return { colour: () => getComputedStyle(document.documentElement).getPropertyValue("--accent"), isLit: () => false, nameOf: () => "" };
    const colourOf = this.lineColours(kernel);
    const light = lightOfAnchor(this.store.state.anchor, kernel, stage);
    const { lineOp } = kernel.map.linksOf(text);
    return {
      colour: (b) => colourOf(b.line ?? 0),
      isLit: (b) => light?.ops.has(lineOp[(b.line ?? 0) - 1] ?? -1) === true,
      nameOf: (b) => nameOnLine(text, b.line),
    };
  }

  private chosenBuffer(b: PlacedBuffer, words: string): void {
    fill(byId("run-chosen"), el("b", {}, words), " ", this.tip);
    const anchor = b.line === undefined ? null : this.anchorOfLine(b.line);
    if (anchor) choose(this.store, anchor);
    else if (b.place) this.goTo(b.place);
  }

  /** The pointer is over a memory: its time is marked in both. */
  private pointed(us: number | null, text: string): void {
    this.tip.textContent = text;
    if (!this.tip.isConnected) fill(byId("run-chosen"), this.tip);
    for (const map of this.maps.flatMap((m) => Object.values(m))) map.mark(us);
  }

  private place(range: SourceRange | undefined, label: string): Node {
    if (!range) return document.createTextNode(label);
    return button(label, `Show ${range.file}:${range.line}`, () => this.goTo(range), "at");
  }

  private goTo(range: SourceRange): void {
    const found = this.kernel?.map.find(range);
    const { kernel } = this;
    if (kernel && found !== undefined && found !== null) choose(this.store, { kind: "ranges", map: kernel.map, ranges: [found].flat() });
  }

  private drawSide(p: Profile): void {
    const use = (l: ProfileLane) => {
      const bar = el("span", { class: "use-bar", attrs: { "data-engine": l.engine } });
      bar.style.width = `${Math.min(l.share, 1) * 100}%`;
      return el("div", { class: "use" }, el("span", {}, laneName(l)), el("span", { class: "use-track" }, bar), el("span", { class: "num" }, percent(l.share)));
    };
    const uses = timelineRows(p.lanes).flatMap((row) => {
      const lane = "lane" in row ? p.lanes[row.lane] : undefined;
      return lane ? [use(lane)] : "title" in row ? [el("h4", {}, row.title)] : [];
    });
    const reasons = p.advice.slice(0, 8).map((a) =>
      el(
        "li",
        {},
        el("div", { class: "reason-head" }, this.place(a.place, a.place ? `line ${a.place.line}` : "the program"), el("b", { class: "num" }, `${time(a.cost_us)} of ${time(p.total_us)}`)),
        el("p", {}, `${a.text}.`),
        a.confidence === "high" ? null : el("p", { class: "note" }, `confidence: ${a.confidence}`),
      ),
    );
    const roof = rooflinePicture(p);
    const error = this.store.state.targets.find((t) => t.name === p.target)?.simulated_time_error;
    const honest =
      error && error.median !== null
        ? `Simulated times of ${p.target} differ from ${plural(error.kernels, "measured kernel")} by ${percent(error.median)} at the median, ${percent(error.worst ?? 0)} at most.`
        : `Nothing of ${p.target} has been measured: these times are a model.`;
    fill(
      byId("run-side"),
      el("h3", {}, "Use"),
      ...uses,
      el("h3", {}, "Where the time goes"),
      reasons.length > 0 ? el("ol", { class: "reasons" }, ...reasons) : el("p", { class: "note" }, "Nothing stands out."),
      roof ? el("h3", {}, "Roofline") : null,
      roof ? el("figure", {}, roof as unknown as HTMLElement, el("figcaption", { class: "note" }, roof.querySelector("title")?.textContent ?? "")) : null,
      el("p", { class: "note" }, honest),
    );
  }

  private drawTables(p: Profile): void {
    const waits = (w: Record<string, number>) =>
      Object.entries(w)
        .sort((a, b) => b[1] - a[1])
        .slice(0, 3)
        .map(([k, v]) => `${k} ${time(v)}`)
        .join(", ");
    const lines = p.lines.map((l) => {
      const range = this.kernel?.map.ranges.find((r) => r.line === l.line && (!l.file || r.file === l.file));
      return [this.place(range, `line ${l.line}`), time(l.critical_us), percent(l.share), String(l.executions), l.bytes ? bytesText(l.bytes) : "–", waits(l.busy_us)];
    });
    const alive = (m: ProfileMemory) =>
      (m.alive as { bytes: number; from_us: number; to_us: number; at?: number[]; place?: SourceRange }[]).map((b) => [
        this.place(b.place, b.place ? `line ${b.place.line}` : "–"),
        bytesText(b.bytes),
        b.at ? b.at.join(", ") : "–",
        time(b.from_us),
        time(b.to_us),
      ]);
    const look = this.mapLook();
    const placed = (m: ProfileMemory) =>
      (m.buffers ?? []).map((b, n) => {
        const lives = (m.lives ?? []).filter((l) => l[0] === n);
        const first = b.first_partition ?? 0;
        const starts = [...new Set(lives.map((l) => l[3]))].filter((byte) => byte >= 0);
        return [
          this.place(b.place, `${look.nameOf(b)}${b.place ? ` line ${b.place.line}` : ""}`),
          bytesText(b.bytes),
          `${first}–${first + b.partitions - 1}`,
          starts.length === 0 ? "–" : starts.map((byte) => byte.toLocaleString("en")).join(" · "),
          String(lives.length),
          time(Math.min(...lives.map((l) => l[1]))),
          time(Math.max(...lives.map((l) => l[2]))),
        ];
      });
    const placedHeads = ["buffer", "bytes of a partition", "partitions", "first byte", "times alive", "from", "to"];
    const many = (m: ProfileMemory) => ((m.n_lives ?? 0) > (m.lives ?? []).length ? ` (${(m.lives ?? []).length} of ${(m.n_lives ?? 0).toLocaleString("en")} lives, the largest)` : "");
    fill(
      byId("run-tables"),
      table("Lines of the source", ["line", "critical path", "share", "instructions", "moved", "time by engine"], lines),
      table(
        "Engines and queues",
        ["engine or queue", "busy", "share", "instructions", "moved", "waits"],
        p.lanes.map((l) => [l.name, time(l.busy_us), percent(l.share), String(l.executions), l.bytes ? bytesText(l.bytes) : "–", waits(l.waits_us)]),
      ),
      table("The critical path", ["spent on", "time"], Object.entries(p.path.waits_us).map(([k, v]) => [k, time(v)])),
      ...memoriesOf(p).map(({ name, label, memory }) =>
        table(`${label} at its peak`, ["made by", "bytes of a partition", `${name === "SBUF" ? "partition" : "bank"}, byte`, "from", "to"], alive(memory)),
      ),
      ...memoriesOf(p).map(({ label, memory }) => table(`Buffers in ${label}${many(memory)}`, placedHeads, placed(memory))),
    );
  }

  /** Beside the source: each line's share of the critical path. */
  private heat(p: Profile | null): void {
    const main = this.kernel?.map.mainFile ?? null;
    const lines = (p?.lines ?? []).filter((l) => l.critical_us > 0 && (!l.file || l.file === main)).map((l) => ({ line: l.line, us: l.critical_us, share: l.share }));
    showHeat(this.source(), lines);
  }

  private savePerfetto(): void {
    if (this.run?.perfetto) saveFile(`${this.run.name}.perfetto.json`, new Blob([this.run.perfetto], { type: "application/json" }));
  }

  private async savePng(): Promise<void> {
    const blob = await this.lanes.png();
    if (blob) saveFile("timeline.png", blob);
  }
}
