// remarks: the passes' remarks: in tooltips, and as a list in the drawer.
import type { Remark, Stage } from "../api/types";
import { placeText, snippet } from "../editor/positions";
import type { AppStore } from "../state/app";
import { describe } from "../state/ranking";
import { aboutAnchor, rangeOfRemark } from "../state/remarks";
import { lightOfOps, lightOfRanges, type Anchor, type Light } from "../state/selection";
import { choose, textsOfKernel, type Shown } from "../state/view";
import { docOf } from "./places";
import { el, fill } from "./dom";
import type { KnobEditor, WhyView } from "./why";

/** For tooltips: the remarks of each stage's pass. */
export function remarkTip(list: readonly { stage: Stage; texts: readonly string[] }[]): HTMLElement {
  const rows = list.flatMap(({ stage, texts }) => [
    el("dt", {}, el("span", { class: "no" }, String(stage.index)), stage.name),
    ...texts.map((t) => el("dd", {}, t)),
  ]);
  return el("dl", { class: "remark-tip" }, ...rows);
}

/** The tab of the drawer that stays open while stages and selection change: what this pass decided, and what every pass
 * decided about the selection.  The reasons of a decision open below it. */
export class Decisions {
  readonly box = el("div", { id: "ir-remarks", attrs: { role: "region", "aria-label": "Decisions" } });
  private shown: Shown | null = null;
  private anchor: Anchor | null = null;
  /** The decisions whose reasons are open. */
  private readonly open = new Set<string>();
  /** Shows reasons; loaded when they are first opened. */
  private view: WhyView | null = null;

  constructor(
    private readonly store: AppStore,
    private readonly editor: KnobEditor,
  ) {}

  /** The number of decisions that it lists. */
  show(shown: Shown | null, anchor: Anchor | null): number {
    this.shown = shown;
    this.anchor = anchor;
    if (!shown) {
      fill(this.box);
      return 0;
    }
    const focus = this.focused();
    // for a failed stage the previous stage's text is shown, whose remarks are those of another pass
    const own = shown.row.stage?.remarks ?? [];
    const about = anchor ? aboutAnchor(shown.row.kernel, anchor) : [];
    const texts = textsOfKernel(this.store.state, shown.row.kernel);
    fill(
      this.box,
      about.length > 0 ? el("h3", {}, "About the selection") : null,
      about.length > 0 ? el("ul", { class: "about-selection" }, ...about.map(({ stage, remark }) => this.row(remark, stage, "about", this.decision(stage, remark)))) : null,
      own.length > 0 && about.length > 0 ? el("h3", {}, `All of ${shown.stage.name}`) : null,
      own.length > 0 ? el("ul", { class: "of-stage" }, ...own.map((r) => this.row(r, shown.stage, "all", this.entry(r, texts)))) : null,
    );
    if (focus) this.box.querySelector<HTMLElement>(`[data-key="${CSS.escape(focus)}"] .why-open`)?.focus();
    return own.length + about.length;
  }

  /** Opens the reasons of the first decision about the selection that has a knob, or else of the first one. */
  explain(): void {
    const { shown, anchor } = this;
    if (!shown || !anchor) return;
    const about = aboutAnchor(shown.row.kernel, anchor);
    const at = Math.max(0, about.findIndex(({ remark }) => remark.knob));
    const row = this.box.querySelectorAll<HTMLElement>(".about-selection > li")[at];
    if (!row) return;
    const toggle = row.querySelector<HTMLElement>(".why-open");
    if (toggle?.getAttribute("aria-expanded") === "false") toggle.click();
    this.box.querySelectorAll<HTMLElement>(".about-selection > li .why-open")[at]?.focus();
    toggle?.scrollIntoView({ block: "nearest" });
  }

  /** The key of the row that has the focus. */
  private focused(): string | null {
    const { activeElement } = document;
    return activeElement && this.box.contains(activeElement) ? (activeElement.closest<HTMLElement>("[data-key]")?.dataset.key ?? null) : null;
  }

  private decision(stage: Stage, remark: Remark): HTMLElement {
    return el("span", { class: "decision" }, el("span", { class: "no" }, String(stage.index)), el("span", { class: "by" }, stage.name), el("span", { class: "text" }, remark.text));
  }

  /** A decision with the button that opens its reasons; results of older compilers have none. */
  private row(remark: Remark, stage: Stage, list: string, body: HTMLElement): HTMLElement {
    if (!remark.rule || !this.shown) return el("li", {}, body);
    const { map } = this.shown.row.kernel;
    const n = rangeOfRemark(remark, map);
    const range = n === null ? undefined : map.ranges[n];
    // what stays the same when a knob is written after the statement
    const id = `${list} ${stage.name} ${remark.rule} ${range ? placeText(map, range) : remark.text}`;
    const isOpen = this.open.has(id);
    const toggle = el(
      "button",
      {
        class: "quiet why-open",
        title: "The rule, its limits, what was rejected, and the knob",
        attrs: { type: "button", "aria-expanded": String(isOpen), "aria-label": `Why: ${remark.text}` },
        on: { click: () => void this.toggle(id) },
      },
      remark.knob ? "why · knob" : "why",
    );
    const li = el("li", { attrs: { "data-key": id } }, el("div", { class: "decision-row" }, body, toggle));
    if (isOpen && this.view) li.append(this.view({ remark, stage, kernel: this.shown.row.kernel, editor: this.editor, store: this.store }));
    return li;
  }

  private async toggle(id: string): Promise<void> {
    if (!this.open.delete(id)) this.open.add(id);
    this.view ??= (await import("./why")).whyView;
    this.show(this.shown, this.anchor);
  }

  private entry(remark: Remark, texts: ReadonlyMap<string, string> | null): HTMLElement {
    const { map } = (this.shown as Shown).row.kernel;
    const n = rangeOfRemark(remark, map);
    const range = n === null ? undefined : map.ranges[n];
    const where = range && texts ? [el("span", { class: "at" }, placeText(map, range)), el("code", {}, snippet(docOf(texts, range), range))] : [];
    // two operations of one expression may have got equal remarks
    const { stage } = this.shown as Shown;
    const on = remark.op === undefined ? null : describe(stage, map.linksOf(stage), remark.op);
    const text = el("span", { class: "text" }, remark.text, on ? el("span", { class: "on" }, ` ${on.label}`) : null);
    const anchor = this.anchorOf(remark, n);
    if (!anchor) return el("span", { class: "remark" }, text, ...where);
    const light = this.lightOf(anchor);
    const point = (on: boolean) => this.store.set({ hover: on ? { origin: "ir", anchor, light } : null });
    return el(
      "button",
      {
        class: "remark",
        attrs: { type: "button" },
        on: {
          click: () => choose(this.store, anchor),
          mouseenter: () => point(true),
          mouseleave: () => point(false),
          focus: () => point(true),
          blur: () => point(false),
        },
      },
      text,
      ...where,
    );
  }

  private anchorOf(remark: Remark, range: number | null): Anchor | null {
    const { kernel } = (this.shown as Shown).row;
    const { stage } = this.shown as Shown;
    if (remark.op !== undefined) return { kind: "ops", map: kernel.map, stage: kernel.stages.indexOf(stage), ops: [remark.op] };
    return range === null ? null : { kind: "ranges", map: kernel.map, ranges: [range] };
  }

  private lightOf(anchor: Anchor): Light {
    const { row, stage } = this.shown as Shown;
    return anchor.kind === "ops"
      ? lightOfOps(row.kernel.map, stage, anchor.ops)
      : lightOfRanges(row.kernel.map, stage, anchor.ranges);
  }
}
