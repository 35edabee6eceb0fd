// ir: the shown stage: its facts, its tools, its text.
import { StateEffect } from "@codemirror/state";
import { markedLines, onNumber, showMarked } from "../editor/marked";
import type { AppStore } from "../state/app";
import { fileName, opCount, type StageRow } from "../state/outcome";
import { settings } from "../state/settings";
import { choose, isOfAnotherKernel, selectedLight, shownStage, STAGE_KEYS, type Shown } from "../state/view";
import { DetailTools } from "./detail";
import { byId, button, el, fill, refill, ms, plural, saveFile, setAttr, setText } from "./dom";
import { fitRow } from "./fit";
import { icon, type IconName } from "./icons";
import { mark } from "./marked";
import { messageOf } from "./message";
import { checkText } from "./stagerow";
import { StageText } from "./stagetext";

function tool(name: IconName, label: string, title: string, run: () => void): HTMLButtonElement {
  return el("button", { class: "quiet tool", title, attrs: { type: "button", "aria-label": title }, on: { click: run } }, icon(name), el("span", {}, label));
}


export class IrPane {
  readonly text: StageText;
  readonly detail = new DetailTools();
  /** The failed row whose operation was selected already. */
  private offending: StageRow | null = null;

  constructor(
    private readonly store: AppStore,
    private readonly say: (text: string) => void,
  ) {
    this.text = new StageText(store, byId("ir-viewer"), {
      shown: shownStage,
      selected: (s) => selectedLight(s),
      hover: (s) => s.hover?.light ?? null,
      marked: ({ marked }) => (marked?.pane === "ir" ? marked.first : null),
    });
    const { viewer } = this.text;
    const copy = tool("copy", "copy", "Copy this stage's text", () => void this.copy());
    const save = tool("download", "save", "Download this stage's text", () => this.save());
    for (const b of [copy, save]) b.classList.add("spare");
    const wrap = tool("wrap", "wrap", "Wrap long lines (w)", () => store.set({ wrap: !store.state.wrap }));
    wrap.classList.add("toggle", "spare", "wrap-tool");
    const find = tool("find", "find", "Find in this stage (Ctrl+F)", () => viewer.find());
    byId("ir-tools").append(
      find,
      wrap,
      copy,
      save,
    );
    fitRow(byId("ir-tools"), byId("ir-title"));
    store.watch(["wrap"], () => wrap.setAttribute("aria-pressed", String(store.state.wrap)));
    store.watch([...STAGE_KEYS, "compiling", "problem", "source", "files"], () => this.drawHead(this.shown));
    store.watch([...STAGE_KEYS, "compiling"], () => this.drawOffending());
    viewer.view.dispatch({ effects: StateEffect.appendConfig.of(markedLines()) });
    onNumber(viewer.view, (row, extend) => mark(store, say, "ir", viewer.lineOf(row), extend));
    store.watch([...STAGE_KEYS, "marked"], () => this.drawMarked());
    settings.watch(["fullText", "attributes"], () => this.drawMarked());
  }

  private get shown(): Shown | null {
    return this.text.shown;
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
    this.detail.showFor(stage);
    refill(title, el("span", { class: "no" }, String(row.index)), row.name);
    const facts = [row.phase === row.dialect ? row.phase : `${row.phase} · ${row.dialect}`];
    if (row.stage) facts.push(plural(opCount(row.stage), "op"), `${ms(row.stage.time_us)} ms`);
    setText(byId("ir-note"), facts.join(" · "));
    const info = this.store.state.pipelines[row.kernel.pipeline].find((p) => p.name === row.name && (p.index === row.index || (this.store.state.byHand.length > 0 && p.phase === row.phase))) ?? this.store.state.passes.find((p) => p.name === row.name);
    const summary = byId("ir-summary");
    const check = checkText(row);
    const mark = { pass: "✓", fail: "✕", skipped: "–" }[row.stage?.check?.status ?? "skipped"];
    refill(summary, check === "" ? null : el("span", { class: `check-words check-${row.stage?.check?.status}` }, `${mark} ${check}`), info?.summary ?? "");
    summary.title = [check, info?.summary, row.stage?.pass ?? info?.name].filter((t) => t).join("\n");
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
    const { outcome, pipelines, target } = this.store.state;
    const stage = this.shown?.stage;
    if (!stage) return;
    const pass = pipelines[row.kernel.pipeline].find((p) => p.name === row.name)?.pass ?? row.name;
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

  private drawMarked(): void {
    const { marked } = this.store.state;
    const own = this.shown && marked?.pane === "ir" ? marked : null;
    showMarked(this.text.viewer.view, own && { first: this.text.viewer.rowOf(own.first), last: this.text.viewer.rowOf(own.last) });
  }
}
