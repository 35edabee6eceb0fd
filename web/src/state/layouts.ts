// layouts: arrangements of the panes under names, kept in this browser, never in links.
import { PANES, type Pane } from "./room";

/** Where the panes are, and what is shown beside the stage. */
export interface Arrangement {
  hidden: Pane[];
  maximised: Pane | null;
  /** As in Settings. */
  splits: Record<string, number>;
  /** A second stage is shown. */
  beside: boolean;
  picture: boolean;
}

export interface Layout {
  name: string;
  arrangement: Arrangement;
}

const KEY = "nkx.layouts";
export const NAME_MAX = 40;
export const LAYOUTS_MAX = 20;

const isPane = (v: unknown): v is Pane => PANES.some((p) => p === v);

function arrangementFrom(kept: unknown): Arrangement | null {
  if (typeof kept !== "object" || kept === null) return null;
  const k = kept as Record<string, unknown>;
  const hidden = Array.isArray(k["hidden"]) ? k["hidden"].filter(isPane) : [];
  const splits: Record<string, number> = {};
  if (typeof k["splits"] === "object" && k["splits"] !== null)
    for (const [id, share] of Object.entries(k["splits"])) if (typeof share === "number" && share > 0 && share < 1) splits[id] = share;
  const maximised = isPane(k["maximised"]) ? k["maximised"] : null;
  return { hidden: hidden.length < PANES.length ? hidden : [], maximised, splits, beside: k["beside"] === true, picture: k["picture"] === true && k["beside"] !== true };
}

/** In the order in which they were saved; without what cannot be read. */
export function layouts(): Layout[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    if (!Array.isArray(kept)) return [];
    return kept.flatMap((l: unknown) => {
      const { name, arrangement } = (l ?? {}) as { name?: unknown; arrangement?: unknown };
      const read = arrangementFrom(arrangement);
      return typeof name === "string" && name !== "" && read ? [{ name: name.slice(0, NAME_MAX), arrangement: read }] : [];
    });
  } catch {
    return []; // no storage, or not what was written there
  }
}

/** False if the browser does not keep them. */
function write(list: readonly Layout[]): boolean {
  try {
    localStorage.setItem(KEY, JSON.stringify(list));
    return true;
  } catch {
    return false;
  }
}

/** Saves an arrangement; one of the same name is replaced.  The reason why not, or "". */
export function saveLayout(name: string, arrangement: Arrangement): string {
  const list = layouts();
  const at = list.findIndex((l) => l.name === name);
  if (at < 0 && list.length >= LAYOUTS_MAX) return `There are ${LAYOUTS_MAX} layouts: delete one first.`;
  if (at < 0) list.push({ name, arrangement });
  else list[at] = { name, arrangement };
  return write(list) ? "" : "This browser does not keep anything for this page.";
}

export function renameLayout(from: string, to: string): string {
  const list = layouts();
  if (from !== to && list.some((l) => l.name === to)) return `There is a layout ${to} already.`;
  return write(list.map((l) => (l.name === from ? { ...l, name: to } : l))) ? "" : "This browser does not keep anything for this page.";
}

export function deleteLayout(name: string): void {
  write(layouts().filter((l) => l.name !== name));
}
