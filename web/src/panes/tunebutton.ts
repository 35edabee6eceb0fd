// tunebutton: where the search for knobs is offered: beside the run's time, and in the palette.
import type { AppStore } from "../state/app";
import { button, byId } from "./dom";
import { say } from "./notices";
import type { KnobEditor } from "./offers";

export function startTune(store: AppStore, editor: KnobEditor): void {
  void import("./tune").then(
    (m) => m.openTune(store, editor),
    () => say("The search could not be loaded: is the server reachable?"),
  );
}

/** Only kernels in Python have knobs. */
export function canTune(store: AppStore): boolean {
  return store.state.language === "nkipy";
}

export function mountTune(store: AppStore, editor: KnobEditor): void {
  const tune = button("tune", "Search for knobs that make the kernel faster", () => startTune(store, editor));
  byId("run-actions").append(tune);
  store.watch(["language"], () => (tune.hidden = !canTune(store)));
}
