// settings: the panel with the user's settings.
import { FONT_SIZES, settings, type Palette, type Theme } from "../state/settings";
import { byId, el, fill } from "./dom";
import { askWhoAmI, whoText } from "./whoami";

function choice<T extends string>(legend: string, name: string, list: [T, string][], get: () => T, set: (v: T) => void) {
  const radios = list.map(([value, label]) => {
    const input = el("input", { attrs: { type: "radio", name, value }, on: { change: () => set(value) } });
    input.checked = get() === value;
    return { input, value, node: el("label", {}, input, el("span", {}, label)) };
  });
  const node = el("fieldset", { class: "segmented" }, el("legend", {}, legend), el("div", {}, ...radios.map((r) => r.node)));
  const sync = () => {
    for (const r of radios) r.input.checked = get() === r.value;
  };
  return { node, sync };
}

function flag(label: string, key: "bands" | "letterKeys" | "autoCompile" | "vim") {
  const input = el("input", { attrs: { type: "checkbox" }, on: { change: () => settings.set({ [key]: input.checked }) } });
  const sync = () => {
    input.checked = settings.state[key];
  };
  return { node: el("label", { class: "flag" }, input, el("span", {}, label)), sync };
}

export function mountSettings(): void {
  const panel = byId("settings");
  const theme = choice<Theme>(
    "Theme",
    "theme",
    [
      ["system", "System"],
      ["light", "Light"],
      ["dark", "Dark"],
    ],
    () => settings.state.theme,
    (v) => settings.set({ theme: v }),
  );
  const palette = choice<Palette>(
    "Line colours",
    "palette",
    [
      ["soft", "Eight hues"],
      ["bluegold", "Blue to gold"],
    ],
    () => settings.state.palette,
    (v) => settings.set({ palette: v }),
  );
  const size = choice<string>(
    "Text size",
    "size",
    FONT_SIZES.map((n): [string, string] => [String(n), String(n)]),
    () => String(settings.state.fontSize),
    (v) => settings.set({ fontSize: Number(v) }),
  );
  const flags = [
    flag("Colour linked lines", "bands"),
    flag("Compile while typing", "autoCompile"),
    flag("Single-letter shortcuts", "letterKeys"),
    flag("Vim keys in the source", "vim"),
  ];
  const who = el("p", { class: "note" });
  who.hidden = true;
  panel.addEventListener("toggle", (e) => {
    if ((e as ToggleEvent).newState !== "open") return;
    void askWhoAmI().then((me) => {
      who.textContent = whoText(me);
      who.hidden = who.textContent === "";
    });
  });
  fill(panel, who, theme.node, palette.node, size.node, ...flags.map((f) => f.node));
  settings.watch(["theme", "palette", "fontSize", "bands", "autoCompile", "letterKeys", "vim"], () => {
    for (const part of [theme, palette, size, ...flags]) part.sync();
    const root = document.documentElement;
    root.dataset["palette"] = settings.state.palette;
    root.dataset["bands"] = settings.state.bands ? "on" : "off";
    root.style.setProperty("--code-size", `${settings.state.fontSize}px`);
  });
}
