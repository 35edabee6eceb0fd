// search: a pane in the place of the stage list: every stage with the lines that have a text, for the keyboard and the pointer.
import type { AppStore } from "../state/app";
import { stageKeys, type KernelOutcome } from "../state/outcome";
import { searchStages, type Hit, type StageHits } from "../state/search";
import { shownStage, STAGE_KEYS } from "../state/view";
import css from "../style/search.late.css";
import { adoptStyle } from "../style/late";
import { byId, button, el, fill, plural, setAttr } from "./dom";
import type { IrPane } from "./ir";

adoptStyle(css);

const DELAY_MS = 120;

export class SearchPane {
  private readonly box = el("div", { class: "search-pane", attrs: { role: "search", "aria-label": "Search all stages", hidden: true } });
  private readonly input = el("input", {
    attrs: { type: "search", placeholder: "Search all stages", "aria-label": "Search all stages", role: "combobox", "aria-expanded": "true", "aria-controls": "search-hits", autocomplete: "off", spellcheck: "false" },
  });
  private readonly note = el("p", { class: "note", attrs: { role: "status" } });
  private readonly list = el("div", { attrs: { id: "search-hits", role: "listbox", "aria-label": "Hits" } });
  private kernel: KernelOutcome | null = null;
  private options: { node: HTMLElement; stage: number; hit: Hit }[] = [];
  private active = -1;
  private timer = 0;
  private before: Element | null = null;

  constructor(
    private readonly store: AppStore,
    private readonly ir: IrPane,
  ) {
    const close = button("×", "Close the search (Esc)", () => this.close(), "quiet close");
    close.setAttribute("aria-label", "Close the search");
    this.box.append(el("div", { class: "search-head" }, this.input, close), this.note, this.list);
    byId("stages-pane").append(this.box);
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.draw(), DELAY_MS);
    });
    this.input.addEventListener("keydown", (e) => this.key(e));
    this.list.addEventListener("click", (e) => {
      const at = this.options.findIndex((o) => o.node.contains(e.target as Node));
      if (at >= 0) this.choose(at);
    });
    store.watch(STAGE_KEYS, () => {
      const kernel = shownStage(store.state)?.row.kernel ?? null;
      if (!this.box.hidden && kernel !== this.kernel) this.draw();
    });
  }

  open(): void {
    this.before = document.activeElement;
    this.box.hidden = false;
    this.store.set({ pane: "stages" });
    this.input.focus();
    this.input.select();
    this.draw();
  }

  private close(): void {
    this.box.hidden = true;
    const back = this.before instanceof HTMLElement && this.before.isConnected ? this.before : byId("stages");
    back.focus();
  }

  private key(e: KeyboardEvent): void {
    if (e.key === "Escape") this.close();
    else if (e.key === "ArrowDown") this.move(1);
    else if (e.key === "ArrowUp") this.move(-1);
    else if (e.key === "Enter" && this.options.length > 0) this.choose(Math.max(this.active, 0));
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  private move(by: number): void {
    const n = this.options.length;
    if (n > 0) this.choose(this.active < 0 ? (by > 0 ? 0 : n - 1) : (this.active + by + n) % n);
  }

  private mark(at: number): void {
    const old = this.options[this.active]?.node;
    if (old) setAttr(old, "aria-selected", "false");
    this.active = at;
    const node = this.options[at]?.node;
    setAttr(this.input, "aria-activedescendant", node?.id ?? null);
    if (!node) return;
    setAttr(node, "aria-selected", "true");
    node.scrollIntoView({ block: "nearest" });
  }

  /** Shows the line in its stage; the keyboard stays here. */
  private choose(at: number): void {
    const option = this.options[at];
    if (!option || !this.kernel) return;
    this.mark(at);
    const key = stageKeys(this.kernel.stages.map((s) => s.name))[option.stage] ?? null;
    this.store.set({ stageKey: key, diffFrom: null });
    // after the watchers have shown the stage
    queueMicrotask(() => this.ir.text.openLine(option.hit.line));
  }

  private draw(): void {
    this.kernel = shownStage(this.store.state)?.row.kernel ?? null;
    const groups = searchStages(this.kernel?.stages ?? [], this.input.value);
    this.options = [];
    this.active = -1;
    setAttr(this.input, "aria-activedescendant", null);
    const total = groups.reduce((n, g) => n + g.hits.length + g.more, 0);
    this.note.textContent = this.input.value.trim() === "" ? "Any text of any stage, as printed or in its short form." : `${plural(total, "line")} in ${plural(groups.length, "text")}`;
    fill(this.list, ...groups.flatMap((g) => this.group(g)));
  }

  private group(group: StageHits): HTMLElement[] {
    const stage = this.kernel?.stages[group.first];
    const no = group.first === group.last ? String(group.first) : `${group.first}–${group.last}`;
    const head = el("div", { class: "search-stage", attrs: { role: "presentation" } }, el("span", { class: "no" }, no), stage?.name ?? "", el("span", { class: "count" }, String(group.hits.length + group.more)));
    const hits = group.hits.map((hit) => {
      const node = el(
        "div",
        { class: "search-hit", title: hit.text, attrs: { role: "option", id: `search-hit-${this.options.length}`, "aria-selected": "false" } },
        el("span", { class: "no" }, String(hit.line)),
        el("code", {}, hit.text.slice(0, hit.from), el("mark", {}, hit.text.slice(hit.from, hit.to)), hit.text.slice(hit.to)),
      );
      this.options.push({ node, stage: group.first, hit });
      return node;
    });
    const rest = group.more > 0 ? [el("p", { class: "note" }, `and ${plural(group.more, "more line")}`)] : [];
    return [head, ...hits, ...rest];
  }
}
