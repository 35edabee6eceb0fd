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

export function mountEditButton(store: AppStore, compiler: Compiler): void {
  const title = "Change this stage's text and compile on from it";
  const edit = el("button", { class: "quiet tool spare", title, attrs: { type: "button", "aria-label": title, id: "ir-edit" }, on: { click: () => editStage(store, compiler) } }, icon("pencil"), el("span", {}, "edit"));
  byId("ir-tools").append(edit);
  store.watch([...STAGE_KEYS], () => (edit.hidden = !canEdit(currentRow(store.state))));
  // a link may hold a change
  store.watch(["edited"], () => store.state.edited && void load(store, compiler));
}
