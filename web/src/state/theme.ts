// theme: light or dark, in the root element's data-theme: the user's choice, otherwise the system's.  The style sheet
// therefore states each theme once.
import type { Theme } from "./settings";

const systemIsDark = window.matchMedia("(prefers-color-scheme: dark)");

/** Any value but "light" and "dark" follows the system. */
export function showTheme(choice: unknown): void {
  const shown = choice === "light" || choice === "dark" ? choice : systemIsDark.matches ? "dark" : "light";
  document.documentElement.dataset["theme"] = shown;
}

/** Shows the choice now and whenever the system's theme changes. */
export function followTheme(choice: () => Theme): void {
  showTheme(choice());
  systemIsDark.addEventListener("change", () => showTheme(choice()));
}
