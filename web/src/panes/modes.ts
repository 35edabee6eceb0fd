// modes: the ways to look at the kernel, in the header: reading its stages, or comparing it with a pinned one.
import type { AppStore, Mode } from "../state/app";
import { pinCurrent } from "../state/pin";
import { byId, button } from "./dom";

/** Returns what pins the shown result, or unpins the pinned one. */
export function mountModes(store: AppStore, say: (text: string) => void): () => void {
  const pin = () => {
    if (store.state.pinned) {
      store.set({ pinned: null, mode: "read" });
      say("Unpinned");
      return;
    }
    pinCurrent(store);
    say("Pinned as A: edit the kernel, choose another target or other stages, or open another link, then compare (c)");
  };
  const go = (mode: Mode) => {
    if (mode === "compare" && !store.state.pinned) pinCurrent(store);
    store.set({ mode, ...(mode === "read" ? {} : { pane: "ir" }) });
  };
  const read = button("Read", "The stages of the kernel", () => go("read"), "");
  const run = button("Run", "The kernel on the simulated machine: where the time goes, what fills the memories (Shift+R)", () => go("run"), "");
  const compare = button("Compare", "Pin the result on the screen as A and compare what follows with it (c)", () => go("compare"), "");
  const pinButton = button("Pin", "Keep the result on the screen as A of a comparison (p)", pin, "");
  byId("modes").append(read, run, compare, pinButton);
  store.watch(["mode", "pinned"], () => {
    const { mode, pinned } = store.state;
    read.setAttribute("aria-pressed", String(mode === "read"));
    run.setAttribute("aria-pressed", String(mode === "run"));
    compare.setAttribute("aria-pressed", String(mode === "compare"));
    pinButton.setAttribute("aria-pressed", String(pinned !== null));
    pinButton.textContent = pinned ? "A pinned" : "Pin";
    pinButton.title = pinned ? "Unpin A (p)" : "Keep the result on the screen as A of a comparison (p)";
  });
  return pin;
}
