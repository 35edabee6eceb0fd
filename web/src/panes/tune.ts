// tune: the dialog that searches for knobs that make the kernel faster, and writes those of a point into the source.
import { isAbort } from "../api/client";
import { Problem } from "../api/problem";
import type { Tune, TuneKnob, TunePoint } from "../api/types";
import type { AppStore } from "../state/app";
import { linesOfText } from "../state/beta1";
import { mainName } from "../state/files";
import { askTune, type Tuned } from "../state/tune";
import { bytesText, time } from "../state/units";
import { changesBetween } from "../state/upgrade";
import { adoptStyle } from "../style/late";
import css from "../style/tune.late.css";
import { button, el, fill, plural } from "./dom";
import { say } from "./notices";
import type { KnobEditor } from "./offers";

/** Of a search; a job's own limit may end it earlier. */
const SECONDS = [5, 10, 30];
const CANDIDATES = 200;

function times(from: number, to: number): string {
  return `${(from / to).toFixed(2)} times faster`;
}

/** A statement that sets a knob is replaced by pass. */
function knobText(k: TuneKnob): string {
  return `line ${k.line}: ${k.writes === "pass" ? "without its knob" : k.writes}`;
}

class TuneDialog {
  private readonly said = el("p", { class: "note", attrs: { role: "status" } });
  private readonly seconds = el("select", { attrs: { "aria-label": "Seconds to search" } }, ...SECONDS.map((s) => el("option", { attrs: { value: String(s) } }, `${s} s`)));
  private readonly start = button("Search", "Try other tiles, layouts and fusions on the simulated machine", () => void this.search(), "primary");
  private readonly tried = el("ol", { class: "tune-tried", attrs: { "aria-label": "Candidates, the newest first", tabindex: 0 } });
  private readonly points = el("div", { class: "tune-points" });
  private readonly dialog = el(
    "dialog",
    { class: "tune", attrs: { "aria-labelledby": "tune-title" } },
    el("h2", { id: "tune-title" }, "Tune"),
    el("div", { class: "tune-ask" }, "Search for ", this.seconds, this.start),
    this.said,
    this.points,
    this.tried,
    el("div", { class: "tune-foot" }, button("Close", "Leave the source as it is", () => this.dialog.close(), "plain")),
  );
  private asked: AbortController | null = null;

  constructor(
    private readonly store: AppStore,
    private readonly editor: KnobEditor,
  ) {
    adoptStyle(css);
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", (e) => e.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => this.asked?.abort());
    this.seconds.value = "10";
  }

  open(): void {
    if (this.dialog.open) return;
    this.clear("Each candidate is compiled and timed on the simulated machine. No text changes until you use one.");
    this.dialog.showModal();
    this.start.focus();
  }

  private clear(text: string): void {
    this.said.textContent = text;
    fill(this.tried);
    fill(this.points);
    this.tried.hidden = this.points.hidden = true;
    this.start.disabled = false;
  }

  private async search(): Promise<void> {
    const asked = (this.asked = new AbortController());
    this.clear("Searching…");
    this.start.disabled = true;
    try {
      const budget = { seconds: Number(this.seconds.value), candidates: CANDIDATES };
      const result = await askTune(this.store.state, budget, (t) => asked === this.asked && this.add(t), asked.signal);
      if (asked === this.asked && this.dialog.open) this.show(result);
    } catch (e) {
      if (isAbort(e)) return;
      if (!(e instanceof Problem)) throw e;
      if (asked === this.asked) this.clear(`The kernel could not be tuned. ${e.message}`);
    }
  }

  /** A candidate's time is known. */
  private add(t: Tune): void {
    const what = (t.knobs ?? []).map(knobText).join(", ") || "as it is";
    const result = t.refused ? "refused" : `${time(t.us ?? 0)}, ${bytesText(t.sbuf ?? 0)} of SBUF`;
    this.tried.hidden = false;
    this.tried.prepend(el("li", { class: t.best ? "best" : "", attrs: { value: t.number ?? 0 } }, `${result}: ${what}`));
    if (t.best) this.said.textContent = `Searching… the fastest takes ${time(t.us ?? 0)}.`;
  }

  private show(result: Tuned): void {
    this.start.disabled = false;
    const { points, start_us: start } = result;
    const best = points[0];
    const count = `${plural(result.tried ?? 0, "candidate")} in ${(result.seconds ?? 0).toFixed(1)} s, ${result.refusals ?? 0} refused; stopped: ${result.stopped ?? ""}.`;
    this.said.textContent = best && best.us < start ? `${time(best.us)} instead of ${time(start)}: ${times(start, best.us)}. ${count}` : `Nothing is faster than ${time(start)}. ${count}`;
    this.points.hidden = false;
    fill(this.points, this.table(points, start));
    this.points.querySelector("button")?.focus();
  }

  private table(points: readonly TunePoint[], start: number): HTMLElement {
    const head = ["Time", "Against now", "SBUF in a partition", "Knobs", ""];
    const row = (p: TunePoint) =>
      el(
        "tr",
        {},
        el("th", { class: "num", attrs: { scope: "row" } }, time(p.us)),
        el("td", { class: "num" }, p.us < start ? times(start, p.us) : p.us > start ? "slower" : "the same"),
        el("td", { class: "num" }, bytesText(p.sbuf)),
        el("td", {}, ...(p.knobs.length === 0 ? ["as it is"] : p.knobs.map((k) => el("code", {}, knobText(k))))),
        el("td", {}, p.knobs.length === 0 ? "" : button("Use", "Write these knobs into the source; Ctrl+Z takes them back", () => this.use(p), "plain")),
      );
    return el(
      "table",
      { class: "facts" },
      el("caption", {}, "Points that no candidate beats in both time and SBUF"),
      el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { attrs: { scope: "col" } }, h)))),
      el("tbody", {}, ...points.map(row)),
    );
  }

  private use(p: TunePoint): void {
    const file = mainName(this.store.state);
    const now = this.editor.textOf(file);
    this.dialog.close();
    if (now === null) return;
    this.editor.write(file, changesBetween(linesOfText(now), linesOfText(p.source)));
    say(`${plural(p.knobs.length, "knob")} written: ${time(p.us)} on the simulated machine. Ctrl+Z takes ${p.knobs.length === 1 ? "it" : "them"} back.`);
  }
}

let dialog: TuneDialog | null = null;

export function openTune(store: AppStore, editor: KnobEditor): void {
  dialog ??= new TuneDialog(store, editor);
  dialog.open();
}
