// draft: the user's own kernel, kept in this browser: it survives a reload, a closed tab, and a look at an example.
//
// Nothing of it leaves the browser.  localStorage has the last kernel of any window; sessionStorage has this window's, with the
// address it was written at, because the address follows an edit only after a while.
import type { InputSpec, SourceFile } from "../api/types";
import type { AppState, AppStore } from "./app";
import { readFiles } from "./files";
import { readInputs } from "./inputs";
import { isAsShared } from "./shared";

export interface Draft {
  source: string;
  filename: string | null;
  files: readonly SourceFile[];
  language: string;
  target: string;
  inputs: InputSpec[] | null;
}

const KEY = "nkx.draft";
const HERE = "nkx.here";

/** Time after an edit until the draft is kept, for the case that the browser dies. */
const KEEP_MS = 500;

function read(storage: () => Storage, key: string): Record<string, unknown> | null {
  try {
    const kept: unknown = JSON.parse(storage().getItem(key) ?? "null");
    return typeof kept === "object" && kept !== null ? (kept as Record<string, unknown>) : null;
  } catch {
    return null; // no storage, or damaged: there is no draft
  }
}

function write(storage: () => Storage, key: string, value: object | null): void {
  try {
    if (value) storage().setItem(key, JSON.stringify(value));
    else storage().removeItem(key);
  } catch {
    // no storage, or full: the kernel lasts until the page is closed
  }
}

const local = () => localStorage;
const session = () => sessionStorage;

export function draftFrom(kept: Record<string, unknown> | null): Draft | null {
  if (!kept || typeof kept["source"] !== "string" || kept["source"].trim() === "") return null;
  const text = (key: string, otherwise: string) => (typeof kept[key] === "string" ? kept[key] : otherwise);
  try {
    return {
      source: kept["source"],
      filename: typeof kept["filename"] === "string" ? kept["filename"] : null,
      files: kept["files"] === undefined ? [] : readFiles(kept["files"]),
      language: text("language", "nkipy"),
      target: text("target", "trn2"),
      inputs: kept["inputs"] ? readInputs(kept["inputs"]) : null,
    };
  } catch {
    return null;
  }
}

/** Null if what is on the page is not the user's own: an example, or someone's link, without an edit. */
export function draftOf(s: Readonly<AppState>): Draft | null {
  const { source, filename, files, language, target, inputs, examples, touched } = s;
  const isExample = files.length === 0 && examples.some((e) => e.source === source);
  if (s.lesson || !touched || source.trim() === "" || isExample || isAsShared(s)) return null;
  return { source, filename, files, language, target, inputs };
}

/** The last kernel of the user's own; null if there is none. */
export function keptDraft(): Draft | null {
  return draftFrom(read(local, KEY));
}

/** Shows it as the user's own kernel; it is not compiled yet. */
export function showDraft(store: AppStore, draft: Draft): void {
  store.set({ ...draft, touched: true, edited: null, byHand: [], patterns: "", tab: null, showInputs: false, kernelName: null, anchor: null, previous: null, shared: null, parent: null });
}

/** What this window showed at this address before it was reloaded, or left and come back to; a link that is opened anew shows
 * what it says. */
export function draftHere(address: string): Draft | null {
  const [navigation] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  if (navigation?.type !== "reload" && navigation?.type !== "back_forward") return null;
  const kept = read(session, HERE);
  return kept?.["address"] === address ? draftFrom(kept) : null;
}

/** True if the page shows a draft, which is kept now. */
export function keepDraft(store: AppStore): boolean {
  const draft = draftOf(store.state);
  if (draft) write(local, KEY, draft);
  write(session, HERE, draft && { address: location.href, ...draft });
  return draft !== null;
}

/** Keeps the draft a little after each edit, and at once when the page is left. */
export function keepDrafts(store: AppStore): void {
  let timer = 0;
  store.watch(["source", "files", "inputs", "target", "language"], () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => keepDraft(store), KEEP_MS);
  });
  const flush = () => {
    window.clearTimeout(timer);
    keepDraft(store);
  };
  window.addEventListener("pagehide", flush);
  document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && flush());
}
