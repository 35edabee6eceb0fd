// source: the text of the open file, with the marks, notes and tooltips of its ranges.
import { calledAt } from "../editor/calls";
import { mapShown, rangesAt, showLights, showMap, spanOf } from "../editor/links";
import { spanOfRange } from "../editor/positions";
import { isolateHistory } from "@codemirror/commands";
import { EditorView } from "@codemirror/view";
import type { SourceRange, Stage } from "../api/types";
import { onNumber, showMarked } from "../editor/marked";
import { showNotes } from "../editor/notes";
import { SourceEditor } from "../editor/source";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { edited, hasFiles, nameOfTab, tabOf, textOfTab } from "../state/files";
import { languageOf } from "../state/languages";
import { operationNamed } from "../state/operations";
import { kernelOf } from "../state/outcome";
import { type Light, lightOfRanges, smallest } from "../state/selection";
import { remarksByRange } from "../state/remarks";
import { settings } from "../state/settings";
import { choose, selectedLight, shownStage, STAGE_KEYS } from "../state/view";
import { button, byId, el, plural, toggle } from "./dom";
import { icon } from "./icons";
import { mark } from "./marked";
import { say } from "./notices";
import { operationTip } from "./operations";
import { remarkTip } from "./remarks";
import { Ruler } from "./ruler";
import { Tabs } from "./tabs";

const TIP_STAGES = 2;

/** As many decisions as do not cover the lines around; the drawer lists all of them. */
function shortTip(list: readonly { stage: Stage; texts: readonly string[] }[]): HTMLElement {
  const first = list.slice(0, TIP_STAGES);
  const rest = list.slice(TIP_STAGES).reduce((n, { texts }) => n + texts.length, 0);
  const more = rest > 0 ? el("p", { class: "note" }, `and ${plural(rest, "decision")} more: click, then Decisions`) : null;
  return el("div", {}, remarkTip(first), more);
}

export class SourcePane {
  readonly editor: SourceEditor;
  private readonly ruler: Ruler;
  /** The map that the editor shows, how many of its ranges it has, and of which file. */
  private mapped: { map: unknown; size: number; file: string } = { map: null, size: -1, file: "" };
  /** The stage whose remarks the editor shows. */
  private noted: Stage | null = null;
  /** The names of the files when they were last looked at. */
  private names: string[] = [];

  constructor(
    private readonly store: AppStore,
    compiler: Compiler,
    openFiles: (files: File[]) => void,
  ) {
    const host = byId("source-editor");
    this.editor = new SourceEditor(host, {
      edited: (text) => {
        const { key } = this.editor;
        const language = (key === null && languageOf(text)) || store.state.language;
        store.set({ ...edited(store.state, key, text), touched: true, hover: null, language });
        compiler.soon();
      },
      dropped: (files) => openFiles(files),
      caret: (pos) => this.point(pos),
      point: (pos) => this.point(pos),
      clicked: (pos) => this.chooseAt(pos),
      explain: (pos) => this.explain(pos),
      writing: () => import("./writing").then((m) => m.writing(store), () => []),
    });
    settings.watch(["vim"], () => void this.useVim(() => void compiler.now()));
    this.ruler = new Ruler(host, this.editor.view);
    const inputs = toggle("inputs", "Give the shapes of the kernel's inputs", () =>
      store.set({ showInputs: !store.state.showInputs }),
    );
    inputs.setAttribute("aria-controls", "inputs");
    const picked = el("input", { attrs: { type: "file", hidden: true, multiple: true, accept: ".py,.hlo,.txt,.pb,.mlir,.neff" } });
    picked.addEventListener("change", () => {
      if (picked.files?.[0]) openFiles([...picked.files]);
      picked.value = "";
    });
    const open = button("open…", "Open a file: Python (also several), HLO (text or HloModuleProto) or MLIR; or see what a NEFF holds. Files can be dropped here, too.", () => picked.click());
    const tabs = new Tabs(store, compiler, () => this.editor.view.focus());
    const more = button("+ file", "Add a Python file that this one can import; to HLO, one that defines an NKI kernel that it calls", () => tabs.add());
    const earlier = el("button", { class: "quiet tool", id: "versions-open", title: "Versions: what you wrote before", attrs: { type: "button", "aria-label": "Versions" }, on: { click: () => void import("./versions").then((m) => m.openVersions(store, compiler)) } }, icon("clock"));
    byId("source-tools").append(picked, more, open, inputs, earlier);
    store.watch(["language"], () => {
      const { language, tab } = store.state;
      inputs.hidden = language !== "nkipy"; // the other languages state their shapes
      more.hidden = !hasFiles(language);
      if (!hasFiles(language) && tab !== null) store.set({ tab: null });
      this.editor.read(language);
    });
    store.watch(["source", "files", "tab"], () => this.showFile());
    store.watch(["showInputs", "inputs"], () => {
      inputs.setAttribute("aria-pressed", String(store.state.showInputs));
      byId("source-note").textContent = store.state.inputs ? "shapes from the form" : "";
    });
    store.watch(["outcome", "previous", "kernelName", "tab"], () => this.drawMap());
    store.watch(["outcome", "tab"], () => this.drawDiagnostics());
    store.watch([...STAGE_KEYS, "tab"], () => this.drawNotes());
    store.watch([...STAGE_KEYS, "hover", "anchor", "tab"], () => this.drawLights());
    store.watch(["reveal"], () => this.revealSelection());
    onNumber(this.editor.view, (line, extend) => mark(store, say, "source", line, extend));
    store.watch(["marked", "source", "tab"], () => this.drawMarked());
  }

  /** The name of the file that the editor shows. */
  private get file(): string {
    return nameOfTab(this.store.state, this.store.state.tab);
  }

  /** Shows the open tab's text; an edit of the user is there already. */
  private showFile(): void {
    const { state } = this.store;
    const names = state.files.map((f) => f.name);
    const changed = names.flatMap((n, i) => (n === this.names[i] ? [] : [i]));
    const [only] = changed;
    // one name in its place has changed: the file was renamed, and keeps its history
    if (changed.length === 1 && only !== undefined && names.length === this.names.length)
      this.editor.rename(this.names[only] as string, names[only] as string);
    this.names = names;
    this.editor.forget(new Set(names));
    const { tab } = state;
    if (tab !== null && !names.includes(tab)) {
      this.store.set({ tab: null });
      return;
    }
    if (!this.editor.show(tab, textOfTab(state, tab), tab === null ? state.language : "nkipy")) return;
    if (tab === null) this.editor.read(state.language);
    this.mapped = { map: null, size: -1, file: "" };
    this.noted = null;
  }

  /** Shows a tab at once, without waiting for the state's watchers. */
  private switchTo(tab: string | null): void {
    if (tab === this.store.state.tab) return;
    this.store.set({ tab });
    this.showFile();
    this.drawMap();
  }

  private drawMap(): void {
    const { outcome, kernelName } = this.store.state;
    const kernel = kernelOf(outcome, kernelName);
    const { file } = this;
    // ranges refer to the compiled text: an edited text keeps its old ranges, which move with the edits
    if (!kernel || outcome?.texts.get(file) !== this.editor.text) return;
    const size = kernel.map.ranges.length;
    const same = this.mapped.map === kernel.map && this.mapped.size === size && this.mapped.file === file;
    if (size === 0 || same) return;
    this.mapped = { map: kernel.map, size, file };
    showMap(this.editor.view, kernel.map, file);
  }

  /** Shows the remarks of the shown stage's pass after the expressions that they are about. */
  private drawNotes(): void {
    const shown = shownStage(this.store.state);
    const { view } = this.editor;
    if (shown && mapShown(view) !== shown.row.kernel.map) return; // the ranges of another text
    const stage = shown?.row.stage ?? null;
    if (stage === this.noted) return;
    this.noted = stage;
    const notes = new Map<number, string[]>();
    if (shown && stage)
      for (const [n, texts] of remarksByRange(stage, shown.row.kernel.map)) {
        const span = spanOf(view, n);
        if (!span) continue;
        const { number } = view.state.doc.lineAt(span.from);
        notes.set(number, [...(notes.get(number) ?? []), ...texts]);
      }
    showNotes(view, notes);
  }

  /** The tooltip: what the operation becomes, and every pass's remarks about the expression. */
  private async explain(pos: number): Promise<{ from: number; to: number; dom: HTMLElement } | null> {
    const called = this.store.state.language === "nkipy" ? calledAt(this.editor.view, pos) : null;
    const decided = this.decidedAt(pos);
    const tip = called && (await this.tipOf(called.name));
    const span = called && tip ? called : decided?.span;
    if (!span) return null;
    const dom = el("div", { class: "source-tip" }, tip, decided && shortTip(decided.list));
    return { from: span.from, to: span.to, dom };
  }

  /** What a function of NumPy or NKI is, by its full name; null if it is not known. */
  private async tipOf(name: string): Promise<HTMLElement | null> {
    if (/^(?:nl|nisa|tensor)\./.test(name)) return import("./nkicard").then((m) => m.nkiCard(name, this.store.state.target), () => null);
    const operation = await operationNamed(name);
    return operation && operationTip(operation);
  }

  private decidedAt(pos: number) {
    const shown = shownStage(this.store.state);
    const map = mapShown(this.editor.view);
    const { exact, ranges } = rangesAt(this.editor.view, pos);
    if (!shown || !map || map !== shown.row.kernel.map || !exact) return null;
    const n = smallest(map, ranges);
    const span = n === null ? null : spanOf(this.editor.view, n);
    if (n === null || !span) return null;
    const list = shown.row.kernel.stages.flatMap((stage) => {
      const texts = remarksByRange(stage, map).get(n);
      return texts ? [{ stage, texts }] : [];
    });
    return list.length > 0 ? { span, list } : null;
  }

  private drawDiagnostics(): void {
    const { outcome } = this.store.state;
    if (!outcome || outcome.texts.get(this.file) !== this.editor.text) return;
    // while frames arrive, it is not known yet whether the old diagnostics are gone
    if (outcome.status === "running" && outcome.diagnostics.length === 0) return;
    this.editor.showDiagnostics(outcome.diagnostics.filter((d) => d.code !== "kernel-output" && d.range?.file === this.file));
  }

  private drawLights(): void {
    const { hover } = this.store.state;
    const selected = selectedLight(this.store.state);
    showLights(this.editor.view, hover?.light ?? null, selected);
    const map = mapShown(this.editor.view);
    const linesOf = (light: typeof selected) =>
      light && light.map === map
        ? [...light.ranges].flatMap((n) => {
            const span = spanOf(this.editor.view, n);
            return span ? [this.editor.view.state.doc.lineAt(span.from).number] : [];
          })
        : [];
    this.ruler.draw(linesOf(selected), linesOf(hover?.light ?? null));
  }

  private drawMarked(): void {
    const { marked } = this.store.state;
    const own = marked?.pane === "source" ? marked : null;
    showMarked(this.editor.view, own);
    const { doc } = this.editor.view.state;
    if (own && own.first <= doc.lines) this.editor.reveal(doc.line(own.first).from);
  }

  /** The tab that shows the light: the open one if it shows some of it, or else that of its first range. */
  private tabOfLight(light: Light): string | null | undefined {
    const filed = [...light.ranges, ...light.callers].flatMap((n) => (light.map.isShown(n) ? [light.map.ranges[n] as SourceRange] : []));
    const exact = filed.slice(0, light.ranges.size);
    if (filed.length === 0 || exact.some((r) => r.file === this.file)) return this.store.state.tab;
    return tabOf(this.store.state, (filed[0] as SourceRange).file);
  }

  private revealSelection(): void {
    const light = selectedLight(this.store.state);
    if (!light) return;
    const tab = this.tabOfLight(light);
    if (tab !== undefined) this.switchTo(tab);
    if (light.map !== mapShown(this.editor.view)) return;
    const spans = [...light.ranges, ...light.callers].flatMap((n) => spanOf(this.editor.view, n) ?? []);
    if (spans[0]) this.editor.reveal(spans[0].from);
  }

  /** What a position selects: the smallest range that has operations in this stage, otherwise the line's ranges. */
  private rangesUnder(pos: number): number[] {
    const shown = shownStage(this.store.state);
    const map = mapShown(this.editor.view);
    if (!shown || !map || map !== shown.row.kernel.map) return [];
    const { exact, ranges } = rangesAt(this.editor.view, pos);
    const links = map.linksOf(shown.stage);
    const present = ranges.filter((n) => links.rangeOps.has(n) || links.callOps.has(n));
    if (!exact) return present;
    const one = smallest(map, present.length > 0 ? present : ranges);
    return one === null ? [] : [one];
  }

  private point(pos: number | null): void {
    const shown = shownStage(this.store.state);
    const ranges = pos === null ? [] : this.rangesUnder(pos);
    const { hover } = this.store.state;
    if (ranges.length === 0 || !shown) {
      if (hover) this.store.set({ hover: null });
      return;
    }
    const same = hover?.origin === "source" && hover.light.ranges.size === ranges.length && ranges.every((n) => hover.light.ranges.has(n));
    if (!same) {
      const { map } = shown.row.kernel;
      this.store.set({ hover: { origin: "source", anchor: { kind: "ranges", map, ranges }, light: lightOfRanges(map, shown.stage, ranges) } });
    }
  }

  private chooseAt(pos: number): void {
    const ranges = this.rangesUnder(pos);
    const map = mapShown(this.editor.view);
    const { anchor } = this.store.state;
    // the rounds that are chosen for a loop stay while expressions of the loop are selected
    const kept = anchor?.kind === "ranges" && anchor.map === map ? [...(anchor.rounds ?? [])] : [];
    const rounds = new Map(kept.filter(([loop]) => ranges.every((n) => map?.loopsOf(n).includes(loop))));
    if (ranges.length > 0 && map) choose(this.store, { kind: "ranges", map, ranges, rounds });
  }

  /** Opens the file that a range is in, and selects the range. */
  goTo(range: SourceRange): void {
    const tab = tabOf(this.store.state, range.file);
    if (tab === undefined) return;
    this.store.set({ pane: "source" });
    this.switchTo(tab);
    const span = spanOfRange(this.editor.view.state.doc, range);
    if (span) this.editor.select(span.from, span.to, true);
  }

  /** The text of a file as it is now; null if there is no such file, or if it cannot be changed. */
  textOf(file: string): string | null {
    const tab = tabOf(this.store.state, file);
    return tab === undefined || this.editor.view.state.readOnly ? null : textOfTab(this.store.state, tab);
  }

  /** Changes a file as one step that can be undone, and shows the place. */
  write(file: string, changes: readonly { from: number; to: number; insert: string }[]): void {
    const tab = tabOf(this.store.state, file);
    const at = changes[0]?.from;
    if (tab === undefined || at === undefined) return;
    this.switchTo(tab);
    this.editor.view.dispatch({ changes, annotations: isolateHistory.of("full"), userEvent: "input.knob", effects: EditorView.scrollIntoView(changes.at(-1)?.from ?? at, { y: "nearest" }) });
  }

  /** Puts Vim's keys into the editor, or takes them out, as the settings say. */
  private async useVim(compile: () => void): Promise<void> {
    const { vim } = settings.state;
    if (!vim) {
      this.editor.setKeys([]);
      return;
    }
    const { vimKeys } = await import("../editor/vim").catch(() => ({ vimKeys: null }));
    if (!vimKeys) say("Vim's keys could not be loaded: is the server reachable?");
    else if (settings.state.vim) this.editor.setKeys(vimKeys(compile));
  }

  /** What a click does, from the keyboard. */
  chooseCaret(): void {
    this.chooseAt(this.editor.view.state.selection.main.head);
  }
}
