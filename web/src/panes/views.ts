// views: parts of the page that are loaded when they are first used: the views of the run and of the comparison, the search,
// the form for inputs, the second stage, the picture of a stage, the arrangement of the panes, and the presentation.
import type { EditorView } from "@codemirror/view";
import type { AppState, AppStore, Inspect } from "../state/app";
import type { Compiler } from "../state/compiler";
import type { Arrangement } from "../state/layouts";
import { settings } from "../state/settings";
import { allRows, currentRow } from "../state/view";
import type { BesidePane } from "./beside";
import type { ComparePane } from "./compare";
import { byId, button, el } from "./dom";
import { icon, type IconName } from "./icons";
import type { IrPane } from "./ir";
import type { PicturePane } from "./picture";
import type { Presentation } from "./present";
import type { Room } from "./room";
import type { SearchPane } from "./search";
import { mountSplitter } from "./splitter";
import { StageText } from "./stagetext";
import type { Windows } from "./windows";

type Pane = AppState["pane"];

/** What each pane is called in the titles of its buttons. */
const PANES: [Pane, string, string][] = [
  ["source", "source", "1"],
  ["stages", "stage list", "2"],
  ["ir", "stage's text", "3"],
];

export class Views {
  /** Null until it is loaded. */
  compare: ComparePane | null = null;
  room: Room | null = null;
  beside: BesidePane | null = null;
  picture: PicturePane | null = null;
  presentation: Presentation | null = null;
  private windows: Windows | null = null;
  private search: SearchPane | null = null;
  private readonly asked = new Set<string>();
  /** The picture takes the focus once it is there. */
  private wantsFocus = false;

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
    private readonly ir: IrPane,
    source: () => EditorView,
    private readonly say: (text: string) => void,
    /** Copies a link. */
    private readonly share: () => void,
    /** The page, its embedded form, or a window with one of its panes. */
    private readonly kind: "page" | "embed" | "window",
  ) {
    byId("stages-tools").append(button("search", "Search all stages (Ctrl+Shift+F)", () => void this.openSearch()));
    if (kind === "page") this.roomButtons();
    else if (kind === "window") this.besideButton();
    if (kind === "window") document.body.dataset["mode"] = "read";
    else store.watch(["mode"], () => {
      const { mode } = store.state;
      document.body.dataset["mode"] = mode;
      byId("compare-pane").hidden = mode !== "compare";
      byId("run-pane").hidden = mode !== "run";
      if (mode === "compare") this.once(mode, async () => (this.compare = new (await import("./compare")).ComparePane(store, compiler, say)));
      if (mode === "run") this.once(mode, async () => new (await import("./run")).RunPane(store, source));
    });
    store.watch(["inspect"], () => {
      if (store.state.inspect === null) return;
      const text = () => (this.beside?.text.viewer.view.hasFocus ? this.beside.text : ir.text);
      this.once("inspect", async () => new (await import("./inspect")).InspectPane(store, text));
    });
    if (kind !== "embed") this.pictureButton();
    store.watch(["showInputs", "outcome"], () => {
      if (store.state.showInputs || store.state.outcome?.diagnostics.some((d) => d.code === "no-shapes"))
        this.once("inputs", async () => new (await import("./inputs")).InputForm(store, compiler));
    });
  }

  /** Looks into what is at the caret of a stage's text, or else into the selection; closes the drawer if it shows that. */
  inspect(look: Inspect, text: StageText): void {
    if (this.kind === "embed") return;
    const { store } = this;
    const { line, name } = text.lookedAt() ?? {};
    const { anchor } = store.state;
    if (text.viewer.view.hasFocus) text.chooseCaret();
    const now = text.lookedAt();
    text.viewer.closeTips(); // they would cover the drawer
    const isSame = store.state.inspect === look && (store.state.anchor === anchor || (now?.line === line && now?.name === name));
    store.set({ mode: "read", pane: "ir", picture: false, inspect: isSame ? null : look });
    this.room?.show("ir");
  }

  async openSearch(): Promise<void> {
    this.room?.show("stages");
    try {
      const { SearchPane } = await import("./search");
      this.search ??= new SearchPane(this.store, this.ir);
      this.search.open();
    } catch {
      this.fail();
    }
  }

  /** Changes the arrangement of the panes. */
  arrange(change: (room: Room) => void): void {
    if (this.kind === "page") void this.loadRoom().then(change, () => this.fail());
  }

  /** Begins the presentation, or ends it. */
  async present(): Promise<void> {
    if (this.kind !== "page") return;
    try {
      const { Presentation } = await import("./present");
      this.room?.show("ir");
      (this.presentation ??= new Presentation(this.store, this.say)).toggle();
    } catch {
      this.fail();
    }
  }

  private async loadRoom(): Promise<Room> {
    const { Room } = await import("./room");
    return (this.room ??= new Room(this.store));
  }

  /** Shows the picture of the stage, and goes into it, or closes it. */
  togglePicture(): void {
    if (this.kind === "embed") return;
    const picture = !this.store.state.picture;
    this.wantsFocus = picture;
    this.store.set({ picture, ...(picture ? { beside: null, diffFrom: null, inspect: null, pane: "ir" } : {}) });
    if (picture) this.room?.show("ir");
  }

  private pictureButton(): void {
    const { store } = this;
    const title = "The stage as a picture: HLO as a graph, loops as nested boxes (f)";
    const picture = el("button", { class: "quiet tool toggle", title, attrs: { type: "button", "aria-label": "Picture of the stage" }, on: { click: () => this.togglePicture() } }, icon("graph"), el("span", {}, "picture"));
    byId("ir-tools").prepend(picture);
    // it is shown by its own watcher, after this one
    const focus = () =>
      requestAnimationFrame(() => {
        if (!this.picture) return;
        if (this.wantsFocus) this.picture.focus();
        this.wantsFocus = false;
      });
    store.watch(["picture"], () => {
      picture.setAttribute("aria-pressed", String(store.state.picture));
      if (!store.state.picture) return;
      if (store.state.beside !== null) store.set({ beside: null });
      focus();
      this.once("picture", async () => {
        const { PicturePane } = await import("./picture");
        this.picture = new PicturePane(store, this.say, () => this.ir.text.viewer.find(), (spec) => mountSplitter(store, spec));
        focus();
      });
    });
  }

  /** Opens a pane in a window of its own: that with the focus, if none is given. */
  pop(pane: Pane | null): void {
    if (this.kind !== "page") return;
    const own = document.activeElement?.closest(".pane")?.id.replace("-pane", "");
    const wanted = pane ?? PANES.find(([p]) => p === own)?.[0] ?? "ir";
    void this.loadRoom()
      .then(async (room) => {
        const { Windows } = await import("./windows");
        this.windows ??= new Windows({ store: this.store, compiler: this.compiler, share: this.share }, room, this.say);
        this.windows.pop(wanted);
      })
      .catch(() => this.fail());
  }

  /** How the panes are arranged now. */
  arrangement(): Arrangement {
    const { beside, picture, splits } = this.store.state;
    return { hidden: [], maximised: null, ...this.room?.arrangement, splits: { ...(splits ?? settings.state.splits) }, beside: beside !== null, picture };
  }

  /** Arranges the panes as they were saved. */
  useLayout({ hidden, maximised, splits, beside, picture }: Arrangement): void {
    const { store } = this;
    settings.set({ splits });
    store.set({ splits: null, mode: "read", picture, beside: beside ? (store.state.beside ?? this.besideKey()) : null });
    this.arrange((room) => (room.arrangement = { hidden, maximised }));
  }

  /** Opens the dialog of the layouts. */
  async openLayouts(): Promise<void> {
    try {
      (await import("./layouts")).openLayouts(this, this.say);
    } catch {
      this.fail();
    }
  }

  private besideButton(): HTMLElement {
    const { store } = this;
    const beside = el("button", { class: "quiet", title: "A second stage beside this one (Alt+click in the list, Shift+Enter)", attrs: { type: "button", "aria-label": "A second stage beside this one" }, on: { click: () => store.set({ beside: this.besideKey() }) } }, icon("beside"));
    store.watch(["beside"], () => {
      if (store.state.beside !== null && store.state.picture) store.set({ picture: false });
      beside.setAttribute("aria-pressed", String(store.state.beside !== null));
      if (store.state.beside !== null) this.once("beside", async () => (this.beside = new (await import("./beside")).BesidePane(store, { stageText: (host, of) => new StageText(store, host, of), splitter: (spec) => mountSplitter(store, spec) })));
    });
    return beside;
  }

  private valuesButton(): void {
    const { store } = this;
    const title = "What the selected line computes or writes (v)";
    const look = el("button", { class: "quiet look", title, attrs: { type: "button", "aria-label": title }, on: { click: () => this.inspect("values", this.ir.text) } }, icon("values"));
    store.watch(["inspect"], () => look.setAttribute("aria-pressed", String(store.state.inspect !== null)));
    store.watch(["step"], () => store.state.step !== null && this.once("steps", async () => void new (await import("./steps")).StepsPane(store)));
    const steps = el("button", { class: "quiet look steps-open", title: "The rewrites inside this stage, one by one", attrs: { type: "button", "aria-label": "Steps of the stage", "aria-pressed": "false" }, on: { click: () => store.set({ step: store.state.step === null ? 0 : null }) } }, icon("steps"));
    store.watch(["step"], () => steps.setAttribute("aria-pressed", String(store.state.step !== null)));
    byId("ir-tools").append(steps, look);
  }

  private roomButtons(): void {
    const tool = (name: IconName, title: string, run: () => void) => el("button", { class: "quiet", title, attrs: { type: "button", "aria-label": title, "data-room": name }, on: { click: run } }, icon(name));
    const arrange = (change: (room: Room) => void) => () => this.arrange(change);
    this.valuesButton();
    const beside = this.besideButton();
    for (const [pane, name, key] of PANES)
      byId(`${pane}-pane`).firstElementChild?.append(
        el("span", { class: "room" }, pane === "ir" && beside, tool("open", `Open the ${name} in a window of its own`, () => this.pop(pane)), tool("maximise", `Maximise the ${name} (m)`, arrange((r) => r.maximise(pane))), tool("hide", `Hide the ${name} (${key})`, arrange((r) => r.toggle(pane)))),
      );
    byId("settings").append(button("Layouts…", "Save the arrangement of the panes under a name, or choose one", () => {
      byId("settings").hidePopover();
      void this.openLayouts();
    }, "plain"));
    byId("settings").append(button("Present", "Only the source and the stage, in large type; PageDown and PageUp step (Shift+P)", () => void this.present(), "plain"));
    // panes that the user hid stay hidden
    try {
      if (localStorage.getItem("nkx.room")) this.arrange(() => undefined);
    } catch {
      // no storage: every pane is shown
    }
  }

  /** The stage that the button opens: the last, or the first beside the last; null closes. */
  private besideKey(): string | null {
    const { state } = this.store;
    if (state.beside !== null) return null;
    const rows = allRows(state).filter((r) => r.stage);
    const last = rows.at(-1);
    return (currentRow(state) === last ? rows[0] : last)?.key ?? null;
  }

  private once(name: string, load: () => Promise<unknown>): void {
    if (this.asked.has(name)) return;
    this.asked.add(name);
    load().catch(() => {
      this.asked.delete(name);
      this.fail();
    });
  }

  private fail(): void {
    this.store.set({ mode: "read" });
    this.say("This part of the page could not be loaded: is the server reachable?");
  }
}
