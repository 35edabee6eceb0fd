// boot: sets the theme before the first paint, so that the page never shows the other one first.
import { showTheme } from "./state/theme";

let choice: unknown = "system";
try {
  choice = (JSON.parse(localStorage.getItem("nkx.settings") ?? "{}") as { theme?: unknown } | null)?.theme;
} catch {
  // no storage: the system's theme
}
showTheme(choice);
