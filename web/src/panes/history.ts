// history: the drawer below the stage: the selection in each stage, as chips that open it, with what the shown stage has of
// it; in the other tab, what the passes decided.
import type { SourceRange } from "../api/types";
import { placeText, snippet } from "../editor/positions";
import type { AppStore } from "../state/app";
import { partsOf } from "../state/lineage";
import { isVendor, stageKeys, type KernelOutcome } from "../state/outcome";
import { ranked } from "../state/ranking";
import { hiddenOfOps, images, placesOfOps, type Anchor, type Image } from "../state/selection";
import type { Place } from "../state/sourcemap";
import { choose, selectedLight, shownStage, STAGE_KEYS, textsOfKernel } from "../state/view";
import { byId, button, el, fill, plural, setAttr } from "./dom";
import { Parts } from "./parts";
import { docOf, placeList } from "./places";
import { Decisions } from "./remarks";
import type { KnobEditor } from "./why";

interface Step {
  first: number;
  last: number;
  label: string;
  count: number;
  /** How many other kinds of operations there are. */
  more: number;
  via: Image["via"];
}

function stepsOf(kernel: KernelOutcome, all: readonly Image[]): Step[] {
  const steps: Step[] = [];
  all.forEach((image, i) => {
    const stage = kernel.stages[i];
    const list = stage ? ranked(stage, kernel.map.linksOf(stage), image.ops) : [];
    const head = list[0];
    if (!head) return;
    const labels = new Set(list.map((d) => d.label));
    const count = list.filter((d) => d.label === head.label).length;
    const step: Step = { first: i, last: i, label: head.label, count, more: labels.size - 1, via: image.via };
    const before = steps.at(-1);
    const same = before && before.last === i - 1 && before.label === step.label && before.count === step.count && before.more === step.more;
    if (same && before.via === step.via) before.last = i;
    else steps.push(step);
  });
  return steps;
}

interface Lead {
  name: string;
  isCode: boolean;
  places: Place[];
  more: number;
  /** It is a constant or a buffer, which its places share. */
  isShared: boolean;
}

function lead(anchor: Anchor, kernel: KernelOutcome, texts: ReadonlyMap<string, string>): Lead {
  if (anchor.kind === "ranges") {
    const first = kernel.map.ranges[anchor.ranges[0] ?? -1];
    return { name: first ? snippet(docOf(texts, first), first, 48) : "", isCode: true, places: anchor.ranges.map((n) => [n]), more: 0, isShared: false };
  }
  const stage = kernel.stages[anchor.stage];
  const links = stage ? kernel.map.linksOf(stage) : null;
  const best = stage && links ? ranked(stage, links, anchor.ops)[0] : undefined;
  return {
    name: best?.label ?? "",
    isCode: false,
    places: links ? placesOfOps(links, anchor.ops) : [],
    more: links ? hiddenOfOps(links, anchor.ops) : 0,
    isShared: best?.kind === "constant" || best?.kind === "buffer",
  };
}

/** "shared by 21 expressions", "21 places in the source", "through 2 calls"; "" if there is nothing to open. */
function moreText({ places, more, isShared }: Lead): string {
  const count = places.length + more;
  if (count > 1) return isShared ? `shared by ${plural(count, "expression")}` : `${plural(count, "place")} in the source`;
  const calls = (places[0]?.length ?? 1) - 1;
  return calls > 0 ? `through ${plural(calls, "call")}` : "";
}

type Tab = "history" | "decisions";

export class HistoryDrawer {
  private readonly box = byId("history");
  private readonly head = el("div", { class: "history-head" });
  private readonly chips = el("div", { class: "chips" });
  private readonly more = el("div", { class: "history-more" });
  private readonly panel = el("div", { class: "history-body" });
  private readonly parts: Parts;
  private readonly decisions: Decisions;
  private readonly tabs: Record<Tab, HTMLButtonElement>;
  private tab: Tab = "history";
  private rounds: typeof import("./rounds") | null = null;
  private readonly choosers = el("div", { class: "round-choosers" });
  /** The user has closed the table of counts. */
  private isFolded = false;

  constructor(
    private readonly store: AppStore,
    editor: KnobEditor,
  ) {
    this.parts = new Parts(store);
    this.decisions = new Decisions(store, editor);
    this.tabs = { history: this.tabButton("history", "History"), decisions: this.tabButton("decisions", "Decisions") };
    this.tabs.decisions.id = "ir-remarks-open";
    fill(this.panel, this.choosers, this.chips, this.parts.box, this.more);
    fill(this.box, this.head, this.panel, this.decisions.box);
    store.watch([...STAGE_KEYS, "anchor", "partner"], () => this.draw());
  }

  private tabButton(tab: Tab, label: string): HTMLButtonElement {
    return el("button", { class: "quiet tab-of-drawer", attrs: { type: "button" }, on: { click: () => this.open(tab) } }, label);
  }

  open(tab: Tab): void {
    this.tab = tab;
    this.draw();
  }

  /** Opens the reasons of what was decided about the selection. */
  explain(): void {
    this.open("decisions");
    this.decisions.explain();
  }

  /** Opens the chain of decisions that led to the best operation of the selection in the shown stage. */
  private async tell(): Promise<void> {
    const shown = shownStage(this.store.state);
    const best = selectedLight(this.store.state)?.best;
    if (!shown || best === null || best === undefined) return;
    const { kernel } = shown.row;
    await (await import("./whytext")).openWhyText(kernel, kernel.stages.indexOf(shown.stage), best);
  }

  private chip(kernel: KernelOutcome, step: Step, shownIndex: number): HTMLElement {
    const here = shownIndex >= step.first && shownIndex <= step.last;
    const names = kernel.stages.slice(step.first, step.last + 1).map((s) => `${s.index} ${s.name}`);
    const no = step.first === step.last ? String(step.first) : `${step.first}–${step.last}`;
    const why = step.via === "range" ? "same source" : "came from it";
    return el(
      "button",
      {
        class: `chip via-${step.via}`,
        title: `${names.join("\n")}\n${why}`,
        attrs: {
          type: "button",
          "aria-current": here ? "step" : null,
          "aria-expanded": here ? String(!this.isFolded) : null,
          "aria-label": `stage ${names.join(", ")}: ${step.label}`,
        },
        on: { click: () => this.chosen(kernel, step, here ? shownIndex : null) },
      },
      el("span", { class: "no" }, no),
      el("span", { class: "op" }, step.label),
      step.count > 1 ? el("span", { class: "times" }, `×${step.count}`) : null,
      step.more > 0 ? el("span", { class: "times" }, `+${step.more}`) : null,
    );
  }

  /** Opens the chip's stage; the chip of the shown stage opens and closes its counts. */
  private chosen(kernel: KernelOutcome, step: Step, here: number | null): void {
    this.isFolded = here !== null && !this.isFolded;
    const key = stageKeys(kernel.stages.map((s) => s.name))[here ?? step.first];
    this.store.set({ stageKey: key ?? null, partner: null, reveal: this.store.state.reveal + 1, pane: "ir" });
    this.draw();
  }

  private drawTabs(decisions: number): void {
    if (decisions === 0) this.tab = "history";
    fill(this.tabs.decisions, "Decisions", el("span", { class: "count" }, String(decisions)));
    this.tabs.decisions.hidden = decisions === 0;
    for (const [tab, b] of Object.entries(this.tabs)) setAttr(b, "aria-pressed", String(tab === this.tab));
    this.panel.hidden = this.tab !== "history";
    this.decisions.box.hidden = this.tab !== "decisions";
  }

  private draw(): void {
    const { anchor } = this.store.state;
    const shown = shownStage(this.store.state);
    const kernel = shown?.row.kernel;
    const followed = anchor && anchor.map === kernel?.map ? anchor : null;
    this.drawTabs(this.decisions.show(shown, followed));
    this.box.classList.toggle("none", !followed);
    if (!followed || !shown || !kernel) {
      this.panel.hidden = true;
      fill(this.choosers);
      const note = el("p", { class: "note" }, "Click a line or an expression to follow it through the stages.");
      fill(this.head, this.tabs.history, this.tabs.decisions, note);
      return;
    }
    const texts = textsOfKernel(this.store.state, kernel) ?? new Map<string, string>();
    const about = lead(followed, kernel, texts);
    const all = images(followed, kernel);
    const index = kernel.stages.indexOf(shown.stage);
    const ops = all[index]?.ops ?? [];
    this.drawRounds(followed, kernel, texts);
    this.drawHead(about, kernel, texts, ops.length === 0);
    this.drawChips(kernel, stepsOf(kernel, all), index);
    this.parts.show(kernel, index, this.isFolded ? [] : partsOf(kernel, index, ops), texts);
    const more = moreText(about);
    fill(this.more, more === "" ? null : el("details", { class: "history-places" }, el("summary", {}, more), placeList(about.places, about.more, kernel.map, texts, about.isShared)));
  }

  /** The choosers of rounds, which are loaded when a selection is inside of a loop. */
  private drawRounds(anchor: Anchor, kernel: KernelOutcome, texts: ReadonlyMap<string, string>): void {
    if (kernel.map.loops.length === 0) fill(this.choosers);
    else if (this.rounds) this.rounds.drawRounds(this.choosers, this.store, anchor, kernel, texts);
    else
      void import("./rounds").then((module) => {
        this.rounds = module;
        this.draw();
      });
  }

  private drawHead(about: Lead, kernel: KernelOutcome, texts: ReadonlyMap<string, string>, nothingHere: boolean): void {
    const { name, isCode, places } = about;
    const only = places.length === 1 ? places[0] : undefined;
    const one = only ? kernel.map.ranges[only[0] as number] : undefined;
    const code = (r: SourceRange) => (isCode ? [] : [el("span", {}, "·"), el("code", {}, snippet(docOf(texts, r), r, 48))]);
    const close = button("×", "Clear the selection (Esc)", () => choose(this.store, null), "quiet close");
    close.setAttribute("aria-label", "Clear the selection");
    fill(
      this.head,
      this.tabs.history,
      this.tabs.decisions,
      el(isCode ? "code" : "b", { class: "op" }, name || "the selection"),
      ...(one ? [el("span", {}, `· line ${placeText(kernel.map, one)}`), ...code(one)] : []),
      places.length === 0 ? el("span", {}, "· made by the compiler, no source") : null,
      nothingHere ? el("span", { class: "gone" }, "· nothing of it in this stage") : null,
      el("span", { class: "spring" }),
      nothingHere ? null : button("why, as a text", "What led to it: every stage that changed it, and every decision about it", () => void this.tell(), "quiet"),
      close,
    );
  }

  private drawChips(kernel: KernelOutcome, steps: readonly Step[], index: number): void {
    const chips: Node[] = [];
    steps.forEach((step, i) => {
      if (i > 0) chips.push(el("span", { class: "arrow", attrs: { "aria-hidden": "true" } }, "→"));
      chips.push(this.chip(kernel, step, index));
    });
    const end = steps.at(-1)?.last ?? -1;
    let gone = end >= 0 && end < kernel.stages.length - 1 ? kernel.stages[end + 1] : undefined;
    if (isVendor(gone)) gone = undefined; // it says itself what it belongs to
    if (gone) chips.push(el("span", { class: "arrow gone", title: `${gone.index} ${gone.name}` }, `→ gone in ${gone.index} ${gone.name}`));
    const hadFocus = this.chips.contains(document.activeElement);
    fill(this.chips, ...chips);
    const current = this.chips.querySelector<HTMLElement>('[aria-current="step"]');
    if (hadFocus) current?.focus();
    current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}
