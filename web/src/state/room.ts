// room: which panes are hidden; kept in this browser, never in links.
import type { AppState } from "./app";

export type Pane = AppState["pane"];

export const PANES: readonly Pane[] = ["source", "stages", "ir"];

const KEY = "nkx.room";

export function keptHidden(): Pane[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    const hidden = PANES.filter((p) => Array.isArray(kept) && kept.includes(p));
    return hidden.length < PANES.length ? hidden : [];
  } catch {
    return []; // no storage, or not what was written there
  }
}

export function keepHidden(hidden: readonly Pane[]): void {
  try {
    if (hidden.length > 0) localStorage.setItem(KEY, JSON.stringify(hidden));
    else localStorage.removeItem(KEY);
  } catch {
    // no storage: the arrangement lasts until the page is closed
  }
}
