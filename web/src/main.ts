// main: assembles the page and decides what it shows first.
import { getExamples, getLessons, getPipelines, getTargets } from "./api/client";
import { Problem } from "./api/problem";
import { adoptEditorStyles } from "./editor/stylesheets";
import { mountBottom } from "./panes/bottom";
import { DiffPane } from "./panes/diff";
import { byId, el } from "./panes/dom";
import { mountEmbed } from "./panes/embed";
import { mountHeader } from "./panes/header";
import { mountInstances } from "./panes/instances";
import { HistoryDrawer } from "./panes/history";
import { IrPane } from "./panes/ir";
import { type KeyTargets, mountKeys } from "./panes/keys";
import { mountModes } from "./panes/modes";
import { Views } from "./panes/views";
import type { Host, WithHost } from "./panes/windows";
import { announce, mountNotices, say } from "./panes/notices";
import { mountFirstLine } from "./panes/firstline";
import { mountPartner } from "./panes/partner";
import { mountPrint } from "./panes/print";
import { mountProblems } from "./panes/problems";
import { mountSettings } from "./panes/settings";
import { Share } from "./panes/share";
import { look, lookAtSelection, mountSharedBar, openShared } from "./panes/shared";
import { SourcePane } from "./panes/source";
import { mountSplitter } from "./panes/splitter";
import { mountDevice } from "./panes/devicebutton";
import { mountRecording } from "./panes/recordbutton";
import { mountEditButton } from "./panes/editbutton";
import { mountNotesButton } from "./panes/notesbutton";
import { mountTune } from "./panes/tunebutton";
import { mountUpgrade } from "./panes/upgradebuttons";
import { mountStages } from "./panes/stages";
import { newStore, type AppStore } from "./state/app";
import { compilePin, followPin, pinOfTab, unpackPin } from "./state/pin";
import { Compiler } from "./state/compiler";
import { draftHere, keepDraft, keepDrafts, keptDraft, showDraft } from "./state/draft";
import { readFragment, readView, type LinkState } from "./state/fragment";
import { lessonInHash, type LessonLink } from "./state/lesson";
import { linksWereDamaged } from "./state/mylinks";
import { settings, settingsWereDamaged } from "./state/settings";
import { PANES, type Pane } from "./state/room";
import { idInPath } from "./state/shared";
import { keepVersions } from "./state/versions";
import { followTheme } from "./state/theme";

function openExample(store: AppStore, compiler: Compiler, name: string): void {
  const example = store.state.examples.find((e) => e.name === name);
  if (!example) return;
  if (keepDraft(store)) say("Your kernel is kept: it is the first in the list.");
  store.set({
    touched: false,
    source: example.source,
    filename: null,
    files: [],
    tab: null,
    language: example.language,
    inputs: null,
    edited: null,
    byHand: [],
    patterns: "",
    notes: [],
    recording: null,
    showInputs: false,
    kernelName: null,
    anchor: null,
    previous: null,
    shared: null,
    parent: null,
    lesson: null,
  });
  void compiler.now();
}

/** Opens the user's kept kernel; false if there is none. */
function openDraft(store: AppStore, compiler: Compiler): boolean {
  const draft = keptDraft();
  if (!draft) return false;
  showDraft(store, draft);
  store.set({ lesson: null, notes: [], recording: null });
  void compiler.now();
  return true;
}

async function openLink(store: AppStore, compiler: Compiler, link: LinkState): Promise<void> {
  const { source, filename, files, language, target, inputs, check, pipeline, byHand, patterns, simulate, parent, view } = link;
  const pinned = link.pin === null ? null : await unpackPin(link.pin);
  const { outcome, compiling, pending } = store.state;
  const shown = outcome?.status === "ok" && !compiling && !pending ? JSON.stringify(compiler.request()) : null;
  store.set({ source, filename, files, touched: false, tab: null, language, target, inputs, check, pipeline, byHand, patterns, simulate, parent, shared: null, lesson: null, anchor: null, ...(pinned ? { pinned } : {}) });
  if (pinned) void compilePin(store);
  look(store, view);
  if (JSON.stringify(compiler.request()) !== shown) await compiler.now(); // else the page has its result: only the view differs
  lookAtSelection(store, view);
}

/** The pane is loaded with the first lesson. */
async function openLesson(store: AppStore, compiler: Compiler, link: LessonLink): Promise<void> {
  if (keepDraft(store)) say("Your kernel is kept: it is the first in the list.");
  try {
    await (await import("./panes/lesson")).openLesson(store, compiler, link);
  } catch (e) {
    console.error(e);
    say("The lesson could not be loaded: is the server reachable?");
  }
}

/** A link of Compiler Explorer: a number or letter and a colon, or JSON. */
function isForeign(hash: string): boolean {
  return /^#?(\w+:|\{|%7B)/i.test(hash);
}

async function openFiles(store: AppStore, compiler: Compiler, files: File[]): Promise<void> {
  try {
    await (await import("./panes/files")).openFiles(store, compiler, files);
  } catch {
    say("The files could not be opened: is the server reachable?");
  }
}

/** The menu is loaded with the first click; from then on the button opens it by itself. */
async function openDownloads(store: AppStore, share: () => void): Promise<void> {
  try {
    (await import("./panes/dialogs")).mountDownloads(store, share, say);
  } catch {
    say("The menu could not be loaded: is the server reachable?");
  }
}

async function openHelp(): Promise<void> {
  try {
    (await import("./panes/dialogs")).openHelp();
  } catch {
    say("The list of keys could not be loaded: is the server reachable?");
  }
}

async function openPalette(targets: KeyTargets): Promise<void> {
  try {
    (await import("./panes/palette")).openPalette(targets);
  } catch {
    say("The list of actions could not be loaded: is the server reachable?");
  }
}

/** The kernel and view in the address, or null; a damaged link is reported and then ignored. */
async function linkFromAddress(): Promise<LinkState | null> {
  try {
    if (isForeign(location.hash)) {
      const { foreignAddress } = await import("./state/foreign");
      location.replace(foreignAddress(location.hash));
      return await new Promise<never>(() => {}); // the page is left
    }
    return await readFragment(location.hash);
  } catch {
    say("The link is damaged: its kernel cannot be read. Was it cut when it was copied?");
    return null;
  }
}

/** Requests the lists that the page can work without; called again after a lost connection. */
function loadLists(store: AppStore): Promise<void>[] {
  const failed = (e: unknown) => {
    if (e instanceof Problem) store.set({ problem: e });
    else throw e;
  };
  return [
    getExamples().then((examples) => store.set({ examples }), failed),
    getLessons().then((lessons) => store.set({ lessons }), failed),
    getTargets().then((targets) => store.set({ targets }), failed),
    getPipelines().then(({ pipelines, passes }) => store.set({ pipelines, passes }), failed),
  ];
}

/** For a stored link that cannot be opened: shows the reason and a link to start with. */
function tellNoLink(title: string, text: string): void {
  announce(`${title} ${text}`);
  const start = el("a", { class: "button primary", attrs: { href: "/", target: window.parent === window ? null : "_blank", rel: "noopener" } }, "Start with an example");
  document.body.append(el("main", { class: "nowhere" }, el("h2", {}, title), el("p", {}, text), start));
  byId("panes").hidden = true;
  document.body.classList.add("no-link");
}

/** A stays pinned when another link is opened in the same tab. */
async function keepPinned(store: AppStore): Promise<void> {
  const kept = await pinOfTab();
  if (kept && !store.state.pinned) {
    store.set({ pinned: kept });
    void compilePin(store);
  }
  followPin(store);
}

async function open(store: AppStore, compiler: Compiler): Promise<void> {
  const stored = idInPath(location.pathname);
  const here = stored?.embed ? null : draftHere(location.href);
  const lists = stored?.embed ? [] : loadLists(store);
  if (!stored?.embed) void keepPinned(store);
  if (stored) {
    await openShared(store, stored.id, say, tellNoLink);
    if (here && store.state.shared) {
      store.set({ ...here, touched: true });
      await compiler.now();
    }
    return;
  }
  const lesson = lessonInHash(location.hash);
  if (lesson) {
    await openLesson(store, compiler, lesson);
    if (store.state.lesson) return;
  }
  const link = await linkFromAddress();
  if (link) {
    await openLink(store, compiler, { ...link, ...here });
    if (here) store.set({ touched: true });
    return;
  }
  if (openDraft(store, compiler)) {
    if (!here) say("Your last kernel is back. The examples are in the list.");
    return;
  }
  await lists[0];
  const first = store.state.examples[0];
  if (first && store.state.source === "") openExample(store, compiler, first.name);
}

/** The page that opened this window for one of its panes; null for a page of its own. */
function host(): { pane: Pane; host: Host } | null {
  const pane = PANES.find((p) => location.search === `?window=${p}`);
  try {
    const found = (window.opener as WithHost | null)?.nkx;
    return pane && found ? { pane, host: found } : null;
  } catch {
    return null; // a page of another origin
  }
}

function main(): void {
  const page = host();
  if (page) {
    const parts = { openFiles: (files: File[]) => void openFiles(page.host.store, page.host.compiler, files), openPalette: (targets: KeyTargets) => void openPalette(targets), openHelp: () => void openHelp() };
    void import("./panes/popped").then((m) => m.mountPopped(page.pane, page.host, parts));
    return;
  }
  adoptEditorStyles();
  const store = newStore();
  const isEmbed = idInPath(location.pathname)?.embed === true;
  const compiler = new Compiler(store);
  followTheme(() => settings.state.theme);
  mountSettings();
  const source = new SourcePane(store, compiler, (files) => void openFiles(store, compiler, files));
  const ir = new IrPane(store, say);
  const openStage = () => {
    store.set({ pane: "ir" });
    // in a narrow window the pane appears with the next rendering
    requestAnimationFrame(() => ir.text.viewer.view.focus());
  };
  const diff = new DiffPane(store, () => void compiler.now());
  const views = new Views(store, compiler, ir, () => source.editor.view, say, () => shareNow(), isEmbed ? "embed" : "page");
  const pin = mountModes(store, say);
  const stages = mountStages(store, openStage);
  const share = new Share(store, compiler, say, announce);
  const shareNow = () => void share.copy();
  mountInstances(store, compiler);
  mountHeader(store, compiler, { openExample: (name) => openExample(store, compiler, name), openDraft: () => openDraft(store, compiler), openLesson: (name) => void openLesson(store, compiler, { name, packed: null, step: null }), share: () => void share.openDialog(), help: () => void openHelp(), downloads: () => void openDownloads(store, () => void share.openDialog()) });
  mountUpgrade(store, source);
  mountTune(store, source);
  if (!isEmbed) mountEditButton(store, compiler);
  mountDevice(store, (range) => source.goTo(range));
  mountProblems(store, source);
  const drawer = new HistoryDrawer(store, source);
  mountBottom(store);
  mountPrint(store);
  mountPartner(store);
  if (!isEmbed) mountFirstLine(store);
  mountNotices(store, compiler, () => void loadLists(store));
  mountSharedBar(store, compiler, say);
  const targets: KeyTargets = { store, compiler, source, drawer, stages, ir, diff, views, pin, search: () => void views.openSearch(), share: isEmbed ? () => undefined : shareNow, help: () => void openHelp(), palette: () => void (isEmbed || openPalette(targets)) };
  if (!isEmbed) {
    mountNotesButton(targets);
    mountRecording(store, compiler, () => void share.openDialog());
    mountKeys(targets);
  }
  mountSplitter(store, { id: "split-source", property: "--source", pane: "source-pane", label: "Width of the source", initial: 0.32, min: 0.15, max: 0.6 });
  mountSplitter(store, { id: "split-stages", property: "--stages", pane: "stages-pane", label: "Width of the stage list", initial: 0.2, min: 0.1, max: 0.4 });

  if (!isEmbed) {
    keepDrafts(store);
    keepVersions(store);
  }
  if (isEmbed) {
    mountEmbed(store, () => mountKeys(targets));
    source.editor.freeze();
  }
  if (settingsWereDamaged || linksWereDamaged)
    say(`${settingsWereDamaged ? "Your settings" : "The list of your links"} could not be read and ${settingsWereDamaged ? "are" : "is"} left out.`);
  void open(store, compiler).then(() => (isEmbed ? undefined : share.follow()));
  window.addEventListener("hashchange", () => {
    if (!share.takeAddress()) return;
    const lesson = lessonInHash(location.hash);
    if (lesson) {
      void openLesson(store, compiler, lesson);
      return;
    }
    void linkFromAddress().then((link) => {
      if (link) return openLink(store, compiler, link);
      const view = store.state.shared ? readView(location.hash) : null;
      if (!view) return undefined;
      look(store, { ...view, notes: store.state.notes, recording: store.state.recording });
      lookAtSelection(store, view);
      return undefined;
    });
  });
  byId("panes").dataset["ready"] = "";
}

main();
