// versions: earlier states of the user's own kernels, kept in this browser and nowhere else.
//
// A version is a kernel that compiled.  Edits of the same kernel within two minutes make one version, the last of them.
import type { AppStore } from "./app";
import { type Draft, draftFrom, draftOf } from "./draft";

export interface Version {
  /** When it compiled, in Unix time. */
  atMs: number;
  /** When the first of its edits compiled; 0: it does not change any more. */
  fromMs: number;
  draft: Draft;
}

const KEY = "nkx.versions";
const TOGETHER_MS = 120_000;
const VERSIONS_MAX = 40;
/** Browsers give a site 5 million characters for everything. */
const CHARS_MAX = 1_000_000;

function versionFrom(kept: unknown): Version[] {
  const v = (kept ?? {}) as Record<string, unknown>;
  const [atMs, fromMs] = [v["atMs"], v["fromMs"]];
  const draft = typeof v["draft"] === "object" ? draftFrom(v["draft"] as Record<string, unknown> | null) : null;
  return draft && typeof atMs === "number" && typeof fromMs === "number" ? [{ atMs, fromMs, draft }] : [];
}

/** The newest first; without what cannot be read. */
export function versions(): Version[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.flatMap(versionFrom) : [];
  } catch {
    return [];
  }
}

function write(list: readonly Version[]): void {
  const kept: string[] = [];
  let chars = 0;
  for (const version of list.slice(0, VERSIONS_MAX)) {
    const text = JSON.stringify(version);
    chars += text.length;
    if (chars > CHARS_MAX) break;
    kept.push(text);
  }
  try {
    localStorage.setItem(KEY, `[${kept.join(",")}]`);
  } catch {
    // no storage, or full: the versions that are there stay
  }
}

export function sameDraft(a: Draft, b: Draft): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Whether one is an edit of the other: they share half of the lines of the shorter one. */
function isEditOf(a: Draft, b: Draft): boolean {
  const lines = (d: Draft) => new Set([d.source, ...d.files.map((f) => f.source)].join("\n").split("\n").filter((l) => l.trim() !== ""));
  const [x, y] = [lines(a), lines(b)];
  const shared = [...x].filter((l) => y.has(l)).length;
  return shared * 2 >= Math.min(x.size, y.size);
}

/** isDone: later edits do not change this version. */
export function keepVersion(draft: Draft, isDone: boolean): void {
  const list = versions();
  const [newest, ...older] = list;
  const isThere = newest && sameDraft(newest.draft, draft);
  if (isThere && !isDone) return;
  const now = Date.now();
  const isSame = isThere || (newest && now - newest.fromMs < TOGETHER_MS && isEditOf(newest.draft, draft));
  const version = { atMs: isThere ? newest.atMs : now, fromMs: isDone ? 0 : isSame ? newest.fromMs : now, draft };
  write([version, ...(isSame ? older : list)]);
}

export function forgetVersions(): void {
  write([]);
}

/** Keeps a version each time the user's own kernel has compiled. */
export function keepVersions(store: AppStore): void {
  store.watch(["outcome"], () => {
    const { outcome, source, pending } = store.state;
    const draft = outcome?.status === "ok" && !pending && [...outcome.texts.values()].includes(source) ? draftOf(store.state) : null;
    if (draft) keepVersion(draft, false);
  });
}
