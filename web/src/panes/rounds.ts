// rounds: chooses the round of each Python loop around the selection, in the history.  Loaded with the first
// selection inside a loop.
import { snippet } from "../editor/positions";
import type { AppStore } from "../state/app";
import type { KernelOutcome } from "../state/outcome";
import type { Choice } from "../state/rounds";
import { rangesOfOps, roundsOfAnchor, type Anchor } from "../state/selection";
import { choose } from "../state/view";
import css from "../style/rounds.late.css";
import { adoptStyle } from "../style/late";
import { button, el, fill } from "./dom";
import { docOf } from "./places";

adoptStyle(css);

/** The ranges whose loops are offered: those selected, or those of the selected operations. */
export function rangesOf(anchor: Anchor, kernel: KernelOutcome): readonly number[] {
  if (anchor.kind === "ranges") return anchor.ranges;
  const stage = kernel.stages[anchor.stage];
  return stage ? [...rangesOfOps(kernel.map.linksOf(stage), anchor.ops)].slice(0, 1) : [];
}

class LoopChooser {
  private readonly count: number;
  private readonly round: number | null;

  constructor(
    private readonly store: AppStore,
    private readonly kernel: KernelOutcome,
    private readonly ranges: readonly number[],
    private readonly choice: Choice,
    private readonly loop: number,
  ) {
    this.count = kernel.map.roundsOfLoop.get(loop) ?? 0;
    this.round = choice.get(loop) ?? null;
  }

  private pick(round: number | null): void {
    const rounds = new Map(this.choice);
    if (round === null) rounds.delete(this.loop);
    else rounds.set(this.loop, round);
    choose(this.store, { kind: "ranges", map: this.kernel.map, ranges: this.ranges, rounds });
  }

  private step(by: 1 | -1): void {
    const from = this.round ?? (by > 0 ? -1 : this.count);
    this.pick((from + by + this.count) % this.count);
  }

  draw(texts: ReadonlyMap<string, string>): HTMLElement {
    const header = this.kernel.map.loops[this.loop];
    const code = header ? snippet(docOf(texts, header), header, 40) : "";
    const where = header ? `${code} (line ${header.line})` : "";
    const back = button("‹", `The round before, of ${where}`, () => this.step(-1), "quiet back");
    const on = button("›", `The next round, of ${where}`, () => this.step(1), "quiet on");
    const all = button("all", `All ${this.count} rounds of ${where}`, () => this.pick(null), "quiet toggle all");
    back.setAttribute("aria-label", `previous round of ${code}`);
    on.setAttribute("aria-label", `next round of ${code}`);
    all.setAttribute("aria-label", `all rounds of ${code}`);
    all.setAttribute("aria-pressed", String(this.round === null));
    const text = this.round === null ? `${this.count} rounds` : `round ${this.round + 1} of ${this.count}`;
    return el(
      "span",
      { class: "round-chooser", title: where, attrs: { role: "group", "aria-label": `round of ${code}`, "data-loop": this.loop } },
      el("code", {}, code),
      back,
      el("span", { class: "round", attrs: { "aria-live": "polite" } }, text),
      on,
      all,
    );
  }
}

/** Fills `box` with a chooser for each loop around the selection, the outermost first.  The keyboard stays on its button. */
export function drawRounds(box: HTMLElement, store: AppStore, anchor: Anchor, kernel: KernelOutcome, texts: ReadonlyMap<string, string>): void {
  const ranges = rangesOf(anchor, kernel);
  const loops = new Set(ranges.flatMap((n) => kernel.map.loopsOf(n)));
  const choice = roundsOfAnchor(anchor, kernel);
  const focused = [...box.querySelectorAll("button")].indexOf(document.activeElement as HTMLButtonElement);
  fill(box, ...[...loops].map((loop) => new LoopChooser(store, kernel, ranges, choice, loop).draw(texts)));
  if (focused >= 0) box.querySelectorAll("button")[focused]?.focus();
}
