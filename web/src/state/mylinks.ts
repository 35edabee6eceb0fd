// mylinks: the stored links that were made in this browser, with the tokens that can delete them.
//
// The tokens are nowhere else: the server only has their hashes.
import type { SnippetMade, Visibility } from "../api/types";
import { Store } from "./store";

export interface MyLink {
  id: string;
  token: string;
  title: string;
  visibility: Visibility;
  createdMs: number;
  expiresMs: number | null;
}

const KEY = "nkx.links";
const KEPT_MAX = 500;

function isLink(v: unknown): v is MyLink {
  const l = (v ?? {}) as Record<string, unknown>;
  return (
    typeof l["id"] === "string" &&
    /^[\w-]{8,22}$/.test(l["id"]) &&
    typeof l["token"] === "string" &&
    /^[\w-]{22}$/.test(l["token"]) &&
    typeof l["title"] === "string" &&
    (l["visibility"] === "unlisted" || l["visibility"] === "public" || l["visibility"] === "private") &&
    typeof l["createdMs"] === "number" &&
    (l["expiresMs"] === null || typeof l["expiresMs"] === "number")
  );
}

function read(): { links: MyLink[]; damaged: boolean } {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    const list: unknown[] = Array.isArray(kept) ? kept : [];
    const links = list.filter(isLink).map(({ id, token, title, visibility, createdMs, expiresMs }) => {
      return { id, token, title, visibility, createdMs, expiresMs };
    });
    const now = Date.now();
    const alive = links.filter((l) => l.expiresMs === null || l.expiresMs > now);
    return { links: alive, damaged: !Array.isArray(kept) || links.length < list.length };
  } catch {
    return { links: [], damaged: true };
  }
}

const first = read();
export const myLinks = new Store<{ links: MyLink[] }>({ links: first.links });
/** Something in the list could not be read. */
export const linksWereDamaged = first.damaged;

/** False if this browser stores nothing. */
function keep(links: MyLink[]): boolean {
  myLinks.set({ links });
  try {
    localStorage.setItem(KEY, JSON.stringify(links));
    return true;
  } catch {
    return false;
  }
}

/** Reads the stored list again, because other tabs may have changed it. */
export function rememberLink(made: SnippetMade, title: string): boolean {
  const { id, edit_token: token, visibility, created_ms: createdMs, expires_ms: expiresMs } = made;
  const others = read().links.filter((l) => l.id !== id);
  return keep([{ id, token, title, visibility, createdMs, expiresMs }, ...others].slice(0, KEPT_MAX));
}

export function forgetLink(id: string): void {
  keep(read().links.filter((l) => l.id !== id));
}

/** The link's visibility has changed; the list may not have it. */
export function setVisibility(id: string, visibility: Visibility): void {
  keep(read().links.map((l) => (l.id === id ? { ...l, visibility } : l)));
}

export function tokenOf(id: string): string | null {
  return myLinks.state.links.find((l) => l.id === id)?.token ?? null;
}
