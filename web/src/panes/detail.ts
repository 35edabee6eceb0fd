// detail: how much of each line of a stage is shown: the compact form or the full text, with or without attributes.
import type { Stage } from "../api/types";
import { settings } from "../state/settings";
import { byId, el, setAttr } from "./dom";
import { icon, type IconName } from "./icons";

/** A button that is on or off, whose label may give way to its icon. */
function toggle(name: IconName, label: string, title: string, run: () => void): HTMLButtonElement {
  return el("button", { class: "quiet toggle tool", title, attrs: { type: "button", "aria-label": label, "aria-pressed": "false" }, on: { click: run } }, icon(name), el("span", {}, label));
}

export class DetailTools {
  private readonly full = toggle("text", "full text", "The text as the compiler prints it (r)", () => this.toggleFull());
  private readonly attributes = toggle("tag", "attributes", "Attributes and layouts (t)", () => this.toggleAttributes());

  constructor() {
    byId("ir-tools").prepend(this.full, this.attributes);
    settings.watch(["fullText", "attributes"], () => {
      const { fullText, attributes } = settings.state;
      this.full.setAttribute("aria-pressed", String(fullText));
      this.attributes.setAttribute("aria-pressed", String(fullText || attributes));
      setAttr(this.attributes, "disabled", fullText);
    });
  }

  /** The compact form of NISA shows or expresses every attribute; of NKI only the analysis has another form. */
  showFor(stage: Stage): void {
    const isNki = stage.dialect === "nki";
    this.full.hidden = isNki && !stage.text.includes("  # ");
    this.attributes.hidden = isNki || stage.dialect === "nisa";
  }

  toggleFull(): void {
    settings.set({ fullText: !settings.state.fullText });
  }

  toggleAttributes(): void {
    settings.set({ attributes: !settings.state.attributes, fullText: false });
  }
}
