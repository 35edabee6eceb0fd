// scope: random texts that nobody else can guess.  The one of the browser keeps its results private; the one of the page
// tells the server which compiles belong to the same editor (docs/http-api.md).
const KEY = "nkx.scope";

let known: string | null = null;
let shared: string | null = null;

function make(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/** One for each page load, so that two windows do not end each other's compiles. */
export const editorName: string = make();
/** The pinned kernel is compiled as in an editor of its own. */
export const pinEditorName: string = make();
/** So are the runs on the simulated machine. */
export const runEditorName: string = make();
/** And the search for knobs. */
export const tuneEditorName: string = make();

/** The people of a session have one scope, so that the server compiles each change once for all of them; null: the browser's own. */
export function shareScope(text: string | null): void {
  shared = text;
}

export function scope(): string {
  if (shared !== null) return shared;
  if (known !== null) return known;
  try {
    const kept = localStorage.getItem(KEY);
    known = kept !== null && /^[0-9a-f]{32}$/.test(kept) ? kept : make();
    localStorage.setItem(KEY, known);
  } catch {
    known ??= make(); // only for this page load
  }
  return known;
}
