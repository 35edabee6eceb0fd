// partner: on a phone, where one pane is shown at a time: the best partner of the selection in the shown stage, below the
// source; a tap opens it.
import { rowsOfStage } from "../editor/rows";
import type { AppStore } from "../state/app";
import { settings } from "../state/settings";
import { selectedLight, shownStage, STAGE_KEYS } from "../state/view";
import { byId, el, fill } from "./dom";

export function mountPartner(store: AppStore): void {
  const box = byId("partner");
  box.addEventListener("click", () => store.set({ pane: "ir", reveal: store.state.reveal + 1 }));
  store.watch([...STAGE_KEYS, "anchor", "partner", "pane"], () => {
    const shown = shownStage(store.state);
    const best = selectedLight(store.state)?.best ?? null;
    box.hidden = best === null || store.state.pane !== "source" || !shown;
    if (best === null || !shown) return;
    const line = shown.row.kernel.map.linksOf(shown.stage).opLines.get(best)?.[0] ?? 0;
    const { fullText, attributes } = settings.state;
    const rows = rowsOfStage(shown.stage, { full: fullText, attributes }, new Set());
    fill(box, el("span", { class: "no" }, `${shown.stage.name} ${line} →`), el("code", {}, (rows.texts[rows.rowOf(line) - 1] ?? "").trim()));
  });
}
