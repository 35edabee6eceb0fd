// keys: keyboard shortcuts of the whole page.
//
// Letters work only outside text fields and can be switched off; a key that an editor or a control has handled is not
// handled again.
import { EditorView } from "@codemirror/view";
import { closeTips } from "../editor/cardtip";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { settings } from "../state/settings";
import { choose, currentRow } from "../state/view";
import type { DiffPane } from "./diff";
import type { HistoryDrawer } from "./history";
import type { IrPane } from "./ir";
import type { SourcePane } from "./source";
import type { StageText } from "./stagetext";
import { stageKey, type StagesPane } from "./stages";
import type { Views } from "./views";
import { byId } from "./dom";

export interface KeyTargets {
  store: AppStore;
  compiler: Compiler;
  source: SourcePane;
  drawer: HistoryDrawer;
  stages: StagesPane;
  ir: IrPane;
  diff: DiffPane;
  views: Views;
  pin(): void;
  share(): void;
  /** Opens the search over all stages. */
  search(): void;
  help(): void;
  /** Opens the list of all actions. */
  palette(): void;
}

function isComparing(t: KeyTargets): boolean {
  return t.store.state.mode === "compare";
}

function isTextField(node: Element): boolean {
  return node.matches("input, textarea, select") || (node instanceof HTMLElement && node.isContentEditable);
}

function focusables(t: KeyTargets): HTMLElement[] {
  return [
    ...document.querySelectorAll<HTMLElement>(".lesson-body"),
    t.source.editor.view.contentDOM,
    byId("stages"),
    t.ir.text.viewer.view.contentDOM,
    ...document.querySelectorAll<HTMLElement>(":is(.columns, #beside) .cm-content"),
    ...document.querySelectorAll<HTMLElement>("#picture :is(.sheet, .picture-table)"),
    byId("history"),
    byId("example"),
  ].filter((n) => n.offsetParent !== null);
}

/** The text of the stage beside, if it has the focus; otherwise that of the shown one. */
function textWithFocus(t: KeyTargets): StageText {
  const beside = t.views.beside?.text;
  return beside?.viewer.view.hasFocus ? beside : t.ir.text;
}

function cyclePanes(t: KeyTargets, by: 1 | -1): void {
  const list = focusables(t);
  const at = list.findIndex((n) => n === document.activeElement || n.contains(document.activeElement));
  const next = at < 0 ? 0 : (at + by + list.length) % list.length;
  list[next]?.focus();
}

function reveal(t: KeyTargets): void {
  const focus = document.activeElement;
  if (t.source.editor.view.dom.contains(focus)) t.source.chooseCaret();
  else if (textWithFocus(t).viewer.view.hasFocus) textWithFocus(t).chooseCaret();
  else t.store.set({ reveal: t.store.state.reveal + 1 });
}

/** What hovering shows, at the caret. */
function explain(t: KeyTargets): void {
  const { viewer } = textWithFocus(t);
  if (viewer.view.hasFocus) viewer.toggleCard();
  else void t.source.editor.explainCaret();
}

/** Keys with Ctrl or a function key: they work in text fields too. */
function chord(t: KeyTargets, e: KeyboardEvent): boolean {
  const mod = e.ctrlKey || e.metaKey;
  if (mod && e.shiftKey && e.key === "Enter") settings.set({ autoCompile: !settings.state.autoCompile });
  else if (mod && e.key === "Enter") void t.compiler.now();
  else if (mod && !e.shiftKey && e.key.toLowerCase() === "s") t.share();
  else if (mod && e.shiftKey && e.key.toLowerCase() === "f") t.search();
  else if (mod && !e.shiftKey && e.key.toLowerCase() === "k") t.palette();
  else if (mod && e.key === "F10") reveal(t);
  else if (mod && e.key === "F8") explain(t);
  else if (mod && e.shiftKey && e.key === "F1") settings.set({ bands: !settings.state.bands });
  else if (e.key === "F7" && isComparing(t)) t.views.compare?.step(e.shiftKey ? -1 : 1);
  else if (e.key === "F7" && t.diff.isOpen) t.diff.step(e.shiftKey ? -1 : 1);
  else if (e.key === "F6") cyclePanes(t, e.shiftKey ? -1 : 1);
  else return false;
  return true;
}

function letter(t: KeyTargets, key: string, afterG: boolean): boolean {
  if (afterG) {
    if (key === "l") reveal(t);
    if (key === "d") textWithFocus(t).viewer.goToDefinition();
    return key === "l" || key === "d";
  }
  switch (key) {
    case "/":
      t.store.set({ pane: "stages" });
      t.views.room?.show("stages");
      t.stages.focusFilter();
      return true;
    case "?":
      t.help();
      return true;
    case "h":
      t.store.set({ pane: "ir" });
      t.views.room?.show("ir");
      (byId("history").querySelector<HTMLElement>("[aria-current]") ?? byId("history")).focus();
      return true;
    case "y":
      t.store.set({ pane: "ir" });
      t.views.room?.show("ir");
      t.drawer.explain();
      return true;
    case "d":
      t.diff.toggle();
      return true;
    case "m":
      t.views.arrange((room) => room.maximise(null));
      return true;
    case "1":
    case "2":
    case "3":
      t.views.arrange((room) => room.toggle((["source", "stages", "ir"] as const)[Number(key) - 1] ?? "ir"));
      return true;
    case "f":
      t.views.togglePicture();
      return true;
    case "R":
      t.store.set({ mode: t.store.state.mode === "run" ? "read" : "run" });
      return true;
    case "O":
      t.views.pop(null);
      return true;
    case "P":
      void t.views.present();
      return true;
    case "p":
      t.pin();
      return true;
    case "c":
      if (t.store.state.pinned) t.store.set({ mode: isComparing(t) ? "read" : "compare" });
      return t.store.state.pinned !== null;
    case "a":
      t.diff.mark();
      return true;
    case "u":
      t.diff.setUnified(!t.store.state.unified);
      return t.diff.isOpen;
    case "E":
      if (t.diff.isOpen) t.diff.expandAll();
      return t.diff.isOpen;
    case "i":
      textWithFocus(t).viewer.toggleCard();
      return true;
    case "v":
      t.views.inspect("values", textWithFocus(t));
      return true;
    case "o":
      t.views.inspect("tiles", textWithFocus(t));
      return true;
    case "r":
      t.ir.detail.toggleFull();
      return true;
    case "t":
      t.ir.detail.toggleAttributes();
      return true;
    case "w":
      t.store.set({ wrap: !t.store.state.wrap });
      return true;
    case "x":
      if (isComparing(t)) t.views.compare?.swap();
      return isComparing(t);
    default:
      if (isComparing(t) && (key === "j" || key === "k")) {
        t.views.compare?.stepStage(key === "j" ? 1 : -1);
        return true;
      }
      if ((key === "j" || key === "k") && document.activeElement?.closest("#beside")) {
        t.views.beside?.step(key === "j" ? 1 : -1);
        return true;
      }
      return stageKey(t.store, key);
  }
}

/** Does what a key does, written as in the help: "j", "g l", "Shift+E", "Ctrl+Shift+F". */
export function pressKey(t: KeyTargets, key: string): void {
  const parts = key.split("+");
  const name = parts.pop() ?? "";
  const [ctrlKey, shiftKey] = [parts.includes("Ctrl"), parts.includes("Shift")];
  if (chord(t, new KeyboardEvent("keydown", { key: name, ctrlKey, shiftKey }))) return;
  letter(t, name.slice(name.startsWith("g ") ? 2 : 0), name.startsWith("g "));
}

export function mountKeys(t: KeyTargets): void {
  let afterG = -Infinity;
  document.addEventListener("keydown", (e) => {
    const target = e.target instanceof Element ? e.target : document.body;
    if (e.defaultPrevented || e.isComposing || target.closest("dialog")) return;
    if (chord(t, e)) {
      e.preventDefault();
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "Escape") {
      if (document.querySelector(":popover-open")) return; // Escape closes the popover
      const views = [...document.querySelectorAll<HTMLElement>(".cm-editor")].flatMap((dom) => EditorView.findFromDOM(dom) ?? []);
      if (views.map(closeTips).includes(true)) return;
      if (t.views.presentation?.isOn) {
        t.views.presentation.leave();
        return;
      }
      const { anchor, beside, picture } = t.store.state;
      if (beside !== null && (!anchor || target.closest("#beside"))) t.store.set({ beside: null });
      else if (picture && !anchor && target.closest("#picture")) t.store.set({ picture: false });
      else if (anchor) choose(t.store, null);
      return;
    }
    if (isTextField(target) || target.closest("[popover]")) return;
    if (e.key === "Enter" && e.shiftKey) {
      t.store.set({ beside: currentRow(t.store.state)?.key ?? null });
      e.preventDefault();
      return;
    }
    const isLetter = e.key.length === 1;
    if (isLetter && !settings.state.letterKeys) return;
    // in the stage's text the arrows move the caret
    if (!isLetter && target.closest("#ir-viewer, #beside, #picture, .columns")) return;
    if (!isLetter && target.matches("[role=separator]")) return;
    const gIsFresh = performance.now() - afterG < 1200;
    afterG = e.key === "g" && !gIsFresh ? performance.now() : -Infinity;
    if (isLetter ? letter(t, e.key, gIsFresh) : stageKey(t.store, e.key)) e.preventDefault();
  });
}
