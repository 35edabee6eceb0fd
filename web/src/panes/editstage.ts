// editstage: changes the text of the shown stage in place; what comes after it is compiled from the text.
import { StageEditor } from "../editor/stageeditor";
import type { SourceRange } from "../api/types";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { sideOf } from "../state/resume";
import { currentRow, showStage, allRows, STAGE_KEYS } from "../state/view";
import { adoptStyle } from "../style/late";
import css from "../style/editstage.late.css";
import { button, byId, el, fill } from "./dom";

class EditStage {
  private readonly host = el("div", { class: "editor", id: "ir-editor" });
  private readonly bar = el("div", { id: "ir-edited", attrs: { role: "status" } });
  private readonly editor: StageEditor;

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
  ) {
    adoptStyle(css);
    byId("ir-viewer").after(this.host);
    byId("ir-message").before(this.bar);
    this.editor = new StageEditor(this.host, "Text of the stage, which you can change", (text) => this.change(text));
    store.watch([...STAGE_KEYS, "edited"], () => this.draw());
    store.watch(["outcome", "edited"], () => this.mark());
    store.watch(["wrap"], () => this.editor.setWrap(store.state.wrap));
  }

  focus(): void {
    this.editor.view.focus();
  }

  /** Shows a place in the changed text. */
  goTo(range: SourceRange): void {
    const row = allRows(this.store.state).find((r) => sideOf(this.store.state, r) === "here");
    if (row) showStage(this.store, row);
    this.draw(); // what is hidden cannot have the focus
    this.editor.select(range);
  }

  private change(text: string): void {
    const { edited } = this.store.state;
    if (!edited) return;
    this.store.set({ edited: { ...edited, text }, touched: true });
    this.compiler.soon();
  }

  private discard(): void {
    this.store.set({ edited: null });
    void this.compiler.now();
  }

  private draw(): void {
    const { state } = this.store;
    const { edited } = state;
    const row = currentRow(state);
    const side = sideOf(state, row);
    byId("ir-pane").classList.toggle("editing", side === "here");
    this.bar.hidden = side === "before";
    if (!edited || !row || side === "before") return;
    const back = button("Discard the change", "The pipeline goes on from what the pass made", () => this.discard());
    if (side === "here") {
      this.editor.show(edited.text, row.dialect);
      fill(this.bar, el("span", {}, "You can change this text. The stages after it come from what you write."), back);
    } else {
      const source = allRows(state).find((r) => r.index === edited.index);
      const show = source ? button("Show it", "Show the changed stage", () => showStage(this.store, source)) : null;
      fill(this.bar, el("span", {}, `This comes from your change of ${edited.index} ${edited.name}.`), show, back);
    }
  }

  private mark(): void {
    const { outcome, edited } = this.store.state;
    if (!edited || outcome?.status === "running") return;
    this.editor.showDiagnostics(outcome?.diagnostics.filter((d) => d.range?.file === edited.file) ?? []);
  }
}

let pane: EditStage | null = null;

/** Shows a place of a diagnostic in the changed text. */
export function goToEdited(range: SourceRange): void {
  pane?.goTo(range);
}

/** Shows what was changed, if anything was, and follows changes from then on. */
export function openEditStage(store: AppStore, compiler: Compiler): { focus(): void } {
  pane ??= new EditStage(store, compiler);
  return pane;
}
