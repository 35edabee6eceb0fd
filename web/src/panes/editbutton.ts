// editbutton: where a stage's text is opened for changes.
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { canEdit, newEdit } from "../state/resume";
import { currentRow, STAGE_KEYS } from "../state/view";
import { byId, el } from "./dom";
import { icon } from "./icons";
import { say } from "./notices";

export function editStage(store: AppStore, compiler: Compiler): void {
  const row = currentRow(store.state);
  const edited = row && newEdit(store.state, row);
  if (!edited) {
    say("This stage is not read back: change the source instead");
    return;
  }
  const { edited: before } = store.state;
  const isOther = before?.index !== edited.index || before.kernel !== edited.kernel;
  store.set(isOther ? { edited, mode: "read", diffFrom: null } : { mode: "read", diffFrom: null });
  void load(store, compiler).then((p) => p?.focus());
}

async function load(store: AppStore, compiler: Compiler): Promise<{ focus(): void } | null> {
  try {
    return (await import("./editstage")).openEditStage(store, compiler);
  } catch {
    say("The editor of stages could not be loaded: is the server reachable?");
    return null;
  }
}

/** Opens the dialog in which passes are left out and put in. */
export async function changePipeline(store: AppStore, compiler: Compiler): Promise<void> {
  try {
    (await import("./byhand")).openByHand(store, compiler);
  } catch {
    say("The dialog could not be loaded: is the server reachable?");
  }
}

function passButton(store: AppStore, compiler: Compiler): HTMLElement {
  const title = "Change the pipeline: leave this pass out, give it options, run another after it";
  const pass = el("button", { class: "quiet tool spare", title, attrs: { type: "button", "aria-label": title, id: "ir-pass" }, on: { click: () => void changePipeline(store, compiler) } }, icon("sliders"), el("span", {}, "pass"));
  store.watch([...STAGE_KEYS, "byHand"], () => {
    pass.hidden = currentRow(store.state) === null;
    pass.classList.toggle("on", store.state.byHand.length > 0);
  });
  return pass;
}

/** Opens the lines that stages should have. */
export async function showPatterns(store: AppStore, compiler: Compiler, isAsked: boolean): Promise<void> {
  try {
    (await import("./patterns")).openPatterns(store, compiler, isAsked);
  } catch {
    say("The lines of patterns could not be loaded: is the server reachable?");
  }
}

function patternButton(store: AppStore, compiler: Compiler): HTMLElement {
  const title = "Lines that this stage's text should have; tried as you type";
  const open = el("button", { class: "quiet tool spare", title, attrs: { type: "button", "aria-label": title, id: "ir-find" }, on: { click: () => void showPatterns(store, compiler, true) } }, icon("check"), el("span", {}, "patterns"));
  store.watch([...STAGE_KEYS, "patterns"], () => {
    open.hidden = currentRow(store.state) === null;
    open.classList.toggle("on", store.state.patterns !== "");
  });
  return open;
}

export function mountEditButton(store: AppStore, compiler: Compiler): void {
  const title = "Change this stage's text and compile on from it";
  const edit = el("button", { class: "quiet tool spare", title, attrs: { type: "button", "aria-label": title, id: "ir-edit" }, on: { click: () => editStage(store, compiler) } }, icon("pencil"), el("span", {}, "edit"));
  byId("ir-tools").append(edit, passButton(store, compiler), patternButton(store, compiler));
  // a link may hold patterns
  store.watch(["patterns"], () => store.state.patterns !== "" && !store.state.touched && void showPatterns(store, compiler, false));
  store.watch([...STAGE_KEYS], () => (edit.hidden = !canEdit(currentRow(store.state))));
  // a link may hold a change
  store.watch(["edited"], () => store.state.edited && void load(store, compiler));
}
