// splitter: a bar between two panes, for the pointer and for the keyboard.
//
// It sets a custom property of the container to the share of the width that the pane before it gets; the style sheet
// lays the panes out.
import type { AppStore } from "../state/app";
import { settings } from "../state/settings";
import { byId } from "./dom";

export interface SplitSpec {
  id: string;
  /** Name of the custom property. */
  property: string;
  label: string;
  initial: number;
  min: number;
  max: number;
  /** The pane whose width it changes. */
  pane: string;
  /** What its width is a share of; "panes" if it is left out. */
  container?: string;
}

export function mountSplitter(store: AppStore, spec: SplitSpec): void {
  const bar = byId(spec.id);
  const container = byId(spec.container ?? "panes");
  bar.tabIndex = 0;
  bar.setAttribute("role", "separator");
  bar.setAttribute("aria-orientation", "vertical");
  bar.setAttribute("aria-label", spec.label);
  bar.setAttribute("aria-valuemin", String(spec.min * 100));
  bar.setAttribute("aria-valuemax", String(spec.max * 100));

  // widths from a link count until the user moves a splitter
  const now = () => (store.state.splits ?? settings.state.splits)[spec.id];
  const set = (share: number | null) => {
    const splits = { ...(store.state.splits ?? settings.state.splits) };
    if (share === null) delete splits[spec.id];
    else splits[spec.id] = Math.min(spec.max, Math.max(spec.min, share));
    settings.set({ splits });
    store.set({ splits: null });
  };
  const draw = () => {
    const share = now();
    // until the user chooses a width, the style sheet decides
    if (share === undefined) container.style.removeProperty(spec.property);
    else container.style.setProperty(spec.property, `${(share * 100).toFixed(2)}%`);
    bar.setAttribute("aria-valuenow", String(Math.round((share ?? spec.initial) * 100)));
  };
  settings.watch(["splits"], draw);
  store.watch(["splits"], draw);

  bar.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    e.preventDefault();
    bar.setPointerCapture(e.pointerId);
    bar.classList.add("dragging");
    const left = byId(spec.pane).getBoundingClientRect().left;
    const width = container.getBoundingClientRect().width;
    const move = (m: PointerEvent) => set((m.clientX - left) / width);
    const stop = () => {
      bar.classList.remove("dragging");
      bar.removeEventListener("pointermove", move);
    };
    bar.addEventListener("pointermove", move);
    bar.addEventListener("pointerup", stop, { once: true });
    bar.addEventListener("pointercancel", stop, { once: true });
  });
  bar.addEventListener("dblclick", () => set(null));
  bar.addEventListener("keydown", (e) => {
    const share = now() ?? spec.initial;
    const step = e.shiftKey ? 0.1 : 0.02;
    if (e.key === "ArrowLeft") set(share - step);
    else if (e.key === "ArrowRight") set(share + step);
    else if (e.key === "Home") set(spec.min);
    else if (e.key === "End") set(spec.max);
    else if (e.key === "Enter") set(null);
    else return;
    e.preventDefault();
  });
}
