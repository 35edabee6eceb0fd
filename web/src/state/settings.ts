// settings: the user's settings; kept in this browser, never in links.
import { Store } from "./store";

export type Theme = "system" | "light" | "dark";
export type Palette = "soft" | "bluegold";

export interface Settings {
  theme: Theme;
  palette: Palette;
  bands: boolean;
  /** Shortcuts of a single letter (j, k, n, …); WCAG 2.1.4 requires that they can be switched off. */
  letterKeys: boolean;
  autoCompile: boolean;
  /** Vim's keys in the source editor. */
  vim: boolean;
  /** Stages are shown as they are printed, not in the compact form. */
  fullText: boolean;
  /** Attributes are shown in the compact form. */
  attributes: boolean;
  fontSize: number;
  /** Share of the window's width or height, by splitter. */
  splits: Record<string, number>;
}

const KEY = "nkx.settings";

export const FONT_SIZES = [11, 12, 13, 14, 16, 18, 20];

/** The stored settings could not be read. */
export let settingsWereDamaged = false;

function load(): Settings {
  const settings: Settings = {
    theme: "system",
    palette: "soft",
    bands: true,
    letterKeys: true,
    autoCompile: true,
    vim: false,
    fullText: false,
    attributes: true,
    fontSize: 13,
    splits: {},
  };
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    if (typeof kept !== "object" || kept === null) {
      settingsWereDamaged = true;
      return settings;
    }
    const k = kept as Record<string, unknown>;
    if (k["theme"] === "light" || k["theme"] === "dark") settings.theme = k["theme"];
    if (k["palette"] === "bluegold") settings.palette = "bluegold";
    for (const flag of ["bands", "letterKeys", "autoCompile", "vim", "fullText", "attributes"] as const)
      if (typeof k[flag] === "boolean") settings[flag] = k[flag];
    if (typeof k["fontSize"] === "number" && FONT_SIZES.includes(k["fontSize"])) settings.fontSize = k["fontSize"];
    if (typeof k["splits"] === "object" && k["splits"] !== null)
      for (const [name, share] of Object.entries(k["splits"]))
        if (typeof share === "number" && share > 0 && share < 1) settings.splits[name] = share;
  } catch {
    settingsWereDamaged = true; // the defaults are used
  }
  return settings;
}

export const settings = new Store<Settings>(load());

// what another window of the page has set counts here, too
window.addEventListener("storage", (e) => {
  if (e.key === KEY) settings.set(load());
});

settings.watch(["theme", "palette", "bands", "letterKeys", "autoCompile", "vim", "fullText", "attributes", "fontSize", "splits"], () => {
  try {
    localStorage.setItem(KEY, JSON.stringify(settings.state));
  } catch {
    // no storage: the settings last until the page is closed
  }
});
