// sidepane: a row around the panes, with room for a pane on either side that is loaded later.
import { byId, el } from "./dom";

export function putBeside(pane: HTMLElement, side: "left" | "right"): void {
  const panes = byId("panes");
  let row = panes.parentElement;
  if (row?.id !== "panes-row") {
    row = el("div", { id: "panes-row" });
    panes.replaceWith(row);
    row.append(panes);
  }
  if (side === "left") row.prepend(pane);
  else row.append(pane);
}
