// scope: a random text, one per browser, that keeps this browser's results from everybody else (README).
const KEY = "nkx.scope";

let known: string | null = null;

function make(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((b) => b.toString(16).padStart(2, "0")).join("");
}

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
