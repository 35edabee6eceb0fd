// scope: random texts that nobody else can guess.  One per browser keeps its results from everybody else, one per page says
// which compilation is a newer one of the same editor (README).
const KEY = "nkx.scope";

let known: string | null = null;

function make(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/** One per page and visit: two windows compile beside each other. */
export const editorName: string = make();

export function scope(): string {
  if (known !== null) return known;
  try {
    const kept = localStorage.getItem(KEY);
    known = kept !== null && /^[0-9a-f]{32}$/.test(kept) ? kept : make();
    localStorage.setItem(KEY, known);
  } catch {
    known ??= make(); // for this visit
  }
  return known;
}
