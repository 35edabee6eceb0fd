// layouts: the dialog in which arrangements of the panes are saved, chosen, renamed and deleted.
import { deleteLayout, layouts, NAME_MAX, renameLayout, saveLayout, type Layout } from "../state/layouts";
import css from "../style/layouts.late.css";
import { adoptStyle } from "../style/late";
import { button, el, fill } from "./dom";
import type { Views } from "./views";

class Layouts {
  private readonly list = el("ul", { class: "layouts" });
  private readonly name = el("input", { attrs: { type: "text", maxlength: NAME_MAX, "aria-label": "Name of the layout", placeholder: "a name for what is on the screen", autocomplete: "off" } });
  private readonly fault = el("p", { class: "fault", attrs: { role: "status" } });
  private readonly dialog = el(
    "dialog",
    { attrs: { "aria-labelledby": "layouts-title" } },
    el("h2", { id: "layouts-title" }, "Layouts"),
    el("p", { class: "note" }, "Arrangements of the panes, in this browser only."),
    this.list,
    el("form", { class: "layouts-save", on: { submit: (e) => this.save(e) } }, this.name, el("button", { class: "primary", attrs: { type: "submit" } }, "Save")),
    this.fault,
    el("div", { class: "layouts-foot" }, button("As at first", "All panes, as wide as at first", () => this.reset(), "plain"), button("Close", "Close", () => this.dialog.close(), "plain")),
  );
  /** The layout whose name is being typed. */
  private naming: string | null = null;

  constructor(
    private readonly views: Views,
    private readonly say: (text: string) => void,
  ) {
    adoptStyle(css);
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", (e) => e.target === this.dialog && this.dialog.close());
  }

  open(): void {
    this.naming = null;
    this.name.value = "";
    this.draw();
    if (!this.dialog.open) this.dialog.showModal();
    this.name.focus();
  }

  private draw(): void {
    const all = layouts();
    fill(this.list, ...all.map((l) => (l.name === this.naming ? this.field(l) : this.item(l))));
    if (all.length === 0) fill(this.list, el("li", {}, el("span", { class: "note" }, "There are none yet.")));
    this.fault.textContent = "";
  }

  private item(layout: Layout): HTMLElement {
    const { name } = layout;
    const named = (label: string, what: string, run: () => void) => {
      const b = button(label, what, run);
      b.setAttribute("aria-label", `${label} ${name}`);
      return b;
    };
    return el(
      "li",
      {},
      el("b", {}, name),
      named("Use", "Arrange the panes like this", () => {
        this.dialog.close();
        this.views.useLayout(layout.arrangement);
      }),
      named("Rename", "Give it another name", () => {
        this.naming = name;
        this.draw();
        const input = this.list.querySelector("input");
        input?.focus();
        input?.select();
      }),
      named("Delete", "Forget it", () => {
        deleteLayout(name);
        this.draw();
        this.name.focus();
      }),
    );
  }

  private field({ name }: Layout): HTMLElement {
    const input = el("input", { attrs: { type: "text", maxlength: NAME_MAX, "aria-label": `New name of ${name}` } });
    input.value = name;
    const submit = (e: Event) => {
      e.preventDefault();
      const to = input.value.trim();
      const fault = to === "" ? "A layout needs a name." : renameLayout(name, to);
      if (fault === "") this.naming = null;
      if (fault === "") this.draw();
      this.fault.textContent = fault;
    };
    return el("li", {}, el("form", { class: "layouts-save", on: { submit } }, input, el("button", { class: "plain", attrs: { type: "submit" } }, "Rename")));
  }

  private save(e: Event): void {
    e.preventDefault();
    const name = this.name.value.trim();
    const fault = name === "" ? "A layout needs a name." : saveLayout(name, this.views.arrangement());
    if (fault === "") {
      this.name.value = "";
      this.draw();
      this.say(`Saved as ${name}`);
    }
    this.fault.textContent = fault;
  }

  private reset(): void {
    this.dialog.close();
    this.views.useLayout({ hidden: [], maximised: null, splits: {}, beside: false, picture: false });
  }
}

let dialog: Layouts | null = null;

export function openLayouts(views: Views, say: (text: string) => void): void {
  dialog ??= new Layouts(views, say);
  dialog.open();
}
