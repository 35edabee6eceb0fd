// lesson: the pane of a lesson, to the left of the kernel: the text of a step, its task, and the way through the steps.
//
// It is loaded when the first lesson is opened.  A step's kernel and view take the place of what the page shows; whatever the user
// changes then stays until the next step.
import { getLesson, readLesson } from "../api/client";
import { Problem } from "../api/problem";
import type { LessonStep } from "../api/types";
import type { AppStore } from "../state/app";
import { TODAY } from "../state/compilers";
import type { Compiler } from "../state/compiler";
import { stageOf } from "../state/goals";
import { keepProgress, needsOf, progressNamed, progressOf, textOfLink, type LessonLink, type ShownLesson } from "../state/lesson";
import { allRows, choose, selectionFromText, showStage } from "../state/view";
import { kernelOf } from "../state/outcome";
import { compilePin, jobOf } from "../state/pin";
import { newEdit } from "../state/resume";
import { adoptStyle } from "../style/late";
import css from "../style/lesson.late.css";
import { byId, button, el, fill, plural, setAttr } from "./dom";
import { TaskBox } from "./lessontask";
import { openWriter } from "./lessonwriter";
import { markdown } from "./markdown";
import { announce, say } from "./notices";
import { putBeside } from "./sidepane";

adoptStyle(css);

/** What a step's kernel does not take over from what the page showed before. */
const FRESH = { touched: false, filename: null, files: [], tab: null, language: "nkipy", inputs: null, instance: null, edited: null, byHand: [], patterns: "", notes: [], recording: null, showInputs: false, kernelName: null, anchor: null, previous: null, shared: null, parent: null, pipeline: "default", version: TODAY, beside: null, filter: "", hideUnchanged: false, marked: null, inspect: null } as const;

export class LessonPane {
  private readonly body = el("div", { class: "lesson-body", attrs: { tabindex: 0, role: "region", "aria-label": "Lesson" } });
  private readonly steps = el("ol", { class: "lesson-steps", attrs: { "aria-label": "Steps" } });
  private readonly title = el("h2", { id: "lesson-title" });
  private readonly nextButton = button("Next ›", "Next step (PageDown)", () => this.go(1), "primary");
  private readonly backButton = button("‹ Back", "Step before (PageUp)", () => this.go(-1), "plain");
  private readonly pane = el(
    "section",
    { id: "lesson-pane", class: "pane", attrs: { "aria-labelledby": "lesson-title", hidden: true } },
    el("div", { class: "pane-head" }, this.title, el("span", { class: "spring" }), button("Write", "Write a lesson of your own, beginning with this one", () => this.write(), "quiet"), this.closer()),
    this.steps,
    this.body,
    el("div", { class: "lesson-foot" }, this.backButton, button("Reset", "The kernel and the view of this step again", () => void this.show(), "plain"), el("span", { class: "spring" }), this.nextButton),
  );
  private task: TaskBox | null = null;

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
  ) {
    putBeside(this.pane, "left");
    // before the page's own keys, of which PageDown steps through the stages
    document.addEventListener("keydown", (e) => this.key(e), { capture: true });
    window.addEventListener("beforeprint", () => this.print());
    store.watch(["outcome", "compiling", "pending", "source", "stageKey", "anchor"], () => this.task?.update());
    store.watch(["lesson"], () => {
      this.pane.hidden = store.state.lesson === null;
      setAttr(document.body, "data-lesson", store.state.lesson ? "" : null);
    });
  }

  private get shown(): ShownLesson | null {
    return this.store.state.lesson;
  }

  private get step(): LessonStep | null {
    return this.shown?.lesson.steps[this.shown.step] ?? null;
  }

  /** Opens a lesson at a step, or where the user left it. */
  async open(shown: Omit<ShownLesson, "step">, step: number | null): Promise<void> {
    const last = shown.lesson.steps.length - 1;
    this.store.set({ lesson: { ...shown, step: Math.min(step ?? progressOf(shown).step, last) } });
    await this.show();
  }

  private write(): void {
    if (this.shown) void openWriter(this.shown, (lesson, text, step) => void this.open({ lesson, name: null, text }, step));
  }

  private closer(): HTMLButtonElement {
    const b = button("×", "Close the lesson; the kernel stays", () => this.close());
    b.setAttribute("aria-label", "Close the lesson");
    return b;
  }

  private close(): void {
    this.task = null;
    this.store.set({ lesson: null });
    byId("example").focus();
  }

  private key(e: KeyboardEvent): void {
    if (!this.shown || e.defaultPrevented || (e.key !== "PageDown" && e.key !== "PageUp") || e.ctrlKey || e.metaKey || e.shiftKey) return;
    const at = e.target instanceof Element ? e.target : document.body;
    if (at.closest("dialog") || document.documentElement.dataset["present"] !== undefined) return;
    if (!e.altKey && at.closest("input, textarea, select, .cm-editor, #stages")) return; // there these keys scroll
    e.preventDefault();
    this.go(e.key === "PageDown" ? 1 : -1);
  }

  private go(by: 1 | -1): void {
    const { shown, step } = this;
    if (!shown || !step) return;
    if (by > 0 && (!step.task || this.task?.isDone)) keepProgress(shown, true);
    const to = shown.step + by;
    if (to < 0) return;
    if (to >= shown.lesson.steps.length) {
      void this.finish();
      return;
    }
    this.store.set({ lesson: { ...shown, step: to } });
    void this.show();
  }

  /** After the last step: the lesson that comes next, or the list. */
  private async finish(): Promise<void> {
    const { lessons } = this.store.state;
    const next = lessons[lessons.findIndex((l) => l.name === this.shown?.name) + 1];
    if (next && this.shown?.name) {
      say(`The lesson is done. Next: ${next.title}`);
      await this.openLink({ name: next.name, packed: null, step: 0 });
      return;
    }
    this.draw();
    say("The lesson is done.");
  }

  /** Shows the step: its text at once, its kernel and view as soon as they are compiled. */
  private async show(): Promise<void> {
    const { shown, step } = this;
    if (!shown || !step) return;
    keepProgress(shown, false);
    this.draw();
    announce(`Step ${shown.step + 1} of ${shown.lesson.steps.length}: ${step.title}`);
    const { view } = step;
    const target = view.target ?? "trn2";
    const needs = needsOf(step);
    const isShown = () => this.step === step;
    // a result that does not fit the new step must not be judged
    this.store.set({ ...FRESH, source: step.kernel, target, ...needs, mode: "read", stageKey: view.stage ?? null, diffFrom: null, step: null, picture: view.picture, comparedKey: view.compared ?? null, pinned: null, pane: "source" });
    await this.compiler.now();
    if (isShown() && step.edit) await this.applyEdit(step.edit, isShown);
    if (!isShown()) return;
    if (step.before !== undefined) {
      this.store.set({ pinned: { job: jobOf({ ...this.store.state, source: step.before, edited: null }), outcome: null, problem: null, name: "before" } });
      void compilePin(this.store);
    }
    this.look(step);
    this.task?.update();
  }

  private async applyEdit({ stage, old, new: changed }: NonNullable<LessonStep["edit"]>, isShown: () => boolean): Promise<void> {
    const row = allRows(this.store.state).find((r) => r.key === stage) ?? null;
    const edited = row && newEdit(this.store.state, row);
    if (!edited || !isShown()) return;
    this.store.set({ edited: { ...edited, text: edited.text.replace(old, () => changed) } });
    await this.compiler.now();
  }

  private look({ view }: LessonStep): void {
    const { store } = this;
    const kernel = kernelOf(store.state.outcome, null);
    store.set({ mode: view.mode, stageKey: view.stage === "last" ? null : (view.stage ?? null), beside: view.beside ?? null, ...(view.mode === "read" ? {} : { pane: "ir" as const }) });
    if (view.diff !== undefined) store.set({ diffFrom: view.diff === "previous" ? "" : view.diff });
    const stage = stageOf(kernel, view.stage ?? "last");
    const line = view.line === undefined || !stage ? -1 : stage.text.split("\n").findIndex((l) => l.includes(view.line ?? ""));
    const op = stage?.lines[line]?.op;
    if (view.selected !== undefined) choose(store, selectionFromText(store.state, view.selected));
    else if (kernel && stage && op !== undefined) choose(store, { kind: "ops", map: kernel.map, stage: stage.index, ops: [op] });
    else if (line >= 0) store.set({ marked: { pane: "ir", first: line + 1, last: line + 1 }, reveal: store.state.reveal + 1 });
    if (view.inspect) store.set({ inspect: view.inspect });
  }

  private draw(): void {
    const { shown, step } = this;
    if (!shown || !step) return;
    const { lesson, step: at } = shown;
    const { done } = progressOf(shown);
    this.title.textContent = lesson.title;
    fill(this.steps, ...lesson.steps.map((s, i) => this.dot(s.title, i, at, done.includes(i))));
    this.task = step.task ? new TaskBox(step.task, this.store, this.compiler, (done) => this.taskDone(done)) : null;
    const open = (key: string) => this.openStage(key);
    fill(this.body, at === 0 ? el("div", { class: "lesson-summary" }, ...markdown(lesson.summary, open)) : null, el("h3", {}, `${at + 1}. ${step.title}`), ...markdown(step.text, open), this.task && el("div", { class: "lesson-task" }, el("h4", {}, step.task?.kind === "choose" ? "Predict" : "Task"), ...markdown(step.task?.text ?? "", open), this.task.box), this.end(at === lesson.steps.length - 1));
    this.body.scrollTop = 0;
    this.backButton.disabled = at === 0;
    this.nextButton.textContent = at === lesson.steps.length - 1 ? "Done" : "Next ›";
  }

  /** Below the last step: the list of lessons, with the progress in each. */
  private end(isLast: boolean): HTMLElement | null {
    const { lessons } = this.store.state;
    if (!isLast || lessons.length === 0) return null;
    const one = ({ name, title, steps }: (typeof lessons)[number]) => {
      const n = progressNamed(name).done.length;
      return el("li", {}, el("a", { attrs: { href: `#lesson=${encodeURIComponent(name)}`, "aria-current": name === this.shown?.name ? "page" : null } }, title), el("span", { class: "note" }, n >= steps ? " ✓ done" : n > 0 ? ` ${n} of ${plural(steps, "step")} done` : ""));
    };
    return el("nav", { class: "lesson-list", attrs: { "aria-label": "Lessons" } }, el("h4", {}, "Lessons"), el("ol", {}, ...lessons.map(one)));
  }

  private dot(title: string, i: number, at: number, isDone: boolean): HTMLElement {
    const run = () => {
      if (!this.shown) return;
      this.store.set({ lesson: { ...this.shown, step: i } });
      void this.show();
    };
    const b = button(isDone && i !== at ? "✓" : String(i + 1), `Step ${i + 1}: ${title}${isDone ? " (done)" : ""}`, run, isDone ? "dot done" : "dot");
    b.setAttribute("aria-label", b.title);
    if (i === at) b.setAttribute("aria-current", "step");
    return el("li", {}, b);
  }

  private taskDone(done: boolean): void {
    if (!done || !this.shown) return;
    keepProgress(this.shown, true);
    const dot = this.steps.children[this.shown.step]?.firstElementChild;
    dot?.classList.add("done");
    announce("The task is done.");
  }

  private openStage(key: string): void {
    const row = allRows(this.store.state).find((r) => r.key === key);
    if (!row) return;
    this.store.set({ mode: "read", pane: "ir" });
    showStage(this.store, row);
  }

  async openLink({ name, packed, step }: LessonLink): Promise<void> {
    try {
      const text = name === null ? await textOfLink(packed ?? "") : null;
      const lesson = text === null ? await getLesson(name ?? "") : await readLesson(text);
      await this.open({ lesson, name, text }, step);
    } catch (e) {
      if (e instanceof Problem && e.code === "not-found") say(`There is no lesson “${name ?? ""}” on this server.`);
      else if (e instanceof Problem) say(`The lesson cannot be opened: ${e.message}`);
      else say("The link is damaged: its lesson cannot be read. Was it cut when it was copied?");
    }
  }

  /** On paper: all steps, with their kernels and tasks. */
  private print(): void {
    const { shown } = this;
    if (!shown) return;
    const none = () => undefined;
    fill(
      byId("print"),
      el("h1", {}, shown.lesson.title),
      ...markdown(shown.lesson.summary, none),
      ...shown.lesson.steps.flatMap((s, i) => [
        el("h2", {}, `${i + 1}. ${s.title}`),
        ...markdown(s.text, none),
        i === 0 || shown.lesson.steps[i - 1]?.kernel !== s.kernel ? el("pre", {}, s.kernel) : null,
        ...(s.task ? [el("h2", {}, "Task"), ...markdown(s.task.text, none), ...(s.task.choices ?? []).map((c) => el("p", {}, `☐ ${c}`))] : []),
      ]).filter((n) => n !== null),
    );
  }
}

let pane: LessonPane | null = null;

export async function openLesson(store: AppStore, compiler: Compiler, link: LessonLink): Promise<void> {
  pane ??= new LessonPane(store, compiler);
  await pane.openLink(link);
}

/** A lesson from a file of the user's. */
export async function openLessonText(store: AppStore, compiler: Compiler, text: string): Promise<void> {
  const lesson = await readLesson(text);
  pane ??= new LessonPane(store, compiler);
  await pane.open({ lesson, name: null, text }, 0);
}
