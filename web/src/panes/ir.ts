// ir: the text of the shown stage.
import { StateEffect } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { markedLines, onNumber, showMarked } from "../editor/marked";
import { linesOfStage } from "../editor/rows";
import { StageViewer } from "../editor/viewer";
import type { AppStore } from "../state/app";
import { fileName, opCount, type StageRow } from "../state/outcome";
import { settings } from "../state/settings";
import { bestOf, describe } from "../state/ranking";
import { images, lightOfOps, type Anchor } from "../state/selection";
import { remarksByLine } from "../state/remarks";
import { choose, isOfAnotherKernel, selectedLight, shownStage, textsOfKernel, ROW_KEYS, STAGE_KEYS, type Shown } from "../state/view";
import { operationCard } from "./card";
import { DetailTools } from "./detail";
import { byId, button, el, fill, ms, plural, saveFile, setAttr } from "./dom";
import { icon, type IconName } from "./icons";
import { mark } from "./marked";
import { messageOf } from "./message";
import { placeList } from "./places";
import { remarkTip } from "./remarks";
import { Ruler } from "./ruler";

function tool(name: IconName, label: string, title: string, run: () => void): HTMLButtonElement {
  return el("button", { class: "quiet tool", title, attrs: { type: "button", "aria-label": title }, on: { click: run } }, icon(name), el("span", {}, label));
}

/** How often the selected line is scrolled into sight again after one step: a pane may be too low to show it. */
const REVEALS = 8;

export class IrPane {
  readonly viewer: StageViewer;
  private readonly ruler: Ruler;
  readonly detail: DetailTools;
  private shown: Shown | null = null;
  private readonly wrapButton: HTMLButtonElement;
  /** The line that stays in sight until the user scrolls. */
  private kept: number | null = null;
  private tries = 0;
  /** The failed row whose operation was selected already. */
  private offending: StageRow | null = null;

  constructor(
    private readonly store: AppStore,
    private readonly say: (text: string) => void,
  ) {
    const host = byId("ir-viewer");
    this.viewer = new StageViewer(host, {
      point: (line) => this.point(line),
      caret: (line) => this.point(line),
      clicked: (line, add) => this.clicked(line, add),
      explain: (line) => this.explain(line),
      card: (line) => this.card(line),
    });
    this.ruler = new Ruler(host, this.viewer.view);
    this.wrapButton = tool("wrap", "wrap", "Wrap long lines (w)", () => store.set({ wrap: !store.state.wrap }));
    this.wrapButton.classList.add("toggle");
    fill(
      byId("ir-tools"),
      tool("find", "find", "Find in this stage (Ctrl+F)", () => this.viewer.find()),
      this.wrapButton,
      tool("copy", "copy", "Copy this stage's text", () => void this.copy()),
      tool("download", "save", "Download this stage's text", () => this.save()),
    );
    this.detail = new DetailTools(this.viewer);
    store.watch(["wrap"], () => {
      this.viewer.setWrap(store.state.wrap);
      this.wrapButton.setAttribute("aria-pressed", String(store.state.wrap));
    });
    store.watch([...STAGE_KEYS, "compiling", "problem", "source", "files"], () => this.drawStage());
    store.watch([...STAGE_KEYS, "compiling"], () => this.drawOffending());
    store.watch([...STAGE_KEYS, "hover", "anchor", "partner"], () => this.drawLights());
    store.watch(["stageKey", "reveal", "diffFrom"], () => this.revealSelection());
    store.watch(ROW_KEYS, () => {
      if (this.kept !== null) this.revealSelection();
    });
    const { view } = this.viewer;
    view.dispatch({ effects: StateEffect.appendConfig.of(markedLines()) });
    onNumber(view, (row, extend) => mark(store, say, "ir", this.viewer.lineOf(row), extend));
    store.watch([...STAGE_KEYS, "marked"], () => this.drawMarked());
    settings.watch(["fullText", "attributes"], () => this.drawMarked());
    new ResizeObserver(() => {
      this.tries = REVEALS;
      this.keepInSight();
    }).observe(host);
    // heights are estimates until lines are drawn, so that the first scroll may miss
    view.dispatch({ effects: StateEffect.appendConfig.of(EditorView.updateListener.of((u) => u.geometryChanged && this.keepInSight())) });
    for (const type of ["wheel", "pointerdown", "touchstart", "keydown"] as const)
      view.dom.addEventListener(type, () => (this.kept = null), { passive: true, capture: true });
  }

  private async copy(): Promise<void> {
    const stage = this.shown?.stage;
    if (stage) await this.toClipboard(stage.text, `Copied ${stage.name}, ${plural(stage.lines.length, "line")}`);
  }

  private async toClipboard(text: string, done: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.say(done);
    } catch {
      this.say("The browser refused to copy");
    }
  }

  private save(): void {
    if (this.shown) saveFile(fileName(this.shown.row), new Blob([this.shown.stage.text], { type: "text/plain" }));
  }

  private drawStage(): void {
    const now = shownStage(this.store.state);
    const was = this.shown;
    this.shown = now;
    this.drawHead(now);
    if (!now) {
      if (was) this.viewer.clear();
      return;
    }
    if (was?.stage === now.stage) return;
    const { map } = now.row.kernel;
    this.detail.showFor(now.stage.dialect);
    const label = `IR after stage ${now.stage.index} ${now.stage.name}`;
    const links = map.linksOf(now.stage);
    // before a failed pass, the text and its remarks are those of another pass
    const notes = now.row.stage ? remarksByLine(now.stage, links) : new Map<number, string[]>();
    this.viewer.show(now.stage, { map, links, notes }, label, was ? this.follow(was, now) : null);
  }

  /** The line that must not move: that of the selected operation, otherwise of a visible one. */
  private follow(was: Shown, now: Shown): { from: number; to: number } | null {
    const { first, last } = this.viewer.visibleLines();
    const oldLinks = was.row.kernel.map.linksOf(was.stage);
    if (was.row.kernel.map !== now.row.kernel.map) {
      // another compilation: the same line number is the best guess
      return was.stage.name === now.stage.name && first > 1 ? { from: first, to: first } : null;
    }
    const from = was.row.kernel.stages.indexOf(was.stage);
    const to = now.row.kernel.stages.indexOf(now.stage);
    const bestIn = (stage: number, anchor: Anchor) => {
      const at = now.row.kernel.stages[stage];
      return at && bestOf(at, now.row.kernel.map.linksOf(at), images(anchor, now.row.kernel)[stage]?.ops ?? [])?.line;
    };
    const { anchor } = this.store.state;
    const best = anchor ? bestIn(to, anchor) : undefined;
    if (anchor && best !== undefined) {
      const old = bestIn(from, anchor);
      const isSeen = old !== undefined && old > first && old < last;
      return { from: isSeen ? old : first + Math.round((last - first) / 3), to: best };
    }
    if (first <= 1) return null; // the top stays the top
    for (let line = first; line <= last; line++) {
      const op = oldLinks.lineOp[line - 1] ?? -1;
      if (op < 0) continue;
      const hit = bestIn(to, { kind: "ops", map: was.row.kernel.map, stage: from, ops: [op] });
      if (hit !== undefined) return { from: line, to: hit };
    }
    return null;
  }

  private drawHead(now: Shown | null): void {
    const title = byId("ir-title");
    if (!now) {
      fill(title, "IR");
      fill(byId("ir-note"));
      byId("ir-summary").textContent = "";
      byId("ir-message").hidden = true;
      byId("ir-pane").classList.remove("stale");
      return;
    }
    const { row, stage } = now;
    fill(title, el("span", { class: "no" }, String(row.index)), row.name);
    const facts = [row.phase === row.dialect ? row.phase : `${row.phase} · ${row.dialect}`];
    if (row.stage) facts.push(plural(opCount(row.stage), "op"), `${ms(row.stage.time_us)} ms`);
    byId("ir-note").textContent = facts.join(" · ");
    const info = this.store.state.pipeline.find((p) => p.name === row.name && p.index === row.index);
    const summary = byId("ir-summary");
    summary.textContent = info?.summary ?? "";
    summary.title = info ? `${info.summary}\n${info.pass}` : "";
    this.drawMessage(row, stage.name);
  }

  private drawMessage(row: StageRow, before: string): void {
    const box = byId("ir-message");
    const pane = byId("ir-pane");
    const message = messageOf(this.store.state, row, before);
    pane.classList.toggle("stale", row.stale);
    setAttr(pane, "data-old", message?.kind === "old");
    // colours tie a stage to the source on the page, which is not the one that it was made from
    setAttr(pane, "data-foreign", isOfAnotherKernel(this.store.state, row));
    box.hidden = message === null;
    if (!message) return;
    const copy = message.kind === "failed" ? button("copy reproducer", "Copy the IR before this pass, with the command that runs the pass on it", () => void this.copyReproducer(row)) : null;
    fill(box, el("span", {}, ...message.parts), copy);
  }

  /** The text before a failed pass, as a file that shows the failure again. */
  private async copyReproducer(row: StageRow): Promise<void> {
    const { outcome, pipeline, target } = this.store.state;
    const stage = this.shown?.stage;
    if (!stage) return;
    const pass = pipeline.find((p) => p.name === row.name)?.pass ?? row.name;
    const error = outcome?.diagnostics.find((d) => d.stage === row.name)?.message ?? "";
    const text = `// ${row.name} (${pass}) fails on this, for ${target}: ${error}\n${stage.text}`;
    await this.toClipboard(text, `Copied the IR before ${row.name}`);
  }

  /** The operation that a failed pass stopped at: those of the error's place in the source. */
  private drawOffending(): void {
    const { shown } = this;
    const error = shown && !shown.row.stage && !shown.row.stale ? messageOf(this.store.state, shown.row, "")?.error : null;
    if (!shown || !error?.range || shown.row === this.offending) return;
    this.offending = shown.row;
    const { map } = shown.row.kernel;
    const n = map.find(error.range);
    if (n !== null && !this.store.state.anchor) choose(this.store, { kind: "ranges", map, ranges: [n] });
  }

  private drawLights(): void {
    const { state } = this.store;
    const selected = selectedLight(state);
    const hover = state.hover?.light ?? null;
    this.viewer.showLights(hover, selected);
    if (!this.shown) return;
    const { map } = this.shown.row.kernel;
    const links = map.linksOf(this.shown.stage);
    const linesOf = (ops: ReadonlySet<number> | undefined) =>
      [...(ops ?? [])].flatMap((op) => links.opLines.get(op) ?? []).map((line) => this.viewer.rowOf(line));
    this.ruler.draw(
      selected?.map === map ? linesOf(selected.ops) : [],
      hover?.map === map ? linesOf(hover.ops) : [],
    );
  }

  private drawMarked(): void {
    const { marked } = this.store.state;
    const own = this.shown && marked?.pane === "ir" ? marked : null;
    showMarked(this.viewer.view, own && { first: this.viewer.rowOf(own.first), last: this.viewer.rowOf(own.last) });
  }

  /** The line that the address points at, or else the best partner's, in the shown stage. */
  private wantedLine(): number | null {
    const { marked } = this.store.state;
    if (marked?.pane === "ir") return marked.first;
    const best = selectedLight(this.store.state)?.best ?? null;
    if (best === null || !this.shown) return null;
    return this.shown.row.kernel.map.linksOf(this.shown.stage).opLines.get(best)?.[0] ?? null;
  }

  /** Scrolls to the best partner, and keeps it in sight while the layout changes, until the user scrolls. */
  private revealSelection(): void {
    this.kept = this.wantedLine();
    this.tries = REVEALS;
    this.keepInSight();
  }

  private keepInSight(): void {
    const { kept } = this;
    if (kept === null || this.tries === 0) return;
    this.viewer.view.requestMeasure({
      key: this,
      read: () => this.viewer.visibleLines(),
      write: ({ first, last }) => {
        if (this.kept !== kept || (kept > first && kept < last)) return;
        this.tries--;
        queueMicrotask(() => this.viewer.reveal(kept));
      },
    });
  }

  private opAt(line: number): number | null {
    if (!this.shown) return null;
    const op = this.shown.row.kernel.map.linksOf(this.shown.stage).lineOp[line - 1] ?? -1;
    return op >= 0 ? op : null;
  }

  private point(line: number | null): void {
    const op = line === null ? null : this.opAt(line);
    const { hover } = this.store.state;
    if (op === null || !this.shown) {
      if (hover) this.store.set({ hover: null });
      return;
    }
    const { map } = this.shown.row.kernel;
    if (hover?.origin === "ir" && hover.light.map === map && hover.light.ops.has(op)) return;
    this.store.set({ hover: { origin: "ir", light: lightOfOps(map, this.shown.stage, [op]) } });
  }

  private clicked(line: number, add: boolean): void {
    const op = this.opAt(line);
    if (op === null || !this.shown) return;
    const { kernel } = this.shown.row;
    const stage = kernel.stages.indexOf(this.shown.stage);
    const { anchor } = this.store.state;
    const more = add && anchor?.kind === "ops" && anchor.map === kernel.map && anchor.stage === stage ? anchor.ops : [];
    const ops = more.includes(op) ? more.filter((o) => o !== op) : [...more, op];
    choose(this.store, ops.length > 0 ? { kind: "ops", map: kernel.map, stage, ops } : null);
  }

  /** What a click does, from the keyboard. */
  chooseCaret(): void {
    this.clicked(this.viewer.caretLine(), false);
  }

  /** Shows a line of the stage, lit as if the pointer were over it, and leaves the keyboard where it is. */
  openLine(line: number): void {
    this.kept = line;
    this.tries = REVEALS;
    this.viewer.openLine(line, "", false);
    this.point(line);
  }

  private card(line: number): HTMLElement | null {
    const text = this.shown && this.opAt(line) !== null ? linesOfStage(this.shown.stage)[line - 1] : undefined;
    return text === undefined || !this.shown ? null : operationCard(text, this.shown.stage.dialect, this.store.state.target);
  }

  private explain(line: number): HTMLElement | null {
    if (!this.shown) return null;
    const { kernel } = this.shown.row;
    const links = kernel.map.linksOf(this.shown.stage);
    const places = links.places[line - 1] ?? [];
    const chained = places.length > 1 || places.some((p) => p.length > 1);
    const texts = textsOfKernel(this.store.state, kernel);
    const op = this.opAt(line);
    const kind = op === null ? null : (describe(this.shown.stage, links, op)?.kind ?? null);
    const isShared = kind === "constant" || kind === "buffer";
    const list = chained && texts ? placeList(places, links.more[line - 1] ?? 0, kernel.map, texts, isShared) : null;
    const remarks = remarksByLine(this.shown.stage, links).get(line);
    if (!remarks) return list;
    return el("div", {}, remarkTip([{ stage: this.shown.stage, texts: remarks }]), list);
  }
}
