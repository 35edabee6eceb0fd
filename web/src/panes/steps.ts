// steps: the drawer below a stage's text that goes through the rewrites of its pass: the rule, the operation that it was tried
// on, which it selects, and the lines before and after.
import { isAbort } from "../api/client";
import { Problem } from "../api/problem";
import type { Step, Steps } from "../api/types";
import type { AppStore } from "../state/app";
import { askSteps, linesOfStep, textsOf, type StepLine } from "../state/steps";
import { choose, shownStage, STAGE_KEYS, type Shown } from "../state/view";
import { adoptStyle } from "../style/late";
import css from "../style/steps.late.css";
import { byId, button, el, fill, plural, setAttr } from "./dom";
import { icon } from "./icons";

adoptStyle(css);

const HOW: Record<NonNullable<Steps["how"]>, string> = {
  rewrites: "",
  operations: "Each operation of the stage before, and what it became.",
  again: "MLIR's canonicalizer, run again one rewrite at a time: their order may have been another. It does not tell its patterns' names.",
  whole: "MLIR tells of this pass only the text before and after it.",
};

/** An answer has at most so many. */
const MANY = 500;

export class StepsPane {
  private readonly box = el("section", { id: "steps", class: "drawer", attrs: { "aria-label": "Steps", tabindex: -1 } });
  private readonly what = el("span", { class: "steps-what", attrs: { "aria-live": "polite" } });
  private readonly where = el("span", { class: "note steps-where" });
  private readonly message = el("p", { class: "steps-message", attrs: { role: "status" } });
  private readonly lines = el("div", { class: "steps-lines", attrs: { tabindex: 0, role: "region", "aria-label": "Lines before and after the step" } });
  private readonly back: HTMLButtonElement;
  private readonly next: HTMLButtonElement;
  private shown: Shown | null = null;
  private steps: Steps | null = null;
  private at = 0;
  /** The kernel and the stage that were shown last; null: none since it was opened. */
  private key: string | null = null;
  /** The number that was shown last. */
  private known = 0;
  private running: AbortController | null = null;

  constructor(private readonly store: AppStore) {
    const tool = (name: "up" | "down" | "close", title: string, run: () => void) => el("button", { class: "quiet tool", title, attrs: { type: "button", "aria-label": title }, on: { click: run } }, icon(name));
    this.back = tool("up", "Previous step ([)", () => this.step(-1));
    this.next = tool("down", "Next step (])", () => this.step(1));
    this.box.append(el("div", { class: "steps-head" }, el("b", {}, "steps"), this.back, this.where, this.next, this.what, el("span", { class: "spring" }), tool("close", "Close the steps", () => this.close())), this.message, this.lines);
    this.box.hidden = true;
    byId("history").before(this.box);
    this.box.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      if (e.key === "Escape") this.close();
      else if (e.key === "[" || e.key === "]") this.step(e.key === "]" ? 1 : -1);
      else return;
      e.preventDefault();
      e.stopPropagation();
    });
    store.watch([...STAGE_KEYS, "compiling", "pending"], () => this.follow());
    store.watch(["inspect", "picture"], () => {
      if (this.isOpen && (store.state.inspect !== null || store.state.picture)) this.close();
    });
    store.watch(["step"], () => this.goToStep());
    this.goToStep();
  }

  get isOpen(): boolean {
    return !this.box.hidden;
  }

  private close(): void {
    this.store.set({ step: null });
  }

  /** Opens, closes, or shows another step, as the state says: a link, or who leads a session, may say so. */
  private goToStep(): void {
    const { step } = this.store.state;
    if (step === null) {
      this.box.hidden = true;
      this.running?.abort();
      this.shown = this.steps = null;
      return;
    }
    if (!this.isOpen) {
      this.box.hidden = false;
      this.key = null;
      this.store.set({ inspect: null, picture: false, pane: "ir" });
      this.follow();
      this.box.focus();
    } else if (this.shown && this.steps && step !== this.number) this.show(this.shown, step);
  }

  /** The number of the step that is shown, of all of the stage. */
  private get number(): number {
    return (this.steps?.from ?? 0) + this.at;
  }

  private say(text: string): void {
    this.message.textContent = text;
    this.message.hidden = text === "";
  }

  private follow(): void {
    if (!this.isOpen) return;
    const { outcome, compiling, pending } = this.store.state;
    const shown = shownStage(this.store.state);
    if (shown && shown.stage === this.shown?.stage) return;
    this.running?.abort();
    this.shown = null;
    this.steps = null;
    this.draw();
    if (compiling || pending) this.say("The kernel is being compiled…");
    else if (!shown || outcome?.status !== "ok") this.say("There is no stage whose steps could be shown.");
    else {
      this.shown = shown;
      const { kernelName, step } = this.store.state;
      const key = `${kernelName ?? ""} ${shown.row.key}`;
      // who goes to another stage begins at its first step, unless the step has changed with it
      const first = this.key !== null && this.key !== key && step === this.known ? 0 : (step ?? 0);
      this.key = key;
      this.show(shown, first);
    }
  }

  /** Shows a step by its number, asking for it if it is not here. */
  private show(shown: Shown, step: number): void {
    const { steps } = this;
    const from = steps?.from ?? 0;
    if (steps && step >= from && step < from + (steps.steps?.length ?? 0)) {
      this.at = step - from;
      this.draw();
    } else void this.ask(shown, step < MANY ? 0 : step, step < MANY ? step : 0);
  }

  /** Asks for the steps from a number on, and shows one of them. */
  private async ask(shown: Shown, from: number, at: number): Promise<void> {
    const own = new AbortController();
    this.running = own;
    setAttr(this.box, "aria-busy", "true");
    this.say("The stage is being made again, step by step…");
    try {
      const steps = await askSteps(this.store, shown.row.kernel.name, shown.stage.index, from, own.signal);
      if (own.signal.aborted) return;
      const n = steps.steps?.length ?? 0;
      if (at >= n && steps.next !== undefined) return void this.ask(shown, steps.next, at - (steps.next - from));
      this.steps = steps;
      this.at = Math.min(at, Math.max((steps.steps?.length ?? 0) - 1, 0));
      this.draw();
    } catch (e) {
      if (isAbort(e) || own.signal.aborted) return;
      if (!(e instanceof Problem)) throw e;
      this.say(`The steps could not be made: ${e.message} `);
      this.message.append(button("Try again", "Ask again", () => void this.ask(shown, from, at), "plain"));
    } finally {
      if (!own.signal.aborted) setAttr(this.box, "aria-busy", null);
    }
  }

  private step(by: 1 | -1): void {
    const { steps, shown } = this;
    const n = steps?.steps?.length ?? 0;
    const from = steps?.from ?? 0;
    if (!steps || !shown || this.box.getAttribute("aria-busy")) return;
    const to = this.at + by;
    if (to >= 0 && to < n) {
      this.at = to;
      this.draw();
    } else if (by > 0 && steps.next !== undefined) void this.ask(shown, steps.next, 0);
    else if (by < 0 && from > 0) void this.ask(shown, Math.max(from - MANY, 0), Math.min(from, MANY) - 1);
  }

  private draw(): void {
    const { steps } = this;
    const list = steps?.steps ?? [];
    const step = list[this.at];
    const from = steps?.from ?? 0;
    if (steps) {
      this.known = this.number;
      this.store.set({ step: this.number });
    }
    this.back.disabled = !step || (this.at === 0 && from === 0);
    this.next.disabled = !step || (this.at + 1 === list.length && steps?.next === undefined);
    this.where.textContent = step ? `${from + this.at + 1} / ${from + list.length}${steps?.next === undefined ? "" : "+"}` : "";
    fill(this.what);
    fill(this.lines);
    if (!steps) return;
    if (!step) {
      this.say(steps.reason ? `There are no steps: ${steps.reason}.` : "The pass changed nothing.");
      return;
    }
    this.say(HOW[steps.how ?? "rewrites"]);
    const { op } = step;
    fill(this.what, el("b", {}, step.rule), op ? ` tried on ${op.name}` : "", op?.line === undefined ? "" : `, line ${op.line} of the stage before`);
    const [before, after] = textsOf(steps, this.at);
    const hunks = linesOfStep(step, before, after);
    if (hunks.length === 0) this.say("Only names, locations or the order of attributes differ.");
    fill(this.lines, ...hunks.map((hunk) => this.hunk(hunk)));
    this.lines.scrollTop = 0;
    this.select(step);
  }

  private hunk(lines: readonly StepLine[]): HTMLElement {
    const changed = plural(lines.filter((l) => l.kind !== "same").length, "line");
    return el("div", { class: "steps-hunk", attrs: { role: "group", "aria-label": `${changed} from line ${lines[0]?.number ?? 1} on` } }, ...lines.map(lineOf));
  }

  /** Lights what the step was tried on: in the stage's text and in the source. */
  private select({ op }: Step): void {
    const { shown } = this;
    const before = shown ? shown.row.kernel.stages.indexOf(shown.stage) - 1 : -1;
    if (shown && before >= 0 && op?.id !== undefined) choose(this.store, { kind: "ops", map: shown.row.kernel.map, stage: before, ops: [op.id] });
  }
}

function lineOf({ kind, number, text, marks }: StepLine): HTMLElement {
  const points = [...text];
  const parts: (HTMLElement | string)[] = [];
  let done = 0;
  for (const [a, b] of marks) {
    parts.push(points.slice(done, a).join(""), el("mark", {}, points.slice(a, b).join("")));
    done = b;
  }
  parts.push(points.slice(done).join(""));
  const tag = kind === "removed" ? "del" : kind === "added" ? "ins" : "span";
  return el(tag, { class: `step-line ${kind}` }, el("span", { class: "step-number", attrs: { "aria-hidden": true } }, `${kind === "removed" ? "−" : kind === "added" ? "+" : " "}${number}`), el("code", {}, ...parts));
}
