// boot: sets the theme before the first paint, so that the page never flashes in the other one.
try {
  const kept = JSON.parse(localStorage.getItem("nkx.settings") ?? "{}") as { theme?: unknown };
  if (kept.theme === "light" || kept.theme === "dark") document.documentElement.dataset["theme"] = kept.theme;
} catch {
  // no storage: the system's theme
}
