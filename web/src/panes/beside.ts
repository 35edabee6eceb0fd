// beside: a second stage beside the shown one.  Both follow the selection.
//
// It is loaded when it is first used, and is given what the page has already: a module that both import would be split off
// into a file of its own.
import type { AppStore } from "../state/app";
import { lightOfAnchor } from "../state/selection";
import { allRows, besideStage, lightIn, ROW_KEYS } from "../state/view";
import css from "../style/beside.late.css";
import { adoptStyle } from "../style/late";
import { byId, el, fill } from "./dom";
import { icon } from "./icons";
import type { SplitSpec } from "./splitter";
import type { StageOf, StageText } from "./stagetext";

adoptStyle(css);

/** Pixels; in a narrower pane one stage is above the other. */
const COLUMNS_MIN = 640;

export class BesidePane {
  readonly text: StageText;
  private readonly pick = el("select", { attrs: { "aria-label": "Stage beside" } });

  constructor(
    private readonly store: AppStore,
    page: { stageText(host: HTMLElement, of: StageOf): StageText; splitter(spec: SplitSpec): void },
  ) {
    const pane = byId("ir-pane");
    const bar = el("div", { class: "splitter", id: "split-beside" });
    const host = el("div", { class: "editor" });
    const close = () => store.set({ beside: null });
    const closeButton = el("button", { class: "quiet tool", title: "Close (Esc)", attrs: { type: "button", "aria-label": "Close the stage beside" }, on: { click: close } }, icon("close"));
    const box = el("section", { id: "beside", attrs: { "aria-label": "Stage beside" } }, el("div", { class: "beside-head" }, this.pick, el("span", { class: "spring" }), closeButton), host);
    byId("ir-viewer").after(bar, box);
    page.splitter({ id: bar.id, property: "--beside", container: "ir-pane", pane: "ir-viewer", label: "Width of the first of two stages", initial: 0.5, min: 0.2, max: 0.8 });
    this.pick.addEventListener("change", () => store.set({ beside: this.pick.value }));
    this.text = page.stageText(host, {
      shown: besideStage,
      selected: (s, shown) => lightIn(s, shown, null),
      hover: ({ hover }, { row, stage }) => hover && lightOfAnchor(hover.anchor, row.kernel, row.kernel.stages.indexOf(stage)),
      marked: () => null,
    });
    store.watch(["beside"], () => {
      const hadFocus = box.contains(document.activeElement);
      pane.classList.toggle("paired", store.state.beside !== null);
      box.hidden = bar.hidden = store.state.beside === null;
      if (hadFocus && box.hidden) byId("ir-viewer").querySelector<HTMLElement>(".cm-content")?.focus();
    });
    store.watch([...ROW_KEYS, "beside"], () => this.drawPick());
    new ResizeObserver(() => pane.classList.toggle("stacked", pane.clientWidth < COLUMNS_MIN)).observe(pane);
  }

  private drawPick(): void {
    const rows = allRows(this.store.state).filter((r) => r.stage);
    fill(this.pick, ...rows.map((r) => el("option", { attrs: { value: r.key } }, `${r.index} ${r.name}`)));
    this.pick.value = besideStage(this.store.state)?.row.key ?? "";
  }

  /** The next or previous stage. */
  step(by: 1 | -1): void {
    const rows = allRows(this.store.state).filter((r) => r.stage);
    const at = rows.findIndex((r) => r.key === besideStage(this.store.state)?.row.key);
    const row = rows[at + by];
    if (row) this.store.set({ beside: row.key });
  }
}
