// notesbutton: opens the pane of notes, which is loaded then, or when a link has notes.
import { byId, el } from "./dom";
import { icon } from "./icons";
import type { KeyTargets } from "./keys";
import { say } from "./notices";

export async function showNotes(targets: KeyTargets, isAsked: boolean): Promise<void> {
  try {
    (await import("./notes")).openNotes(targets, isAsked);
  } catch (e) {
    console.error(e);
    say("The notes could not be loaded: is the server reachable?");
  }
}

export function mountNotesButton(targets: KeyTargets): void {
  const { store } = targets;
  const title = "Notes on lines of the source and of stages";
  const open = el("button", { class: "quiet tool spare", title, attrs: { type: "button", "aria-label": title, id: "notes-open" }, on: { click: () => void showNotes(targets, true) } }, icon("note"), el("span", {}, "notes"));
  byId("ir-tools").append(open);
  let isLoaded = false;
  store.watch(["notes"], () => {
    open.classList.toggle("on", store.state.notes.length > 0);
    if (store.state.notes.length === 0 || isLoaded) return;
    isLoaded = true;
    void showNotes(targets, false);
  });
}
