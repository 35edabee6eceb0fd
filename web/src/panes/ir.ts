// ir: the text of the shown stage.
import { linesOfStage } from "../editor/rows";
import { StageViewer } from "../editor/viewer";
import type { AppStore } from "../state/app";
import { opCount, type StageRow } from "../state/outcome";
import { images, lightOfOps, type Anchor } from "../state/selection";
import { remarksByLine } from "../state/remarks";
import { choose, selectedLight, shownStage, textsOfKernel, STAGE_KEYS, type Shown } from "../state/view";
import { operationCard } from "./card";
import { DetailTools } from "./detail";
import { byId, el, fill, ms, plural, setAttr } from "./dom";
import { icon, type IconName } from "./icons";
import { placeList } from "./places";
import { RemarkList, remarkTip } from "./remarks";
import { Ruler } from "./ruler";

function tool(name: IconName, label: string, title: string, run: () => void): HTMLButtonElement {
  return el("button", { class: "quiet tool", title, attrs: { type: "button", "aria-label": title }, on: { click: run } }, icon(name), el("span", {}, label));
}

function fileName(row: StageRow): string {
  return `${String(row.index).padStart(2, "0")}-${row.name}.${row.dialect === "hlo" ? "hlo" : "mlir"}`;
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const a = el("a", { attrs: { href: url, download: name } });
  a.click();
  // the download has its own reference by then
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export class IrPane {
  readonly viewer: StageViewer;
  private readonly ruler: Ruler;
  private readonly remarks: RemarkList;
  readonly detail: DetailTools;
  private shown: Shown | null = null;
  private readonly wrapButton: HTMLButtonElement;

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
    this.remarks = new RemarkList(store);
    store.watch(["wrap"], () => {
      this.viewer.setWrap(store.state.wrap);
      this.wrapButton.setAttribute("aria-pressed", String(store.state.wrap));
    });
    store.watch([...STAGE_KEYS, "compiling"], () => this.drawStage());
    store.watch([...STAGE_KEYS, "hover", "anchor"], () => this.drawLights());
    store.watch(["reveal"], () => this.revealSelection());
  }

  private async copy(): Promise<void> {
    const stage = this.shown?.stage;
    if (!stage) return;
    try {
      await navigator.clipboard.writeText(stage.text);
      this.say(`Copied ${stage.name}, ${plural(stage.lines.length, "line")}`);
    } catch {
      this.say("The browser refused to copy");
    }
  }

  private save(): void {
    if (this.shown) download(fileName(this.shown.row), this.shown.stage.text);
  }

  private drawStage(): void {
    const now = shownStage(this.store.state);
    const was = this.shown;
    this.shown = now;
    this.drawHead(now);
    this.remarks.show(now);
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
    const links = now.row.kernel.map.linksOf(now.stage);
    const lineOf = (op: number) => links.opLines.get(op)?.[0];
    if (was.row.kernel.map !== now.row.kernel.map) {
      // another compilation: the same line number is the best guess
      return was.stage.name === now.stage.name && first > 1 ? { from: first, to: first } : null;
    }
    const from = was.row.kernel.stages.indexOf(was.stage);
    const to = now.row.kernel.stages.indexOf(now.stage);
    const target = (anchor: Anchor) => {
      for (const op of images(anchor, now.row.kernel)[to]?.ops ?? []) {
        const line = lineOf(op);
        if (line !== undefined) return line;
      }
      return undefined;
    };
    const { anchor } = this.store.state;
    if (anchor) {
      const line = target(anchor);
      const old = images(anchor, was.row.kernel)[from]?.ops.map((op) => oldLinks.opLines.get(op)?.[0] ?? 0) ?? [];
      const seen = old.find((l) => l >= first && l <= last);
      if (line !== undefined) return { from: seen ?? Math.round((first + last) / 2), to: line };
    }
    if (first <= 1) return null; // the top stays the top
    for (let line = first; line <= last; line++) {
      const op = oldLinks.lineOp[line - 1] ?? -1;
      if (op < 0) continue;
      const hit = target({ kind: "ops", map: was.row.kernel.map, stage: from, ops: [op] });
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
    const { outcome, compiling } = this.store.state;
    const old = row.stale && !compiling;
    const pane = byId("ir-pane");
    pane.classList.toggle("stale", row.stale);
    setAttr(pane, "data-old", old);
    box.hidden = !row.failed && !old;
    if (box.hidden) return;
    if (old) {
      const began = outcome?.kernels.some((k) => k.stages.length > 0);
      const reached = began ? "was refused in its trace, which holds what came before" : "reached no stage";
      fill(box, `This is from the last version that compiled; the kernel as it stands ${reached}.`);
    } else if (row.stage) {
      const { max_abs_err: err, reason, first_wrong: first } = row.stage.check ?? {};
      const place = first ? ` First wrong: ${first.output}[${first.index.join(", ")}] is ${first.got ?? "not finite"}, not ${first.expected ?? "finite"}.` : "";
      const size = err === undefined ? "" : ` Largest absolute error ${err === null ? "infinite" : err.toExponential(2)}.${place}`;
      fill(box, el("b", {}, `${row.name} no longer computes what NumPy computes.`), size, reason ? ` ${reason}` : "");
    } else {
      const own = outcome?.diagnostics.find((d) => d.severity === "error" && d.stage === row.name);
      fill(box, el("b", {}, `${row.name} failed. `), own ? `${own.message}.` : "", ` Shown is the IR before it, after ${before}.`);
    }
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

  private revealSelection(): void {
    const light = selectedLight(this.store.state);
    if (!light || !this.shown) return;
    const links = this.shown.row.kernel.map.linksOf(this.shown.stage);
    const lines = [...light.ops].flatMap((op) => links.opLines.get(op) ?? []).sort((a, b) => a - b);
    const { first, last } = this.viewer.visibleLines();
    if (lines[0] !== undefined && !lines.some((l) => l > first && l < last)) this.viewer.reveal(lines[0]);
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
    const list = chained && texts ? placeList(places, links.more[line - 1] ?? 0, kernel.map, texts) : null;
    const remarks = remarksByLine(this.shown.stage, links).get(line);
    if (!remarks) return list;
    return el("div", {}, remarkTip([{ stage: this.shown.stage, texts: remarks }]), list);
  }
}
