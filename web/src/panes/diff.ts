// diff: compares the shown stage with another, instead of showing its text: side by side, or in one column.
import { getDiff, type Holder } from "../api/client";
import { Problem } from "../api/problem";
import type { Stage, StageDiff } from "../api/types";
import type { DiffColumns } from "../editor/diffcolumns";
import { linesOfStage } from "../editor/rows";
import type { AppState, AppStore } from "../state/app";
import type { KernelOutcome, Outcome, StageRow } from "../state/outcome";
import { lightOfAnchor } from "../state/selection";
import { settings } from "../state/settings";
import { allRows, choose, shownStage, STAGE_KEYS } from "../state/view";
import { byId, button, el, fill, plural, toggle } from "./dom";
import { icon } from "./icons";

/** Pixels; in a narrower pane two columns show too little of each line. */
const SPLIT_MIN = 760;

interface Pair {
  from: Stage;
  to: Stage;
  kernel: KernelOutcome;
  outcome: Outcome;
}

const NO_CHANGE: Omit<StageDiff, "lines_from" | "lines_to"> = { changed: 0, removed: 0, added: 0, hunks: [] };

/** The stage that the shown one is compared with: the chosen one, otherwise the previous one.  The first stage has none. */
export function comparedRow(s: Readonly<AppState>): StageRow | null {
  if (s.diffFrom === null) return null;
  const shown = shownStage(s);
  if (!shown) return null;
  const rows = allRows(s).filter((r) => r.stage && r.kernel === shown.row.kernel);
  const chosen = s.diffFrom === "" ? undefined : rows.find((r) => r.key === s.diffFrom);
  const at = rows.findIndex((r) => r.stage === shown.stage);
  return chosen ?? rows[at - 1] ?? null;
}

function holderOf(outcome: Outcome): Holder {
  return outcome.snippet === null ? { key: outcome.key } : { snippet: outcome.snippet, revision: outcome.revision };
}

export class DiffPane {
  /** Null until it is loaded, for the first comparison. */
  private columns: DiffColumns | null = null;
  private readonly known = new WeakMap<Stage, Map<Stage, StageDiff>>();
  private pair: Pair | null = null;
  /** The columns take the focus when they are shown. */
  private takesFocus = false;
  /** Whether the user has chosen the number of columns; otherwise the pane's width decides. */
  private hasChosen = false;
  private readonly pick: HTMLSelectElement;
  private readonly facts = el("span", { class: "diff-facts" });
  private readonly where = el("span", { class: "note diff-where" });
  private readonly message = el("p", { class: "diff-message", attrs: { hidden: true } });
  private readonly modes: HTMLButtonElement[];
  private readonly toggleButton: HTMLButtonElement;

  constructor(
    private readonly store: AppStore,
    private readonly recompile: () => void,
  ) {
    const host = byId("diff-viewer");
    this.pick = el("select", { attrs: { "aria-label": "Compare with" }, on: { change: () => this.store.set({ diffFrom: this.pick.value }) } });
    const mode = (label: string, title: string, unified: boolean) => toggle(label, title, () => this.setUnified(unified));
    this.modes = [mode("split", "Side by side, in two columns (u)", false), mode("unified", "In one column (u)", true)];
    const step = (name: "up" | "down", title: string, by: 1 | -1) =>
      el("button", { class: "quiet tool", title, attrs: { type: "button", "aria-label": title }, on: { click: () => this.step(by) } }, icon(name));
    fill(
      byId("diff-bar"),
      el("label", { class: "diff-pick" }, el("span", {}, "against"), this.pick),
      this.facts,
      el("span", { class: "spring" }),
      this.where,
      step("up", "Previous change (Shift+F7)", -1),
      step("down", "Next change (F7)", 1),
      button("all lines", "Show the equal lines, too (Shift+E)", () => this.expandAll()),
      ...this.modes,
      el("button", { class: "quiet tool", title: "Close the diff (d)", attrs: { type: "button", "aria-label": "Close the diff" }, on: { click: () => this.toggle() } }, icon("close")),
    );
    host.append(this.message);
    this.toggleButton = el(
      "button",
      { class: "quiet tool toggle", title: "Compare with the stage before (d)", attrs: { type: "button", "aria-label": "Diff" }, on: { click: () => this.toggle() } },
      icon("diff"),
      el("span", {}, "diff"),
    );
    byId("ir-tools").prepend(this.toggleButton);
    store.watch([...STAGE_KEYS, "diffFrom"], () => this.follow());
    store.watch(["unified", "diffFrom"], () => this.draw());
    store.watch(["wrap", "unified"], () => this.columns?.setWrap(store.state.wrap));
    store.watch([...STAGE_KEYS, "anchor", "diffFrom"], () => this.drawLights());
    settings.watch(["fullText"], () => this.columns?.setFull(settings.state.fullText));
  }

  get isOpen(): boolean {
    return this.store.state.diffFrom !== null;
  }

  toggle(): void {
    const fromText = byId("ir-viewer").contains(document.activeElement);
    const focused = byId("diff-viewer").contains(document.activeElement) || byId("diff-bar").contains(document.activeElement);
    if (this.isOpen) this.store.set({ diffFrom: null, pane: "ir" });
    else this.start("");
    // the focused element is gone then
    if (focused && !this.isOpen) this.focus("ir-viewer");
    this.takesFocus = fromText && this.isOpen;
  }

  private focus(pane: string): void {
    requestAnimationFrame(() => byId(pane).querySelector<HTMLElement>(".cm-content")?.focus());
  }

  private start(diffFrom: string): void {
    const { unified } = this.store.state;
    const narrow = byId("ir-pane").clientWidth < SPLIT_MIN;
    this.store.set({ diffFrom, unified: this.hasChosen || this.isOpen ? unified : narrow, pane: "ir" });
  }

  /** Makes the shown stage the one that others are compared with. */
  mark(): void {
    const shown = shownStage(this.store.state);
    if (shown) this.start(shown.row.key);
  }

  setUnified(unified: boolean): void {
    this.hasChosen = true;
    if (this.isOpen) this.store.set({ unified });
  }

  expandAll(): void {
    this.columns?.expandAll();
  }

  private wanted(): Pair | null {
    const s = this.store.state;
    const from = comparedRow(s)?.stage;
    const shown = shownStage(s);
    const kernel = shown?.row.kernel;
    const outcome = [s.outcome, s.previous].find((o) => kernel && o?.kernels.includes(kernel));
    // while frames arrive, the kernel is a new object each time, but its map stays the same
    const byMap = outcome ?? [s.outcome, s.previous].find((o) => o?.kernels.some((k) => k.map === kernel?.map));
    return from && shown && kernel && byMap ? { from, to: shown.stage, kernel, outcome: byMap } : null;
  }

  /** Requests the diff of the two stages, unless it is known. */
  private follow(): void {
    const open = this.isOpen;
    byId("ir-pane").classList.toggle("comparing", open);
    this.toggleButton.setAttribute("aria-pressed", String(open));
    byId("diff-bar").hidden = !open;
    byId("diff-viewer").hidden = !open;
    byId("ir-viewer").hidden = open;
    if (!open) {
      this.pair = null;
      return;
    }
    this.drawPick();
    const pair = this.wanted();
    // a running compile is compared after its last stage has arrived
    if (pair?.outcome.status === "running" && this.pair) return;
    if (pair && pair.from === this.pair?.from && pair.to === this.pair.to) return;
    this.pair = pair;
    this.columns?.forget();
    if (!pair) {
      const shown = shownStage(this.store.state);
      this.say(shown ? `${shown.stage.name} is the first stage: none comes before it. The list above compares it with another.` : "There is no stage to compare yet.");
      return;
    }
    const known = this.known.get(pair.to)?.get(pair.from);
    if (known) void this.take(pair, known);
    else if (pair.from.text === pair.to.text) void this.take(pair, { ...NO_CHANGE, lines_from: linesOfStage(pair.from).length, lines_to: linesOfStage(pair.to).length });
    else void this.ask(pair);
  }

  private async ask(pair: Pair): Promise<void> {
    const late = window.setTimeout(() => this.pair === pair && this.say("Comparing…"), 400);
    try {
      const kernel = pair.outcome.kernels.findIndex((k) => k.map === pair.kernel.map);
      const diff = await getDiff(holderOf(pair.outcome), kernel, pair.from.index, pair.to.index);
      if (this.pair === pair) await this.take(pair, diff);
    } catch (e) {
      if (this.pair !== pair) return;
      if (!(e instanceof Problem)) throw e;
      const gone = e.code === "not-found";
      this.say(gone ? "The server does not have this result any more." : `The stages could not be compared: ${e.message}`);
      this.message.append(" ", gone ? button("Compile again", "Compile the kernel again", this.recompile, "plain") : button("Try again", "Ask again", () => void this.ask(pair), "plain"));
    } finally {
      window.clearTimeout(late);
    }
  }

  private async take(pair: Pair, diff: StageDiff): Promise<void> {
    const map = this.known.get(pair.to) ?? new Map<Stage, StageDiff>();
    map.set(pair.from, diff);
    this.known.set(pair.to, map);
    const parts = await import("../editor/diffcolumns").catch(() => null);
    if (this.pair !== pair) return;
    if (!parts) {
      this.pair = null;
      this.say("The comparison could not be loaded: is the server reachable?");
      return;
    }
    this.columns ??= new parts.DiffColumns(byId("diff-viewer"), { picked: (which, op) => this.picked(which, op), moved: () => this.drawWhere() });
    this.message.hidden = true;
    byId("diff-viewer").classList.remove("told");
    const name = (s: Stage) => `${s.index} ${s.name}`;
    const labels = {
      both: `Changes from stage ${name(pair.from)} to ${name(pair.to)}`,
      from: `Stage ${name(pair.from)}, compared`,
      to: `Stage ${name(pair.to)}, compared`,
    };
    const side = (stage: Stage) => parts.sideOfStage(pair.kernel, stage);
    this.columns.setFull(settings.state.fullText);
    this.columns.show({ from: side(pair.from), to: side(pair.to), labels }, diff, this.store.state.unified);
    this.columns.setWrap(this.store.state.wrap);
    this.drawFacts(diff, pair);
    this.drawLights();
    if (this.takesFocus) this.focus("diff-viewer");
    this.takesFocus = false;
  }

  private say(text: string): void {
    fill(this.message, text);
    this.message.hidden = false;
    fill(this.facts);
    fill(this.where);
    byId("diff-viewer").classList.add("told");
  }

  private drawPick(): void {
    const rows = allRows(this.store.state).filter((r) => r.stage);
    const options = [
      { value: "", label: "stage before" },
      ...rows.map((r) => ({ value: r.key, label: `${r.index} ${r.name}` })),
    ];
    const { diffFrom } = this.store.state;
    const same = this.pick.options.length === options.length && options.every((o, i) => this.pick.options[i]?.value === o.value);
    if (!same) fill(this.pick, ...options.map((o) => el("option", { attrs: { value: o.value } }, o.label)));
    this.pick.value = options.some((o) => o.value === diffFrom) ? (diffFrom ?? "") : "";
  }

  private draw(): void {
    const { unified } = this.store.state;
    this.modes.forEach((b, i) => b.setAttribute("aria-pressed", String(unified === (i === 1))));
    if (this.isOpen) this.columns?.setUnified(unified);
  }

  private drawFacts(diff: StageDiff, pair: Pair): void {
    const n = diff.hunks.length;
    if (n === 0) {
      const why = pair.from.text === pair.to.text ? "The same text" : "The same but for names, locations and the order of attributes";
      fill(this.facts, el("b", {}, why));
      fill(this.where);
      return;
    }
    fill(
      this.facts,
      diff.changed > 0 ? el("span", {}, `~${diff.changed.toLocaleString("en")}`, el("span", { class: "word" }, " changed")) : null,
      diff.added > 0 ? el("ins", {}, `+${diff.added.toLocaleString("en")}`) : null,
      diff.removed > 0 ? el("del", {}, `−${diff.removed.toLocaleString("en")}`) : null,
    );
    this.facts.title = `${plural(diff.changed, "line")} changed, ${diff.added} added, ${diff.removed} removed`;
    this.drawWhere();
  }

  private drawWhere(): void {
    const { hunk, hunks } = this.columns ?? { hunk: -1, hunks: 0 };
    fill(this.where, hunks === 0 ? "" : `${hunk + 1} / ${hunks}`);
    this.where.title = `Change ${hunk + 1} of ${hunks}`;
  }

  /** Goes to the next or previous change; wraps at the ends. */
  step(by: 1 | -1): void {
    this.columns?.step(by);
  }

  private drawLights(): void {
    const { pair } = this;
    if (!this.isOpen || !pair) return;
    const { anchor } = this.store.state;
    const light = (s: Stage) => lightOfAnchor(anchor, pair.kernel, pair.kernel.stages.indexOf(s));
    this.columns?.showLights({ from: light(pair.from), to: light(pair.to) });
  }

  private picked(which: "from" | "to", op: number): void {
    const { pair } = this;
    const stage = pair ? pair.kernel.stages.indexOf(which === "from" ? pair.from : pair.to) : -1;
    if (pair && stage >= 0) choose(this.store, { kind: "ops", map: pair.kernel.map, stage, ops: [op] });
  }
}
