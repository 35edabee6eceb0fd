// patterns: FileCheck's lines beside the stages, tried with each compile: which line of the stage each one found, and which is not there.
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { kernelOf } from "../state/outcome";
import { allRows, currentRow, showStage } from "../state/view";
import { adoptStyle } from "../style/late";
import css from "../style/patterns.late.css";
import { button, byId, el, fill } from "./dom";

/** As many characters as the server takes bytes. */
const MOST = 65_536;

class Patterns {
  private readonly text = el("textarea", { id: "patterns-text", attrs: { "aria-label": "Lines that the texts of stages should have", rows: 6, spellcheck: "false", maxlength: MOST } });
  private readonly results = el("ul", { attrs: { "aria-label": "What was found", "aria-live": "polite" } });
  private readonly host = el(
    "div",
    { id: "ir-patterns" },
    el(
      "div",
      { class: "patterns-tools" },
      button("+ this stage", "Add lines about the shown stage", () => this.addStage(), "plain"),
      el("span", { class: "note" }, "CHECK, -NEXT, -SAME, -NOT, -DAG, -LABEL, -EMPTY, -COUNT-n, as in FileCheck"),
      button("close", "Close; the lines stay", () => (this.host.hidden = true)),
    ),
    this.text,
    this.results,
  );

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
  ) {
    adoptStyle(css);
    byId("ir-message").before(this.host);
    this.text.addEventListener("input", () => this.change(this.text.value));
    store.watch(["patterns", "outcome"], () => this.draw());
  }

  /** isAsked: by the user, who goes on there. */
  open(isAsked: boolean): void {
    this.host.hidden = false;
    if (this.store.state.patterns === "") this.addStage();
    this.draw();
    if (isAsked) this.text.focus();
  }

  private change(patterns: string): void {
    this.store.set({ patterns, touched: true });
    this.compiler.soon();
  }

  private addStage(): void {
    const row = currentRow(this.store.state);
    if (!row) return;
    const { patterns } = this.store.state;
    this.change(`${patterns}${patterns === "" || patterns.endsWith("\n") ? "" : "\n"}// STAGE: ${row.key}\n// CHECK: `);
    this.text.focus();
    this.text.setSelectionRange(this.text.value.length, this.text.value.length);
  }

  private draw(): void {
    const { patterns, outcome, kernelName } = this.store.state;
    if (this.text.value !== patterns) this.text.value = patterns;
    if (outcome?.status === "running") return;
    const items: HTMLElement[] = [];
    for (const stage of kernelOf(outcome, kernelName)?.stages ?? []) {
      if (!stage.patterns) continue;
      const go = () => {
        const row = allRows(this.store.state).find((r) => r.index === stage.index);
        if (row) showStage(this.store, row);
      };
      const { ok, found, line } = stage.patterns;
      const where = found.map(([of, at]) => `${of}→${at}`).join(", ");
      const words = ok ? `all lines found (line→line of the text: ${where || "none to find"})` : `line ${line}: ${stage.patterns.message}`;
      items.push(el("li", { class: ok ? "found" : "missing" }, ok ? "✓ " : "✕ ", button(`${stage.index} ${stage.name}`, "Show this stage", go), ` ${words}`));
    }
    const others = outcome?.diagnostics.filter((d) => d.code === "pattern-failed" && d.stage === undefined) ?? [];
    for (const d of others) items.push(el("li", { class: "missing" }, `✕ line ${d.range?.line}: ${d.message}`));
    fill(this.results, ...items);
  }
}

let pane: Patterns | null = null;

export function openPatterns(store: AppStore, compiler: Compiler, isAsked: boolean): void {
  pane ??= new Patterns(store, compiler);
  pane.open(isAsked);
}
