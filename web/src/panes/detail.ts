// detail: how much of each line of a stage is shown: the compact form or the full text, with or without attributes.
import { settings } from "../state/settings";
import { byId, setAttr, toggle } from "./dom";

export class DetailTools {
  private readonly full = toggle("full text", "The text as the compiler prints it (r)", () => this.toggleFull());
  private readonly attributes = toggle("attributes", "Attributes and layouts (t)", () => this.toggleAttributes());

  constructor() {
    byId("ir-tools").prepend(this.full, this.attributes);
    settings.watch(["fullText", "attributes"], () => {
      const { fullText, attributes } = settings.state;
      this.full.setAttribute("aria-pressed", String(fullText));
      this.attributes.setAttribute("aria-pressed", String(fullText || attributes));
      setAttr(this.attributes, "disabled", fullText);
    });
  }

  /** The compact form of NISA shows or expresses every attribute; the calls of NKI have one form only. */
  showFor(dialect: string): void {
    this.full.hidden = dialect === "nki";
    this.attributes.hidden = dialect === "nisa" || dialect === "nki";
  }

  toggleFull(): void {
    settings.set({ fullText: !settings.state.fullText });
  }

  toggleAttributes(): void {
    settings.set({ attributes: !settings.state.attributes, fullText: false });
  }
}
