// popped: a window with one pane of the page that opened it.
import { adoptEditorStyles } from "../editor/stylesheets";
import type { Pane } from "../state/room";
import { settings } from "../state/settings";
import { followTheme } from "../state/theme";
import css from "../style/popped.late.css";
import { adoptStyle } from "../style/late";
import { DiffPane } from "./diff";
import { byId } from "./dom";
import { HistoryDrawer } from "./history";
import { IrPane } from "./ir";
import { type KeyTargets, mountKeys } from "./keys";
import { say } from "./notices";
import { mountProblems } from "./problems";
import { mountSettings } from "./settings";
import { SourcePane } from "./source";
import { mountStages } from "./stages";
import { Views } from "./views";
import type { Host } from "./windows";

const TITLES: Record<Pane, string> = { source: "Source", stages: "Stages", ir: "Stage's text" };

/** What of the page's parts the window uses. */
export interface PageParts {
  openFiles(files: File[]): void;
  openPalette(targets: KeyTargets): void;
  openHelp(): void;
}

export function mountPopped(pane: Pane, host: Host, parts: PageParts): void {
  adoptStyle(css);
  adoptEditorStyles();
  document.title = `${TITLES[pane]} · nkx`;
  document.body.dataset["window"] = document.body.dataset["pane"] = pane;
  const { store, end } = host.store.branch();
  const { compiler } = host;
  followTheme(() => settings.state.theme);
  mountSettings();
  const source = new SourcePane(store, compiler, parts.openFiles);
  const ir = new IrPane(store, say);
  const diff = new DiffPane(store, () => void compiler.now());
  const views = new Views(store, compiler, ir, () => source.editor.view, say, () => host.share(), "window");
  const stages = mountStages(store, () => store.set({ pane: "ir", reveal: store.state.reveal + 1 }));
  mountProblems(store, source);
  const drawer = new HistoryDrawer(store, source);
  const targets: KeyTargets = { store, compiler, source, drawer, stages, ir, diff, views, pin: () => undefined, search: () => void views.openSearch(), share: () => host.share(), help: parts.openHelp, palette: () => parts.openPalette(targets) };
  mountKeys(targets);
  host.shows(pane, window);
  window.addEventListener("pagehide", () => {
    end();
    host.shows(pane, null);
  });
  byId("panes").dataset["ready"] = "";
}
