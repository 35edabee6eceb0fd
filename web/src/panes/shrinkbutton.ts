// shrinkbutton: where a small kernel with the same fault is offered: beside the first error, and in the palette.
import type { AppState, AppStore } from "../state/app";
import { button } from "./dom";
import { say } from "./notices";
import type { KnobEditor } from "./offers";

export function startShrink(store: AppStore, editor: KnobEditor): void {
  void import("./shrink").then(
    (m) => m.openShrink(store, editor),
    () => say("The reducer could not be loaded: is the server reachable?"),
  );
}

/** Errors that say all by themselves: a smaller kernel would show nothing more. */
const CLEAR: ReadonlySet<string> = new Set(["python-syntax", "no-kernel", "no-shapes", "bad-inputs"]);

/** A text with an error, as it was written: a changed stage is no part of the source. */
export function canShrink({ outcome, language, edited }: Readonly<AppState>): boolean {
  return language !== "neff" && edited === null && outcome?.snippet == null && outcome?.diagnostics.some((d) => d.severity === "error" && !CLEAR.has(d.code)) === true;
}

export function shrinkButton(store: AppStore, editor: KnobEditor): HTMLElement {
  return button("shrink", "Shrink: find a small kernel with this fault", () => startShrink(store, editor), "plain");
}
