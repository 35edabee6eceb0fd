// shared: opens a stored link and describes it in a bar above the panes.
//
// The page shows its stages as they were stored, not as today's compiler would make them.  An edit starts a fork.
import { getSnippet, getVersions } from "../api/client";
import { Problem } from "../api/problem";
import type { Ancestor } from "../api/types";
import type { AppState, AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { TODAY, versionFor, versionName } from "../state/compilers";
import { notesInHash, readView } from "../state/fragment";
import { textsOf } from "../state/files";
import { readViewJson, type View } from "../state/look";
import { markedFromText } from "../state/marked";
import { frozenOutcome, kernelOf } from "../state/outcome";
import { isAsShared, pathOf, revisionIn, sharedOf, type Shared } from "../state/shared";
import { compareWithToday, pinSnippet } from "../state/pin";
import { choose, selectionFromText } from "../state/view";
import { byId, button, el, fill } from "./dom";
import { when } from "./when";

/** Applies a stored view.  Its selection is only found after the stages have arrived. */
export function look(store: AppStore, view: View): void {
  const { kernelName, stageKey, beside, step, picture, diffFrom, unified, notes, recording, filter, hideUnchanged, tab, wrap, splits, mode, comparedKey } = view;
  const isThere = store.state.files.some((f) => f.name === tab);
  store.set({ kernelName, stageKey, beside, step, picture, diffFrom, unified, notes, recording, filter, hideUnchanged, tab: isThere ? tab : null, wrap, splits, mode: mode === "compare" && !store.state.pinned ? "read" : mode, comparedKey, marked: markedFromText(view.marked), ...(view.pane ? { pane: view.pane } : {}) });
}

export function lookAtSelection(store: AppStore, view: View): void {
  const anchor = view.selection === null ? null : selectionFromText(store.state, view.selection);
  if (anchor) choose(store, anchor);
}

const NOWHERE = "It was deleted, has expired, or lost a character when it was copied.";

/** Shows the stored kernel, or the reason why it cannot. */
export async function openShared(store: AppStore, id: string, say: (text: string) => void, tell: (title: string, text: string) => void): Promise<void> {
  const revision = revisionIn(location.search);
  try {
    const snippet = await getSnippet(encodeURIComponent(id), revision);
    const shared = sharedOf(snippet, revision);
    const kept = readViewJson(snippet.view);
    const { source, filename, files, language, target, inputs, check, pipeline, edited, byHand, patterns } = shared;
    const outcome = frozenOutcome(textsOf(shared), snippet.result, shared.id, snippet.revision);
    const fromAddress = readView(location.hash);
    const notes = (await notesInHash(location.hash)) ?? kept.view.notes;
    const view: View = fromAddress ? { ...fromAddress, notes, recording: kept.view.recording, splits: kept.view.splits } : { ...kept.view, notes };
    const version = shared.version === TODAY ? TODAY : versionFor(await getVersions(), shared.version);
    store.set({ shared, parent: shared.id, source, filename, files, tab: null, language, target, inputs, check, pipeline, version, edited, byHand, patterns, touched: false, anchor: null, previous: null, outcome });
    look(store, view);
    lookAtSelection(store, view);
    if (kept.odd) say("Part of how this was looked at comes from another version and was left out.");
  } catch (e) {
    if (e instanceof Problem && e.code !== "not-found") {
      tell("The link cannot be opened now.", e.message);
    } else if (e instanceof Problem || id === "") {
      tell("This link leads nowhere.", NOWHERE);
    } else {
      console.error(e);
      tell("The link cannot be opened.", "This version of the page cannot read what it holds.");
    }
  }
}

function origin(ancestry: readonly Ancestor[]): Node | null {
  const parent = ancestry[0];
  if (!parent) return null;
  const older = ancestry.length > 1 ? `, ${ancestry.length - 1} more before it` : "";
  const name = parent.id ? el("a", { attrs: { href: `/z/${parent.id}` } }, parent.title || `/z/${parent.id}`) : parent.visibility === "private" ? "a private link" : "an unlisted link";
  return el("span", { class: "note" }, "fork of ", name, `, ${when(parent.created_ms)}${older}`);
}

/** Compares what the page shows with a stored link. */
export async function compareWith(store: AppStore, id: string, revision: number | null, say: (text: string) => void): Promise<void> {
  try {
    pinSnippet(store, await getSnippet(id, revision), revision);
    store.set({ mode: "compare", pane: "ir" });
  } catch (e) {
    if (!(e instanceof Problem)) throw e;
    say(e.code === "not-found" ? "That link was deleted or has expired." : `The link cannot be opened now: ${e.message}`);
  }
}

/** A program in Python runs in the compile whose answer is stored, and can make it claim anything. */
const WORD = "The stages and checks are what the compile of this kernel answered. The kernel's own Python runs in that compile and can make it claim anything: read the source before you rely on it.";

function frozenNote(s: Readonly<AppState>, shared: Shared, isFrozen: boolean): string {
  if (!isFrozen) return s.version === TODAY ? "compiled just now, with today's pipeline" : `compiled just now, with ${versionName(s.versions, s.version)}`;
  if (shared.isCurrent) return "";
  const made = versionFor(s.versions, shared.version);
  if (made !== TODAY) return `Made by ${versionName(s.versions, made)} of the compiler: these are its stages.`;
  return "The pipeline has changed since: these are the stages as they were then.";
}

export function mountSharedBar(store: AppStore, compiler: Compiler, say: (text: string) => void): void {
  const bar = byId("shared-bar");
  const blank = document.title;
  const showFrozen = () => store.state.shared && location.assign(pathOf(store.state.shared));
  store.watch(["shared", "source", "filename", "files", "language", "target", "inputs", "check", "pipeline", "byHand", "patterns", "version", "versions", "outcome", "previous", "kernelName"], () => {
    const { shared, outcome } = store.state;
    bar.hidden = shared === null;
    const kernel = kernelOf(outcome, store.state.kernelName) ?? kernelOf(store.state.previous, store.state.kernelName);
    const title = kernel ? `${kernel.name} · nkx` : blank;
    if (!shared) {
      document.title = title;
      return;
    }
    const name = shared.title === "" ? (kernel?.name ?? "Shared kernel") : shared.title;
    document.title = `${name} · nkx`;
    if (!isAsShared(store.state)) {
      fill(
        bar,
        el("b", { class: "shared-title" }, `Fork of ${name}`),
        el("span", { class: "note" }, "not stored yet: Share keeps it, and where it came from"),
        el("span", { class: "spring" }),
        button("Compare with the original", "The stored kernel as A, this one as B", () => void compareWith(store, shared.id, shared.revision, say), "plain"),
        button("Back to the original", "Open the link again", showFrozen, "plain"),
      );
      document.title = title;
      return;
    }
    const isFrozen = outcome?.snippet === shared.id;
    const parentId = shared.ancestry[0]?.id;
    const note = frozenNote(store.state, shared, isFrozen);
    const isOlder = store.state.version !== TODAY;
    const withToday = () => {
      store.set({ version: TODAY });
      void compiler.now();
    };
    fill(
      bar,
      el("b", { class: "shared-title" }, name),
      el("span", { class: "note" }, `shared ${when(shared.createdMs)}${shared.expiresMs === null ? "" : `, until ${when(shared.expiresMs)}`}`),
      origin(shared.ancestry),
      isFrozen && store.state.language === "nkipy" ? el("span", { class: "note", title: WORD }, "as its author's compile answered") : null,
      note === "" ? null : el("span", { class: "shared-old" }, note),
      el("span", { class: "spring" }),
      parentId ? button("Compare with its parent", "What it was forked from as A, this kernel as B", () => void compareWith(store, parentId, null, say), "plain") : null,
      isFrozen && !shared.isCurrent && !isOlder ? button("Recompile", "Compile this kernel with today's pipeline", withToday, "plain") : null,
      isOlder ? button("Compile with today's", "Compile this kernel with today's version of the compiler", withToday, "plain") : null,
      isOlder ? button("Compare with today's", "These stages as A, those of today's version of the compiler as B", () => compareWithToday(store, compiler), "plain") : null,
      isFrozen ? null : button("Show the stored stages", "Back to the stages as they were kept", showFrozen, "plain"),
      el("a", { class: "raw", title: "The kernel's source as a file", attrs: { href: pathOf(shared, "/raw"), download: "kernel.py" } }, shared.files.length > 0 ? "main file" : "source"),
      shared.reportUrl === null ? null : el("a", { class: "raw", title: "Tell whoever runs this server about this link", attrs: { href: shared.reportUrl, rel: "noopener noreferrer", target: "_blank" } }, "report"),
    );
  });
}
