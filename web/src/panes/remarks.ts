// remarks: the passes' remarks: in tooltips, and as a list in the drawer.
import type { Remark, Stage } from "../api/types";
import { placeText, snippet } from "../editor/positions";
import type { AppStore } from "../state/app";
import { describe } from "../state/ranking";
import { rangeOfRemark } from "../state/remarks";
import { images, lightOfOps, lightOfRanges, type Anchor, type Light } from "../state/selection";
import { choose, textsOfKernel, type Shown } from "../state/view";
import { docOf } from "./places";
import { el, fill } from "./dom";

/** For tooltips: the remarks of each stage's pass. */
export function remarkTip(list: readonly { stage: Stage; texts: readonly string[] }[]): HTMLElement {
  const rows = list.flatMap(({ stage, texts }) => [
    el("dt", {}, el("span", { class: "no" }, String(stage.index)), stage.name),
    ...texts.map((t) => el("dd", {}, t)),
  ]);
  return el("dl", { class: "remark-tip" }, ...rows);
}

/** The tab of the drawer that stays open while stages and selection change: what this pass decided, and what every pass
 * decided about the selection. */
export class Decisions {
  readonly box = el("div", { id: "ir-remarks", attrs: { role: "region", "aria-label": "Decisions" } });
  private shown: Shown | null = null;

  constructor(private readonly store: AppStore) {}

  /** The number of decisions that it lists. */
  show(shown: Shown | null, anchor: Anchor | null): number {
    this.shown = shown;
    if (!shown) {
      fill(this.box);
      return 0;
    }
    // for a failed stage the previous stage's text is shown, whose remarks are those of another pass
    const own = shown.row.stage?.remarks ?? [];
    const about = anchor ? this.aboutSelection(shown, anchor) : [];
    const texts = textsOfKernel(this.store.state, shown.row.kernel);
    fill(
      this.box,
      about.length > 0 ? el("h3", {}, "About the selection") : null,
      about.length > 0 ? el("ul", { class: "about-selection" }, ...about.map(({ stage, text }) => el("li", { class: "decision" }, el("span", { class: "no" }, String(stage.index)), el("span", { class: "by" }, stage.name), el("span", { class: "text" }, text)))) : null,
      own.length > 0 && about.length > 0 ? el("h3", {}, `All of ${shown.stage.name}`) : null,
      own.length > 0 ? el("ul", { class: "of-stage" }, ...own.map((r) => el("li", {}, this.entry(r, texts)))) : null,
    );
    return own.length + about.length;
  }

  /** Every pass's decisions about the operations and the expressions of the selection; equal ones of a pass once. */
  private aboutSelection(shown: Shown, anchor: Anchor): { stage: Stage; text: string }[] {
    const { kernel } = shown.row;
    return images(anchor, kernel).flatMap(({ ops }, i) => {
      const stage = kernel.stages[i];
      if (!stage?.remarks) return [];
      const [own, ranges] = [new Set(ops), new Set(anchor.kind === "ranges" ? anchor.ranges : [])];
      const texts = stage.remarks.flatMap((r) => {
        const range = rangeOfRemark(r, kernel.map);
        return (r.op !== undefined && own.has(r.op)) || (range !== null && ranges.has(range)) ? [r.text] : [];
      });
      return [...new Set(texts)].map((text) => ({ stage, text }));
    });
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
