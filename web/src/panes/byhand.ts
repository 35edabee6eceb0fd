// byhand: the dialog in which the user takes the pipeline apart: the shown stage's pass is left out or gets options, another pass
// runs after it; all changes are listed and can be taken back.
import type { AppStore } from "../state/app";
import { giveOptions, leaveOut, MOST, nameInChange, optionsOf, passesFor, putIn } from "../state/byhand";
import type { Compiler } from "../state/compiler";
import { currentRow, STAGE_KEYS } from "../state/view";
import { adoptStyle } from "../style/late";
import css from "../style/byhand.late.css";
import { button, el, fill } from "./dom";

const OWN_OPTIONS = "Options of this pass";

class ByHand {
  private readonly body = el("div", { class: "by-hand" });
  private readonly dialog = el("dialog", { id: "by-hand", attrs: { "aria-labelledby": "by-hand-title" } }, el("h2", { id: "by-hand-title" }, "The pipeline by hand"), this.body);

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
  ) {
    adoptStyle(css);
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", (e) => e.target === this.dialog && this.dialog.close());
    store.watch([...STAGE_KEYS, "byHand"], () => this.dialog.open && this.draw());
  }

  open(): void {
    this.draw();
    if (!this.dialog.open) this.dialog.showModal();
  }

  private change(byHand: readonly string[]): void {
    this.store.set({ byHand, touched: true, edited: null });
    void this.compiler.now();
  }

  private add(change: string): void {
    const { byHand } = this.store.state;
    if (byHand.length < MOST.changes) this.change([...byHand, change]);
  }

  private remove(at: number): void {
    this.change(this.store.state.byHand.filter((_, i) => i !== at));
  }

  /** Leaving out, options, and a pass after the shown stage. */
  private ofStage(): (Node | null)[] {
    const { state } = this.store;
    const row = currentRow(state);
    if (!row) return [];
    const name = nameInChange(row.kernel, row);
    const title = el("h3", {}, `${row.index} ${row.name}`);
    if (name === null) return [title, el("p", { class: "note" }, "You put this pass in. The list below takes it out again.")];
    const without = state.byHand.indexOf(leaveOut(name));
    const box = el("input", { attrs: { type: "checkbox", checked: without >= 0 }, on: { change: () => (without >= 0 ? this.remove(without) : this.add(leaveOut(name))) } });
    const known = state.passes.find((p) => p.name === row.name && passesFor([p], row.dialect).length > 0)?.options ?? "";
    return [title, el("label", {}, box, "leave this pass out"), this.optionsForm(name, known), this.passForm(name, row.dialect)];
  }

  private optionsForm(name: string, known: string): HTMLElement | null {
    if (known === "") return null;
    const input = el("input", { attrs: { type: "text", "aria-label": OWN_OPTIONS, placeholder: "name=value", value: optionsOf(this.store.state.byHand, name), maxlength: 160, autocomplete: "off", spellcheck: "false" } });
    const give = (e: Event) => {
      e.preventDefault();
      const others = this.store.state.byHand.filter((c) => !c.startsWith(`with ${name}{`));
      this.change(input.value.trim() ? [...others, giveOptions(name, input.value.trim())] : others);
    };
    return el("form", { on: { submit: give } }, el("span", {}, "options"), input, el("button", { class: "plain", attrs: { type: "submit" } }, "Set"), el("span", { class: "note" }, `It has: ${known.replaceAll(" ", ", ")}`));
  }

  private passForm(name: string, dialect: string): HTMLElement | null {
    const passes = passesFor(this.store.state.passes, dialect);
    if (passes.length === 0) return null;
    const select = el("select", { attrs: { "aria-label": "The pass" } }, ...passes.map((p) => el("option", { title: p.summary, attrs: { value: p.name } }, p.name)));
    const options = el("input", { attrs: { type: "text", "aria-label": "Its options", maxlength: 160, autocomplete: "off", spellcheck: "false" } });
    const what = el("span", { class: "note" });
    const say = () => {
      const pass = passes.find((p) => p.name === select.value);
      what.textContent = pass?.summary ?? "";
      options.hidden = !pass?.options;
      options.placeholder = (pass?.options ?? "").split(" ").map((o) => `${o}=…`).join(" ");
    };
    select.addEventListener("change", say);
    say();
    const run = (e: Event) => {
      e.preventDefault();
      this.add(putIn(name, select.value, options.hidden ? "" : options.value.trim()));
    };
    return el("form", { on: { submit: run } }, el("span", {}, "after it, run"), select, options, el("button", { class: "plain", attrs: { type: "submit" } }, "Put in"), what);
  }

  /** A result may arrive while the user is in the dialog: what is focused and what was chosen for this stage stays. */
  private draw(): void {
    const keyOf = (e: Element) => `${e.tagName} ${e.getAttribute("aria-label") ?? ""} ${e.textContent}`;
    const stage = () => this.body.querySelector("h3")?.textContent;
    const fields = () => [...this.body.querySelectorAll<HTMLSelectElement | HTMLInputElement>("select, input[type=text]")];
    const focused = document.activeElement;
    const key = focused && this.body.contains(focused) ? keyOf(focused) : null;
    const [before, old] = [stage(), fields()];
    this.fillBody();
    for (const now of fields()) {
      const same = old.find((e) => keyOf(e) === keyOf(now));
      // the options of the stage's own pass are those of the list below, unless somebody writes there
      if (!same || before !== stage() || (now.ariaLabel === OWN_OPTIONS && same !== focused)) continue;
      now.value = same.value;
      if (now instanceof HTMLSelectElement) now.dispatchEvent(new Event("change"));
    }
    if (key === null) return;
    const all = [...this.body.querySelectorAll<HTMLElement>("input, select, button")];
    (all.find((e) => keyOf(e) === key) ?? all.at(-1))?.focus();
  }

  private fillBody(): void {
    const { byHand, problem } = this.store.state;
    const list = byHand.map((c, i) => el("li", {}, el("code", {}, c), button("take back", `Take back: ${c}`, () => this.remove(i))));
    fill(
      this.body,
      ...this.ofStage(),
      problem ? el("p", { class: "wrong", attrs: { role: "alert" } }, problem.message) : null,
      el("h3", {}, "Changes"),
      list.length > 0 ? el("ol", {}, ...list) : el("p", { class: "note" }, "None: the pipeline runs as it is."),
      el("p", { class: "foot" }, list.length > 0 ? button("Take all back", "The pipeline runs as it is", () => this.change([]), "plain") : null, button("Close", "Close (Esc)", () => this.dialog.close(), "plain")),
    );
  }
}

let dialog: ByHand | null = null;

export function openByHand(store: AppStore, compiler: Compiler): void {
  dialog ??= new ByHand(store, compiler);
  dialog.open();
}
