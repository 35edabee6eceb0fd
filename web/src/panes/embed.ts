// embed: the page inside another site's frame: a stored link to read and step through, nothing else.
//
// Until a click it is a picture: it takes no key, no wheel and no focus from the page around it.
import type { AppStore } from "../state/app";
import { writeView } from "../state/fragment";
import { viewOf } from "../state/look";
import { pathOf } from "../state/shared";
import { allRows, currentRow, ROW_KEYS, showStage, stepStage } from "../state/view";
import { byId, el, fill } from "./dom";
import { icon } from "./icons";

const HEIGHT_MIN = 220;
const LINE = 20;

/** Tells the page around the frame the height that it needs; that page may ignore it. */
function sayHeight(store: AppStore): void {
  const lines = store.state.source.split("\n").length;
  const height = Math.max(HEIGHT_MIN, byId("embed-bar").offsetHeight + 60 + lines * LINE);
  if (window.parent !== window) window.parent.postMessage({ type: "nkx-height", height }, "*");
}

/** Covers the panes until a click on the cover or a control of the bar; then calls `start` and leaves for good. */
function coverPanes(bar: HTMLElement, start: () => void): void {
  const panes = byId("panes");
  const covered = [...panes.children] as HTMLElement[];
  const cover = el("button", { class: "embed-cover", attrs: { type: "button" } }, el("span", {}, "Click to explore"));
  const activate = () => {
    if (!cover.isConnected) return;
    cover.remove();
    for (const pane of covered) pane.inert = false;
    start();
  };
  for (const pane of covered) pane.inert = true;
  panes.append(cover);
  cover.addEventListener("click", activate);
  bar.addEventListener("click", activate);
}

/** start: called once the user has begun to use it. */
export function mountEmbed(store: AppStore, start: () => void): void {
  const bar = byId("embed-bar");
  coverPanes(bar, start);
  document.documentElement.dataset["form"] = "embed";
  bar.hidden = false;
  const title = el("h1", { class: "shared-title" });
  const target = el("span", { class: "note" });
  const pick = el("select", { attrs: { "aria-label": "Stage" } });
  pick.addEventListener("change", () => {
    const row = allRows(store.state).find((r) => r.key === pick.value);
    if (row) showStage(store, row);
  });
  const step = (name: "up" | "down", label: string, by: 1 | -1) =>
    el("button", { class: "quiet tool", title: label, attrs: { type: "button", "aria-label": label }, on: { click: () => stepStage(store, by) } }, icon(name));
  const open = el("a", { class: "embed-open", title: "Open in a tab of its own", attrs: { "aria-label": "Open in nkx", target: "_blank", rel: "noopener" } }, el("span", {}, "Open in nkx"), icon("open"));
  const tools = el("span", { class: "embed-stage" }, step("up", "Previous stage (k)", -1), pick, step("down", "Next stage (j)", 1));
  fill(bar, title, target, el("span", { class: "spring" }), tools, open);
  store.watch([...ROW_KEYS, "stageKey", "shared"], () => {
    const { shared } = store.state;
    title.textContent = shared ? shared.title || "Kernel" : "";
    target.textContent = shared?.target ?? "";
    tools.hidden = open.hidden = shared === null;
    const rows = allRows(store.state);
    const chosen = currentRow(store.state)?.key ?? "";
    fill(pick, ...rows.map((r) => el("option", { attrs: { value: r.key } }, `${r.index} ${r.name}`)));
    pick.value = chosen;
    if (shared) open.href = `${pathOf(shared)}${writeView(viewOf(store.state, {}))}`;
  });
  store.watch(["source"], () => sayHeight(store));
}
