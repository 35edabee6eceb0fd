// main: puts the page together and decides what it opens on.
import { getExamples, getPipeline, getTargets } from "./api/client";
import { Problem } from "./api/problem";
import { adoptEditorStyles } from "./editor/stylesheets";
import { mountBottom } from "./panes/bottom";
import { byId } from "./panes/dom";
import { mountHeader } from "./panes/header";
import { mountHelp, openHelp } from "./panes/help";
import { mountHistory } from "./panes/history";
import { mountInputs } from "./panes/inputs";
import { IrPane } from "./panes/ir";
import { mountKeys } from "./panes/keys";
import { mountNotices, say } from "./panes/notices";
import { mountProblems } from "./panes/problems";
import { mountSettings } from "./panes/settings";
import { Share } from "./panes/share";
import { SourcePane } from "./panes/source";
import { mountSplitter } from "./panes/splitter";
import { mountStages } from "./panes/stages";
import { newStore, type AppStore } from "./state/app";
import { Compiler } from "./state/compiler";
import { foreignAddress } from "./state/foreign";
import { readFragment, type LinkState } from "./state/fragment";
import { choose, selectionFromText } from "./state/view";

function openExample(store: AppStore, compiler: Compiler, name: string): void {
  const example = store.state.examples.find((e) => e.name === name);
  if (!example) return;
  store.set({
    source: example.source,
    language: example.language,
    inputs: null,
    showInputs: false,
    kernelName: null,
    anchor: null,
    previous: null,
  });
  void compiler.now();
}

async function openLink(store: AppStore, compiler: Compiler, link: LinkState): Promise<void> {
  const { source, language, target, kernelName, stageKey, inputs, check, filter, hideUnchanged } = link;
  store.set({ source, language, target, kernelName, stageKey, inputs, check, filter, hideUnchanged, anchor: null });
  await compiler.now();
  const anchor = link.selection === null ? null : selectionFromText(store.state, link.selection);
  if (anchor) choose(store, anchor);
}

/** What the address asks for, or null; a damaged link is said and treated as none. */
async function linkFromAddress(): Promise<LinkState | null> {
  try {
    const elsewhere = foreignAddress(location.hash);
    if (elsewhere !== null) {
      location.replace(elsewhere);
      return await new Promise<never>(() => {}); // the page is left
    }
    return await readFragment(location.hash);
  } catch {
    say("The link is damaged: its kernel cannot be read. Was it cut when it was copied?");
    return null;
  }
}

/** Lists the page can do without are asked for, and asked for again after a lost connection. */
function loadLists(store: AppStore): Promise<void>[] {
  const failed = (e: unknown) => {
    if (e instanceof Problem) store.set({ problem: e });
    else throw e;
  };
  return [
    getExamples().then((examples) => store.set({ examples }), failed),
    getTargets().then((targets) => store.set({ targets }), failed),
    getPipeline().then((pipeline) => store.set({ pipeline }), failed),
  ];
}

async function open(store: AppStore, compiler: Compiler): Promise<void> {
  const [examples] = loadLists(store);
  const link = await linkFromAddress();
  if (link) {
    await openLink(store, compiler, link);
    return;
  }
  await examples;
  const first = store.state.examples[0];
  if (first && store.state.source === "") openExample(store, compiler, first.name);
}

function main(): void {
  adoptEditorStyles();
  const store = newStore();
  const compiler = new Compiler(store);
  mountSettings();
  const source = new SourcePane(store, compiler);
  const ir = new IrPane(store, say);
  const openStage = () => {
    store.set({ pane: "ir" });
    // on a narrow window the pane appears with the next rendering
    requestAnimationFrame(() => ir.viewer.view.focus());
  };
  const stages = mountStages(store, compiler, openStage);
  const share = new Share(store, say);
  const shareNow = () => void share.copy();
  mountHeader(store, compiler, { openExample: (name) => openExample(store, compiler, name), share: shareNow, help: openHelp });
  mountInputs(store, compiler);
  mountProblems(store, source.editor);
  mountHistory(store);
  mountBottom(store);
  mountHelp();
  mountNotices(store, compiler, () => void loadLists(store));
  mountKeys({ store, compiler, source, stages, ir, share: shareNow, help: openHelp });
  mountSplitter({ id: "split-source", property: "--source", pane: "source-pane", label: "Width of the source", initial: 0.32, min: 0.15, max: 0.6 });
  mountSplitter({ id: "split-stages", property: "--stages", pane: "stages-pane", label: "Width of the stage list", initial: 0.2, min: 0.1, max: 0.4 });

  void open(store, compiler).then(() => share.follow());
  window.addEventListener("hashchange", () => {
    if (location.hash === share.written) return;
    void linkFromAddress().then((link) => (link ? openLink(store, compiler, link) : undefined));
  });
  byId("panes").dataset["ready"] = "";
}

main();
