// views: the views of the run and of the comparison, and the search, which are loaded when they are first opened.
import type { EditorView } from "@codemirror/view";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import type { ComparePane } from "./compare";
import { byId, button } from "./dom";
import type { IrPane } from "./ir";
import type { SearchPane } from "./search";

export class Views {
  /** Null until it is loaded. */
  compare: ComparePane | null = null;
  private search: SearchPane | null = null;
  private isCompareAsked = false;
  private isRunAsked = false;

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
    private readonly ir: IrPane,
    private readonly source: () => EditorView,
    private readonly say: (text: string) => void,
  ) {
    byId("stages-tools").append(button("search", "Search all stages (Ctrl+Shift+F)", () => void this.openSearch()));
    store.watch(["mode"], () => {
      const { mode } = store.state;
      document.body.dataset["mode"] = mode;
      byId("compare-pane").hidden = mode !== "compare";
      byId("run-pane").hidden = mode !== "run";
      if (mode === "compare" && !this.isCompareAsked) void this.loadCompare();
      if (mode === "run" && !this.isRunAsked) void this.loadRun();
    });
  }

  async openSearch(): Promise<void> {
    try {
      const { SearchPane: Pane } = await import("./search");
      this.search ??= new Pane(this.store, this.ir);
      this.search.open();
    } catch {
      this.fail();
    }
  }

  private async loadCompare(): Promise<void> {
    this.isCompareAsked = true;
    try {
      const { ComparePane: Pane } = await import("./compare");
      this.compare = new Pane(this.store, this.compiler, this.say);
    } catch {
      this.isCompareAsked = false;
      this.fail();
    }
  }

  private async loadRun(): Promise<void> {
    this.isRunAsked = true;
    try {
      const { RunPane } = await import("./run");
      new RunPane(this.store, this.source);
    } catch {
      this.isRunAsked = false;
      this.fail();
    }
  }

  private fail(): void {
    this.store.set({ mode: "read" });
    this.say("The view could not be loaded: is the server reachable?");
  }
}
