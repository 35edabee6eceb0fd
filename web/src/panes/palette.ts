// palette: every action of the page with its key, examples and stages too, found by a part of their names.
import { fuzzyMatch, type Match } from "../state/fuzzy";
import { adoptStyle } from "../style/late";
import css from "../style/palette.late.css";
import { type Action, actionsNow } from "./actions";
import { el, fill, plural, setAttr } from "./dom";
import { keyCaps } from "./keycaps";
import type { KeyTargets } from "./keys";

const PAGE = 8;

function marked(title: string, match: Match): Node[] {
  const at = new Set(match.at);
  return [...title].map((c, i) => (at.has(i) ? el("mark", {}, c) : document.createTextNode(c)));
}

class Palette {
  private readonly input = el("input", {
    attrs: { type: "search", placeholder: "What do you want to do?", "aria-label": "Find an action", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", autocomplete: "off", spellcheck: "false" },
  });
  private readonly list = el("div", { id: "palette-list", attrs: { role: "listbox", "aria-label": "Actions" } });
  private readonly count = el("p", { class: "sr", attrs: { role: "status" } });
  private readonly dialog = el("dialog", { class: "palette", attrs: { "aria-label": "Actions" } }, this.input, this.list, this.count);
  private actions: Action[] = [];
  private shown: { action: Action; node: HTMLElement }[] = [];
  private active = 0;

  constructor() {
    adoptStyle(css);
    document.body.append(this.dialog);
    this.input.addEventListener("input", () => this.draw());
    this.input.addEventListener("keydown", (e) => this.key(e));
    this.dialog.addEventListener("click", (e) => {
      if (e.target === this.dialog) this.dialog.close();
      const at = this.shown.findIndex((s) => s.node.contains(e.target as Node));
      if (at >= 0) this.run(at);
    });
  }

  open(targets: KeyTargets): void {
    if (this.dialog.open) return;
    this.actions = actionsNow(targets);
    this.input.value = "";
    this.dialog.showModal();
    this.draw();
  }

  private key(e: KeyboardEvent): void {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE };
    const by = steps[e.key];
    const n = this.shown.length;
    if (e.key === "Enter" && n > 0) this.run(this.active);
    else if (by !== undefined && n > 0) this.mark(Math.abs(by) === 1 ? (this.active + by + n) % n : Math.min(Math.max(this.active + by, 0), n - 1));
    else if (e.key === "Escape") this.dialog.close(); // a search field would only be emptied
    else return;
    e.preventDefault();
  }

  private mark(at: number): void {
    const old = this.shown[this.active]?.node;
    if (old) setAttr(old, "aria-selected", "false");
    this.active = at;
    const node = this.shown[at]?.node;
    setAttr(this.input, "aria-activedescendant", node?.id ?? null);
    if (!node) return;
    setAttr(node, "aria-selected", "true");
    node.scrollIntoView({ block: "nearest" });
  }

  /** The focus goes back to where it was before the action, which may depend on it. */
  private run(at: number): void {
    const action = this.shown[at]?.action;
    this.dialog.close();
    action?.run();
  }

  private draw(): void {
    const query = this.input.value;
    const found = this.actions.flatMap((action) => {
      const match = fuzzyMatch(`${action.title} ${action.group}`, query);
      return match ? [{ action, match }] : [];
    });
    if (query.trim() !== "") found.sort((a, b) => b.match.score - a.match.score);
    this.shown = found.map(({ action, match }, i) => ({
      action,
      node: el(
        "div",
        { class: "palette-row", attrs: { role: "option", id: `palette-${i}`, "aria-selected": "false" } },
        el("span", { class: "what" }, ...marked(action.title, match)),
        el("span", { class: "group" }, action.group),
        el("span", { class: "key" }, ...(action.key ? keyCaps(action.key) : [])),
      ),
    }));
    fill(this.list, ...this.shown.map((s) => s.node));
    if (this.shown.length === 0) fill(this.list, el("p", { class: "note" }, "Nothing has that name."));
    this.count.textContent = plural(this.shown.length, "action");
    this.active = 0;
    this.mark(0);
  }
}

let palette: Palette | null = null;

export function openPalette(targets: KeyTargets): void {
  palette ??= new Palette();
  palette.open(targets);
}
