// shrink: the dialog that looks for a small kernel with the fault of the one on the page, and opens it or puts it in its place.
import { Problem } from "../api/problem";
import type { Shrunk } from "../api/types";
import type { AppStore } from "../state/app";
import { linesOfText } from "../state/beta1";
import { requestOf } from "../state/compiler";
import { mainName } from "../state/files";
import { writeFragment } from "../state/fragment";
import { Search, type Small } from "../state/shrink";
import { changesBetween } from "../state/upgrade";
import { viewOf } from "../state/look";
import { settings } from "../state/settings";
import { adoptStyle } from "../style/late";
import css from "../style/shrink.late.css";
import { button, el, fill, plural } from "./dom";
import { say } from "./notices";
import type { KnobEditor } from "./offers";

/** Seconds of a search. */
const SECONDS = [30, 60, 300];
const CANDIDATES = 2000;

class ShrinkDialog {
  private readonly said = el("p", { class: "note", attrs: { role: "status" } });
  private readonly seconds = el("select", { attrs: { "aria-label": "Seconds to shrink" } }, ...SECONDS.map((s) => el("option", { attrs: { value: String(s) } }, `${s} s`)));
  private readonly start = button("Begin", "Compile smaller and smaller forms of the kernel", () => void this.search(), "primary");
  private readonly stop = button("Stop here", "Keep what was found so far", () => this.asked?.end(), "plain");
  private readonly steps = el("ol", { class: "shrink-steps", attrs: { "aria-label": "Steps, the newest first", tabindex: 0 } });
  private readonly text = el("pre", { class: "shrink-text", attrs: { "aria-label": "The small kernel", tabindex: 0 } });
  private readonly open = button("Open in a new tab", "This kernel stays as it is", () => void this.openTab(), "primary");
  private readonly put = button("Put in place", "Replace the text; Ctrl+Z takes it back", () => this.replace(), "plain");
  private readonly dialog = el(
    "dialog",
    { class: "shrink", attrs: { "aria-labelledby": "shrink-title" } },
    el("h2", { id: "shrink-title" }, "Shrink"),
    el("div", { class: "shrink-ask" }, "Search for at most ", this.seconds, this.start, this.stop),
    this.said,
    this.text,
    this.steps,
    el("div", { class: "shrink-foot" }, button("Close", "Leave the source as it is", () => this.dialog.close(), "plain"), this.put, this.open),
  );
  private asked: Search | null = null;
  private small: Small | null = null;

  constructor(
    private readonly store: AppStore,
    private readonly editor: KnobEditor,
  ) {
    adoptStyle(css);
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", (e) => e.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => this.asked?.end());
    this.seconds.value = "60";
  }

  show(): void {
    if (this.dialog.open) return;
    this.clear("Statements, expressions, parameters, files, shapes and types go as long as the error keeps its code and its pass.");
    this.dialog.showModal();
    this.start.focus();
  }

  private clear(text: string): void {
    this.said.textContent = text;
    this.small = null;
    fill(this.steps);
    this.steps.hidden = this.text.hidden = this.open.hidden = this.put.hidden = this.stop.hidden = true;
    this.start.disabled = false;
  }

  private async search(): Promise<void> {
    const { patterns: _, instance: __, ...options } = requestOf(this.store.state).options ?? {};
    const budget = { seconds: Number(this.seconds.value), candidates: CANDIDATES };
    this.clear("Shrinking…");
    this.start.disabled = true;
    this.stop.hidden = false;
    const asked = new Search({ ...requestOf(this.store.state), options }, budget, (p) => asked === this.asked && this.add(p));
    this.asked = asked;
    try {
      const small = await asked.run();
      if (asked === this.asked && this.dialog.open) this.found(small);
    } catch (e) {
      if (!(e instanceof Problem)) throw e;
      if (asked === this.asked) this.clear(`The kernel could not be made smaller. ${e.message}`);
    }
  }

  private add(p: Shrunk): void {
    this.said.textContent = `Shrinking… ${plural(p.tried, "candidate")}, ${plural(p.lines, "line")}.`;
    if (p.is_kept !== true || p.what === undefined) return;
    this.steps.hidden = false;
    this.steps.prepend(el("li", { attrs: { value: p.tried } }, `${plural(p.lines, "line")}: ${p.what}`));
  }

  private found(small: Small): void {
    const { request, fault, tried, kept, lines, stopped } = small;
    this.start.disabled = false;
    this.stop.hidden = true;
    this.small = small;
    const what = fault === null ? "The fault" : `The fault ${fault.code}${fault.stage === null ? "" : ` of ${fault.stage}`}`;
    this.said.textContent = `${what} ${kept === 0 ? "is in nothing smaller" : `in ${plural(lines, "line")}`}: ${plural(tried, "candidate")}, ${kept} kept; stopped: ${stopped}.`;
    this.text.textContent = request.source ?? "";
    this.text.hidden = this.open.hidden = kept === 0;
    this.put.hidden = kept === 0 || !this.isOnlyText();
    if (kept > 0) this.open.focus();
  }

  /** What Ctrl+Z can take back: a change of the main text alone. */
  private isOnlyText(): boolean {
    return [...(this.small?.changed ?? [])].every((name) => name === "source") && this.editor.textOf(mainName(this.store.state)) !== null;
  }

  private async openTab(): Promise<void> {
    if (!this.small) return;
    const { language, target } = this.store.state;
    // the same stage of another kernel: its lines and kernels are others
    const view = { ...viewOf(this.store.state, settings.state.splits), kernelName: null, beside: null, step: null, diffFrom: null, selection: null, marked: null, tab: null, mode: "read" as const, comparedKey: null };
    const { source = "", files = [], inputs, options = {} } = this.small.request;
    const link = { source, filename: null, files, language, target, inputs: inputs && inputs.length > 0 ? inputs : null, check: options.check === true, pipeline: options.pipeline ?? "default", version: this.store.state.version, byHand: options.by_hand ?? [], patterns: "", parent: null, simulate: options.simulate === true, pin: null, view };
    window.open(`/${await writeFragment(link)}`, "_blank", "noopener");
    this.dialog.close();
  }

  private replace(): void {
    const file = mainName(this.store.state);
    const now = this.editor.textOf(file);
    const text = this.small?.request.source;
    this.dialog.close();
    if (now === null || text === undefined) return;
    this.editor.write(file, changesBetween(linesOfText(now), linesOfText(text)));
    say("The small kernel is in place. Ctrl+Z takes it back.");
  }
}

let dialog: ShrinkDialog | null = null;

export function openShrink(store: AppStore, editor: KnobEditor): void {
  dialog ??= new ShrinkDialog(store, editor);
  dialog.show();
}
