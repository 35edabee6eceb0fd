// lessontask: the task of a lesson's step: goals that the kernel must meet, a choice, or a stage or a line to point at.
import type { LessonCondition, LessonTask } from "../api/types";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { inWords, judge, stageOf } from "../state/goals";
import { kernelOf } from "../state/outcome";
import { currentRow } from "../state/view";
import { button, el, fill } from "./dom";

const SIGN = { done: "✓", open: "○", wrong: "✕" } as const;

export class TaskBox {
  readonly box = el("div", { class: "task-box" });
  isDone = false;
  private readonly verdict = el("p", { class: "task-verdict", attrs: { role: "status" } });
  private readonly goals: { goal: LessonCondition; row: HTMLElement }[] = [];
  private answer: HTMLButtonElement | null = null;

  constructor(
    private readonly task: LessonTask,
    private readonly store: AppStore,
    private readonly compiler: Compiler,
    private readonly done: (isDone: boolean) => void,
  ) {
    if (task.kind === "change") this.drawGoals();
    else if (task.kind === "choose") this.drawChoices();
    else this.drawClick();
    this.box.append(this.verdict);
  }

  /** The page shows another result, or another place of it. */
  update(): void {
    if (this.task.kind === "change") this.judgeGoals();
    else if (this.answer) this.nameAnswer(this.answer);
  }

  private finish(): void {
    if (this.isDone) return;
    this.isDone = true;
    this.box.classList.add("done");
    this.done(true);
  }

  private tell(sign: keyof typeof SIGN, text: string): void {
    this.verdict.dataset["sign"] = sign;
    fill(this.verdict, el("span", { class: "task-sign", attrs: { "aria-hidden": true } }, SIGN[sign]), ` ${text}`);
  }

  // ---- goals

  private drawGoals(): void {
    for (const goal of this.task.goals ?? []) this.goals.push({ goal, row: el("li", {}) });
    const solve = () => {
      this.store.set({ source: this.task.solution ?? "", edited: null, touched: true });
      void this.compiler.now();
    };
    this.box.append(el("ul", { class: "task-goals", attrs: { "aria-label": "Goals, judged as you type" } }, ...this.goals.map((g) => g.row)), button("Show a solution", "Put a kernel that meets the goals into the editor", solve, "plain"));
  }

  private judgeGoals(): void {
    const { outcome, compiling, pending, source } = this.store.state;
    if (compiling || pending || !outcome || outcome.status === "running" || [...outcome.texts.values()][0] !== source) return;
    let all = true;
    for (const { goal, row } of this.goals) {
      const { holds, found } = judge(goal, outcome, source);
      all &&= holds;
      row.className = holds ? "holds" : "";
      fill(row, el("span", { class: "task-sign", attrs: { "aria-label": holds ? "met" : "not met" } }, holds ? SIGN.done : SIGN.open), ` ${inWords(goal)}`, holds || found === "" ? null : el("span", { class: "note" }, ` (now: ${found})`));
    }
    if (all) this.tell("done", this.task.says ?? "All goals are met.");
    else fill(this.verdict);
    if (all) this.finish();
  }

  // ---- a choice

  private drawChoices(): void {
    const buttons = (this.task.choices ?? []).map((text, i) =>
      button(text, `Answer: ${text}`, () => this.choose(buttons, i), "choice"),
    );
    this.box.append(el("div", { class: "task-choices", attrs: { role: "group", "aria-label": "Answers" } }, ...buttons));
  }

  private choose(buttons: HTMLButtonElement[], i: number): void {
    const isRight = i === this.task.answer;
    const b = buttons[i];
    b?.classList.add(isRight ? "right" : "wrong");
    if (b) b.textContent = `${this.task.choices?.[i] ?? ""} ${isRight ? SIGN.done : SIGN.wrong}`;
    if (!isRight) {
      this.tell("wrong", "Not that. Look at the stage and try again.");
      return;
    }
    this.tell("done", this.task.says ?? "Right.");
    this.finish();
  }

  // ---- a stage or a line

  private drawClick(): void {
    this.answer = button("", "", () => this.judgeClick(), "plain");
    this.nameAnswer(this.answer);
    this.box.append(this.answer);
  }

  /** The text of the selected line of the shown stage; null if none is selected. */
  private selectedLine(): string | null {
    const { anchor, outcome, marked } = this.store.state;
    const row = currentRow(this.store.state);
    if (!row?.stage) return null;
    const lines = row.stage.text.split("\n");
    if (anchor?.kind === "ops" && anchor.map === kernelOf(outcome, null)?.map && row.kernel.stages[anchor.stage] === row.stage) {
      const at = row.stage.lines.findIndex((l) => l.op !== undefined && anchor.ops.includes(l.op));
      return lines[at] ?? null;
    }
    return marked?.pane === "ir" ? lines.slice(marked.first - 1, marked.last).join("\n") : null;
  }

  private nameAnswer(b: HTMLButtonElement): void {
    const stage = currentRow(this.store.state)?.key ?? "";
    const line = this.selectedLine();
    const label = this.task.line === undefined ? `It is the stage that is open: ${stage}` : line === null ? "Select a line of a stage, then answer" : `It is the selected line of ${stage}`;
    b.textContent = label;
    b.title = label;
    b.disabled = this.task.line !== undefined && line === null;
  }

  private judgeClick(): void {
    const { outcome } = this.store.state;
    const row = currentRow(this.store.state);
    const wanted = stageOf(kernelOf(outcome, null), this.task.stage ?? "");
    const isStage = row?.stage !== null && row?.stage === wanted;
    const isLine = this.task.line === undefined || this.selectedLine()?.includes(this.task.line) === true;
    if (isStage && isLine) {
      this.tell("done", this.task.says ?? "Right.");
      this.finish();
    } else this.tell("wrong", this.task.line !== undefined && isStage ? "The stage is right, the line is another." : "Not that one. Look on.");
  }
}
