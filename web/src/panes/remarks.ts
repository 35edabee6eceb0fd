// remarks: the list of the shown stage's remarks, opened from the pane's header.
import type { Remark, Stage } from "../api/types";
import { placeText, snippet } from "../editor/positions";
import type { AppStore } from "../state/app";
import { rangeOfRemark } from "../state/remarks";
import { lightOfOps, lightOfRanges, type Anchor, type Light } from "../state/selection";
import { choose, textsOfKernel, type Shown } from "../state/view";
import { docOf } from "./places";
import { byId, el, fill, plural, toggle } from "./dom";

/** For tooltips: the remarks of each stage's pass. */
export function remarkTip(list: readonly { stage: Stage; texts: readonly string[] }[]): HTMLElement {
  const rows = list.flatMap(({ stage, texts }) => [
    el("dt", {}, el("span", { class: "no" }, String(stage.index)), stage.name),
    ...texts.map((t) => el("dd", {}, t)),
  ]);
  return el("dl", { class: "remark-tip" }, ...rows);
}

export class RemarkList {
  private readonly box = byId("ir-remarks");
  private readonly button: HTMLButtonElement;
  private open = false;
  private shown: Shown | null = null;

  constructor(private readonly store: AppStore) {
    this.button = toggle("", "What this pass decided", () => {
      this.open = !this.open;
      this.draw();
    });
    this.button.id = "ir-remarks-open";
    this.button.setAttribute("aria-controls", this.box.id);
    byId("ir-tools").prepend(this.button);
  }

  show(shown: Shown | null): void {
    if (this.shown?.stage === shown?.stage && this.shown?.row === shown?.row) return;
    this.shown = shown;
    this.draw();
  }

  private get remarks(): readonly Remark[] {
    // for a failed stage the previous stage's text is shown, whose remarks are those of another pass
    return this.shown?.row.stage?.remarks ?? [];
  }

  private draw(): void {
    const n = this.remarks.length;
    this.button.hidden = n === 0;
    this.button.textContent = plural(n, "remark");
    this.button.setAttribute("aria-pressed", String(this.open));
    this.box.hidden = n === 0 || !this.open;
    if (!this.box.hidden && this.shown) {
      const texts = textsOfKernel(this.store.state, this.shown.row.kernel);
      fill(this.box, el("ul", {}, ...this.remarks.map((r) => el("li", {}, this.entry(r, texts)))));
    }
  }

  private entry(remark: Remark, texts: ReadonlyMap<string, string> | null): HTMLElement {
    const { map } = (this.shown as Shown).row.kernel;
    const n = rangeOfRemark(remark, map);
    const range = n === null ? undefined : map.ranges[n];
    const where = range && texts ? [el("span", { class: "at" }, placeText(map, range)), el("code", {}, snippet(docOf(texts, range), range))] : [];
    const text = el("span", { class: "text" }, remark.text);
    const anchor = this.anchorOf(remark, n);
    if (!anchor) return el("span", { class: "remark" }, text, ...where);
    const light = this.lightOf(anchor);
    const point = (on: boolean) => this.store.set({ hover: on ? { origin: "ir", light } : null });
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
