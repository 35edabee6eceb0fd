// source: the kernel's text, with the marks, notes and tooltips of its ranges.
import { calledAt } from "../editor/calls";
import { mapShown, rangesAt, showLights, showMap, spanOf } from "../editor/links";
import type { Stage } from "../api/types";
import { showNotes } from "../editor/notes";
import { SourceEditor } from "../editor/source";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { fileOf, languageOf } from "../state/languages";
import { operationNamed } from "../state/operations";
import { kernelOf } from "../state/outcome";
import { lightOfRanges, smallest } from "../state/selection";
import { remarksByRange } from "../state/remarks";
import { choose, selectedLight, shownStage, STAGE_KEYS } from "../state/view";
import { button, byId, el, toggle } from "./dom";
import { operationTip } from "./operations";
import { remarkTip } from "./remarks";
import { Ruler } from "./ruler";

export class SourcePane {
  readonly editor: SourceEditor;
  private readonly ruler: Ruler;
  /** The map that the editor shows, and how many of its ranges it has. */
  private mapped: { map: unknown; size: number } = { map: null, size: -1 };
  /** The stage whose remarks the editor shows. */
  private noted: Stage | null = null;

  constructor(
    private readonly store: AppStore,
    compiler: Compiler,
    openFile: (file: File) => void,
  ) {
    const host = byId("source-editor");
    this.editor = new SourceEditor(host, {
      edited: (text) => {
        store.set({ source: text, hover: null, language: languageOf(text) ?? store.state.language });
        compiler.soon();
      },
      dropped: (file) => openFile(file),
      caret: (pos) => this.point(pos),
      point: (pos) => this.point(pos),
      clicked: (pos) => this.chooseAt(pos),
      explain: (pos) => this.explain(pos),
    });
    this.ruler = new Ruler(host, this.editor.view);
    const inputs = toggle("inputs", "Give the shapes of the kernel's inputs", () =>
      store.set({ showInputs: !store.state.showInputs }),
    );
    inputs.setAttribute("aria-controls", "inputs");
    const picked = el("input", { attrs: { type: "file", hidden: true, accept: ".py,.hlo,.txt,.pb,.mlir" } });
    picked.addEventListener("change", () => {
      if (picked.files?.[0]) openFile(picked.files[0]);
      picked.value = "";
    });
    const open = button("open…", "Open a file: Python, HLO (text or HloModuleProto) or MLIR. Files can be dropped here, too.", () => picked.click());
    byId("source-tools").append(picked, open, inputs);
    store.watch(["language"], () => {
      const { language } = store.state;
      byId("source-title").textContent = fileOf(language);
      inputs.hidden = language !== "nkipy"; // the other languages state their shapes
      this.editor.read(language);
    });
    store.watch(["source"], () => {
      if (store.state.source !== this.editor.text) this.editor.replace(store.state.source);
    });
    store.watch(["showInputs", "inputs"], () => {
      inputs.setAttribute("aria-pressed", String(store.state.showInputs));
      byId("source-note").textContent = store.state.inputs ? "shapes from the form" : "";
    });
    store.watch(["outcome", "previous", "kernelName"], () => this.drawMap());
    store.watch(["outcome"], () => this.drawDiagnostics());
    store.watch(STAGE_KEYS, () => this.drawNotes());
    store.watch([...STAGE_KEYS, "hover", "anchor"], () => this.drawLights());
    store.watch(["reveal"], () => this.revealSelection());
  }

  private drawMap(): void {
    const { outcome, kernelName } = this.store.state;
    const kernel = kernelOf(outcome, kernelName);
    // ranges refer to the compiled text: an edited text keeps its old ranges, which move with the edits
    if (!kernel || outcome?.source !== this.editor.text) return;
    const size = kernel.map.ranges.length;
    if (size === 0 || (this.mapped.map === kernel.map && this.mapped.size === size)) return;
    this.mapped = { map: kernel.map, size };
    showMap(this.editor.view, kernel.map);
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
    const operation = called && (await operationNamed(called.name));
    const span = called && operation ? called : decided?.span;
    if (!span) return null;
    const dom = el("div", {}, operation && operationTip(operation), decided && remarkTip(decided.list));
    return { from: span.from, to: span.to, dom };
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
    if (!outcome || outcome.source !== this.editor.text) return;
    // while frames arrive, it is not known yet whether the old diagnostics are gone
    if (outcome.status === "running" && outcome.diagnostics.length === 0) return;
    this.editor.showDiagnostics(outcome.diagnostics.filter((d) => d.code !== "kernel-output"));
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

  private revealSelection(): void {
    const light = selectedLight(this.store.state);
    if (!light || light.map !== mapShown(this.editor.view)) return;
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
      const light = lightOfRanges(shown.row.kernel.map, shown.stage, ranges);
      this.store.set({ hover: { origin: "source", light } });
    }
  }

  private chooseAt(pos: number): void {
    const ranges = this.rangesUnder(pos);
    const map = mapShown(this.editor.view);
    if (ranges.length > 0 && map) choose(this.store, { kind: "ranges", map, ranges });
  }

  /** What a click does, from the keyboard. */
  chooseCaret(): void {
    this.chooseAt(this.editor.view.state.selection.main.head);
  }
}
