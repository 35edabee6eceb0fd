// tabs: the kernel's files above the editor.  A kernel of one file has no tabs, only the button that adds a second.
import { icon } from "./icons";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { FILES_MAX, freeName, importable, mainName, nameFault, nameOfTab, removed, renamed, type Tab } from "../state/files";
import { kernelOf } from "../state/outcome";
import { selectedLight } from "../state/view";
import { byId, el, fill, plural } from "./dom";
import { say } from "./notices";

/** Time in which a second press removes a file. */
const SURE_MS = 4000;

export class Tabs {
  private readonly row = byId("tabs");
  private readonly list = el("div", { class: "tab-list", attrs: { role: "tablist", "aria-label": "Files" } });
  /** The field for a new name: beside the tabs, because a tab list holds nothing but tabs. */
  private readonly field = el("span", { class: "naming" });
  private readonly tools = el("span", { class: "tools" });
  /** The tab whose name is being typed. */
  private naming: Tab | undefined;
  /** The file that a second press removes, and the timer that forgets it. */
  private doomed: Tab = null;
  private timer = 0;

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
    private readonly focusEditor: () => void,
  ) {
    this.row.append(this.list, this.field, this.tools);
    this.list.addEventListener("keydown", (e) => this.key(e));
    store.watch(["files", "filename", "language", "tab", "outcome", "anchor", "hover", "stageKey"], () => this.draw());
  }

  /** Adds an empty file, shows it, and asks for its name. */
  add(): void {
    const { state } = this.store;
    if (state.files.length >= FILES_MAX) {
      say(`A kernel has at most ${FILES_MAX} other files.`);
      return;
    }
    const name = freeName(state);
    this.naming = name;
    this.store.set({ files: [...state.files, { name, source: "" }], tab: name });
    this.compiler.soon();
  }

  private get tabs(): Tab[] {
    return [null, ...importable(this.store.state).map((f) => f.name)];
  }

  private rename(tab: Tab): void {
    if (document.documentElement.dataset["form"] === "embed") return;
    this.naming = tab;
    this.draw();
  }

  private named(tab: Tab, name: string): void {
    const { state } = this.store;
    const isSame = name === nameOfTab(state, tab);
    const fault = isSame ? null : nameFault(state, tab, name);
    this.naming = undefined;
    if (fault) say(fault);
    if (fault || isSame) {
      this.draw();
      return;
    }
    this.store.set(renamed(state, tab, name));
    this.compiler.soon();
  }

  private remove(): void {
    const { state } = this.store;
    const { tab } = state;
    if (tab === null) return;
    const isEmpty = state.files.find((f) => f.name === tab)?.source.trim() === "";
    window.clearTimeout(this.timer);
    if (!isEmpty && this.doomed !== tab) {
      this.doomed = tab;
      this.timer = window.setTimeout(() => {
        this.doomed = null;
        this.draw();
      }, SURE_MS);
      this.draw();
      return;
    }
    this.doomed = null;
    this.store.set(removed(state, tab));
    this.compiler.soon();
    this.focusTab();
  }

  private key(e: KeyboardEvent): void {
    const { tabs } = this;
    const at = tabs.indexOf(this.store.state.tab);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[e.key];
    if (to !== undefined) {
      this.store.set({ tab: tabs[(to + tabs.length) % tabs.length] ?? null });
      this.focusTab();
    } else if (e.key === "F2") this.rename(this.store.state.tab);
    else if (e.key === "Enter" || e.key === " ") this.focusEditor();
    else return;
    e.preventDefault();
  }

  private focusTab(): void {
    this.list.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
  }

  private nameField(tab: Tab): HTMLElement {
    const was = nameOfTab(this.store.state, tab);
    const field = el("input", { class: "tab-name", attrs: { type: "text", value: was, size: Math.max(12, was.length), "aria-label": "Name of the file", spellcheck: "false" } });
    let isDone = false;
    const end = (name: string) => {
      if (isDone) return;
      isDone = true;
      this.named(tab, name);
    };
    field.addEventListener("keydown", (e) => {
      e.stopPropagation();
      if (e.key === "Enter") end(field.value.trim());
      else if (e.key === "Escape") end(was);
      else return;
      e.preventDefault();
      this.focusEditor();
    });
    field.addEventListener("blur", () => end(field.value.trim()));
    // once it is in the page
    requestAnimationFrame(() => {
      field.focus();
      field.setSelectionRange(was.lastIndexOf("/") + 1, was.length - ".py".length);
    });
    return field;
  }

  /** The worst severity of the file's diagnostics, and whether something of the selection is in it. */
  private marks(name: string): { severity: string | null; isLit: boolean } {
    const { outcome, hover, kernelName } = this.store.state;
    const found = (outcome?.diagnostics ?? []).filter((d) => d.range?.file === name).map((d) => d.severity);
    const severity = (["error", "warning"] as const).find((s) => found.includes(s)) ?? null;
    const map = kernelOf(outcome, kernelName)?.map;
    const lights = [hover?.light, selectedLight(this.store.state)].filter((l) => l && l.map === map);
    const isLit = lights.some((l) => [...(l?.ranges ?? []), ...(l?.callers ?? [])].some((n) => map?.ranges[n]?.file === name));
    return { severity, isLit };
  }

  private tab(tab: Tab): HTMLElement {
    const name = nameOfTab(this.store.state, tab);
    const isOpen = this.store.state.tab === tab;
    const { severity, isLit } = this.marks(name);
    const cut = name.lastIndexOf("/") + 1;
    const said = [name, tab === null ? "main file" : "", severity ? `has ${severity}s` : ""].filter((s) => s !== "").join(", ");
    return el(
      "button",
      {
        class: `tab${isLit ? " lit" : ""}${severity ? ` has-${severity}` : ""}`,
        title: tab === null ? `${name}: the main file, whose kernels are compiled` : `${name} (double click or F2 renames)`,
        attrs: { type: "button", role: "tab", "aria-selected": isOpen ? "true" : "false", "aria-controls": "source-editor", "aria-label": said, tabindex: isOpen ? 0 : -1 },
        on: { click: () => this.store.set({ tab }), dblclick: () => this.rename(tab) },
      },
      cut > 0 ? el("span", { class: "folder" }, name.slice(0, cut)) : null,
      name.slice(cut),
      tab === null ? el("span", { class: "main" }, "main") : null,
    );
  }

  private tool(label: string, run: () => void, content: Node): HTMLElement {
    return el("button", { class: "quiet tool", title: label, attrs: { type: "button", "aria-label": label }, on: { click: run } }, content);
  }

  private draw(): void {
    const { state } = this.store;
    const { tabs } = this;
    this.row.hidden = tabs.length === 1;
    byId("source-title").textContent = tabs.length === 1 ? mainName(state) : plural(tabs.length, "file");
    if (this.row.hidden) return;
    if (this.naming === undefined) fill(this.field);
    else if (!this.field.hasChildNodes()) fill(this.field, this.nameField(this.naming)); // otherwise what is typed stays
    const hadFocus = this.list.contains(document.activeElement);
    fill(this.list, ...tabs.map((t) => this.tab(t)));
    const open = nameOfTab(state, state.tab);
    fill(
      this.tools,
      this.tool(`Rename ${open} (F2)`, () => this.rename(state.tab), icon("pencil")),
      state.tab === null ? null : this.tool(`Remove ${open}`, () => this.remove(), this.doomed === state.tab ? el("b", {}, "Remove?") : icon("trash")),
    );
    if (hadFocus) this.focusTab();
    this.list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}
