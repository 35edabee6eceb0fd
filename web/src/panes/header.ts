// header: what is compiled (example, kernel, target), the compile's status, and the main buttons.
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { TODAY } from "../state/compilers";
import { keptDraft } from "../state/draft";
import { pipelineOf } from "../state/fragment";
import { LANGUAGES } from "../state/languages";
import { blame, kernelOf, type Outcome } from "../state/outcome";
import { settings, type Theme } from "../state/settings";
import { showTheme } from "../state/theme";
import { allRows } from "../state/view";
import { byId, el, fill, ms, plural } from "./dom";
import { icon } from "./icons";

const CUSTOM = "";
const LESSON = "lesson:";

export interface HeaderActions {
  openExample(name: string): void;
  /** Opens the user's kept kernel. */
  openDraft(): void;
  openLesson(name: string): void;
  share(): void;
  help(): void;
  downloads(): void;
}

interface Choice {
  value: string;
  label: string;
  title?: string;
  /** The heading under which the list shows it, with its neighbours of the same. */
  group?: string;
}

const drawn = new WeakMap<HTMLSelectElement, string>();

function options(select: HTMLSelectElement, list: readonly Choice[], chosen: string): void {
  const text = JSON.stringify(list);
  if (drawn.get(select) === text) {
    if (select.value !== chosen) select.value = chosen;
    return;
  }
  drawn.set(select, text);
  fill(select);
  for (const { value, label, title, group } of list) {
    const option = el("option", title ? { title } : {}, label);
    option.value = value;
    const last = select.lastElementChild;
    if (group === undefined) select.append(option);
    else if (last instanceof HTMLOptGroupElement && last.label === group) last.append(option);
    else select.append(el("optgroup", { attrs: { label: group } }, option));
  }
  select.value = chosen;
}

function examplePicker(store: AppStore, actions: HeaderActions): void {
  const select = byId<HTMLSelectElement>("example");
  store.watch(["examples", "lessons", "lesson", "source", "files"], () => {
    const { examples, lessons, lesson, source, files } = store.state;
    const same = files.length === 0 ? examples.find((e) => e.source === source) : undefined;
    const list: Choice[] = examples.map((e) => ({ value: e.name, label: e.title, group: e.group }));
    if (!same || keptDraft()) list.unshift({ value: CUSTOM, label: "Your kernel" });
    list.push(...lessons.map((l, i) => ({ value: LESSON + l.name, label: `${i + 1}. ${l.title}`, group: "Lessons" })));
    if (lesson && lesson.name === null) list.push({ value: LESSON, label: lesson.lesson.title, group: "Lessons" });
    options(select, list, lesson ? LESSON + (lesson.name ?? "") : (same?.name ?? CUSTOM));
  });
  select.addEventListener("change", () => {
    if (select.value === CUSTOM) actions.openDraft();
    else if (select.value.startsWith(LESSON)) actions.openLesson(select.value.slice(LESSON.length));
    else actions.openExample(select.value);
  });
}

function kernelPicker(store: AppStore): void {
  const select = byId<HTMLSelectElement>("kernel");
  store.watch(["outcome", "previous", "kernelName"], () => {
    const { outcome, previous, kernelName } = store.state;
    const from = outcome && outcome.kernels.length > 0 ? outcome : previous;
    const names = from?.kernels.map((k) => k.name) ?? [];
    byId("kernel-picker").hidden = names.length < 2;
    options(
      select,
      names.map((n) => ({ value: n, label: n })),
      kernelOf(from, kernelName)?.name ?? "",
    );
  });
  select.addEventListener("change", () => store.set({ kernelName: select.value, anchor: null }));
}

function targetPicker(store: AppStore, compiler: Compiler): void {
  const select = byId<HTMLSelectElement>("target");
  store.watch(["targets", "target"], () => {
    const { targets, target } = store.state;
    const list = targets.map((t) => ({ value: t.name, label: t.name, title: `${t.title}, ${t.core}` }));
    options(select, list.length > 0 ? list : [{ value: target, label: target }], target);
    const known = targets.find((t) => t.name === target);
    select.title = known ? `${known.title}, ${known.core}` : "Target";
  });
  select.addEventListener("change", () => {
    store.set({ target: select.value });
    void compiler.now();
  });
}

const PIPELINES: readonly Choice[] = [
  { value: "default", label: "all stages", title: "Every stage of this compiler" },
  { value: "reference", label: "reference", title: "Only the stages that the reference compiler has" },
];

/** NKI kernels have stages of their own, so there is nothing to choose. */
function pipelinePicker(store: AppStore, compiler: Compiler): void {
  const select = byId<HTMLSelectElement>("pipeline");
  store.watch(["pipeline"], () => options(select, PIPELINES, store.state.pipeline));
  store.watch(["outcome"], () => {
    const kernels = store.state.outcome?.kernels ?? [];
    if (kernels.length > 0) byId("pipeline-picker").hidden = kernels.every((k) => k.pipeline === "nki");
  });
  select.addEventListener("change", () => {
    store.set({ pipeline: pipelineOf(select.value) });
    void compiler.now();
  });
}

/** Shown where there is a choice, or a link names a version that is not there. */
function versionPicker(store: AppStore, compiler: Compiler): void {
  const select = byId<HTMLSelectElement>("version");
  store.watch(["versions", "version"], () => {
    const { versions, version } = store.state;
    const list: Choice[] = versions.map((v) => ({ value: v.is_current ? TODAY : v.pipeline, label: v.is_current ? "today's" : `version ${v.name}`, title: `Release ${v.release}, pipeline ${v.pipeline}` }));
    if (version !== TODAY && !list.some((c) => c.value === version)) list.push({ value: version, label: version, title: "It is not installed here" });
    byId("version-picker").hidden = list.length < 2;
    options(select, list, version);
  });
  select.addEventListener("change", () => {
    store.set({ version: select.value });
    void compiler.now();
  });
}

function languagePicker(store: AppStore, compiler: Compiler): void {
  const select = byId<HTMLSelectElement>("language");
  const list = LANGUAGES.map((l) => ({ value: l.name, label: l.label }));
  store.watch(["language"], () => options(select, list, store.state.language));
  select.addEventListener("change", () => {
    store.set({ language: select.value, inputs: null, showInputs: false, anchor: null });
    void compiler.now();
  });
}

interface StatusText {
  kind: "ok" | "warn" | "error" | "ours" | "quiet";
  text: string;
  title: string;
}

/** What was checked, and with what result; "" if nothing was.  It claims no more than the data says. */
export function checkedText(outcome: Outcome): string {
  const stages = outcome.kernels.flatMap((k) => k.stages);
  const checks = stages.flatMap((s) => (s.check ? [s.check] : []));
  if (checks.length === 0) return "";
  const failed = checks.filter((c) => c.status === "fail").length;
  const done = checks.filter((c) => c.status !== "skipped").length;
  if (done === 0) return "no stage checked";
  const which = done === stages.length ? `all ${done} stages checked` : `${done} of ${stages.length} stages checked`;
  return failed > 0 ? `${which}, ${failed} ${failed === 1 ? "differs" : "differ"} from NumPy` : `${which}, all pass`;
}

/** Why stages were not checked, each reason once. */
function uncheckedText(outcome: Outcome): string {
  const reasons = new Map<string, string[]>();
  for (const s of outcome.kernels.flatMap((k) => k.stages)) {
    if (s.check && s.check.status !== "skipped") continue;
    const reason = s.check?.reason ?? "the time for checks was up";
    reasons.set(reason, [...(reasons.get(reason) ?? []), s.name]);
  }
  return [...reasons].map(([reason, names]) => `not checked: ${names.length > 3 ? plural(names.length, "stage") : names.join(", ")} (${reason})`).join("\n");
}

function finished(outcome: Outcome, stages: number): StatusText {
  const errors = outcome.diagnostics.filter((d) => d.severity === "error");
  const warnings = outcome.diagnostics.filter((d) => d.severity === "warning").length;
  const checked = checkedText(outcome);
  // the time of the checks is not the compiler's
  const passes = outcome.kernels.reduce((us, k) => us + k.stages.reduce((sum, s) => sum + s.time_us, 0), 0);
  const us = checked === "" ? outcome.timeUs : passes;
  const parts = [`${ms(outcome.timeUs)} ms ${checked === "" ? "in the compiler" : "with the checks"}, ${outcome.roundTripMs.toFixed(0)} ms until the page had it`];
  if (outcome.isCached) parts.push("The server had compiled this before.");
  if (checked !== "") parts.push(`${checked}: each runs on random inputs and is compared with NumPy`, uncheckedText(outcome));
  const title = parts.filter((t) => t !== "").join("\n");
  const reached = plural(stages, "stage");
  if (outcome.status === "ok") {
    const also = warnings > 0 ? ` · ${plural(warnings, "warning")}` : "";
    const isWrong = outcome.kernels.some((k) => k.stages.some((s) => s.check?.status === "fail"));
    const cached = outcome.isCached ? " · cached" : "";
    const text = `${isWrong ? "✕" : "✓"} ${reached} · ${ms(us)} ms${cached}${checked === "" ? "" : ` · ${checked}`}${also}`;
    return { kind: isWrong ? "error" : warnings > 0 ? "warn" : "ok", text, title };
  }
  const worst = errors.find((d) => blame(d) !== "kernel");
  if (worst && blame(worst) === "ours") return { kind: "ours", text: `⚠ a fault of ours · ${reached}`, title: worst.message };
  if (worst) return { kind: "warn", text: `◷ ${worst.code.replaceAll("-", " ")} · ${reached}`, title: worst.message };
  const count = plural(Math.max(errors.length, 1), "error");
  return { kind: "error", text: stages > 0 ? `✕ ${count} · ${reached} reached` : `✕ ${count}`, title };
}

function ordinal(n: number): string {
  const teen = n % 100 >= 11 && n % 100 <= 13;
  return `${n}${teen ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th")}`;
}

function statusOf(store: AppStore): StatusText {
  const { compiling, outcome, pending, problem } = store.state;
  if (compiling && outcome && outcome.queued > 0) {
    return { kind: "quiet", text: `waiting · ${ordinal(outcome.queued)} in the queue`, title: "Every worker is busy." };
  }
  if (compiling) return { kind: "quiet", text: "compiling…", title: "" };
  if (problem) return { kind: problem.kind === "request" ? "error" : "ours", text: "✕ not compiled", title: problem.message };
  if (!outcome) return { kind: "quiet", text: "", title: "" };
  if (pending && !settings.state.autoCompile) return { kind: "quiet", text: "edited · Ctrl+Enter compiles", title: "" };
  if (outcome.status === "cut") return { kind: "quiet", text: "cancelled", title: "" };
  return finished(outcome, allRows(store.state).filter((r) => !r.stale && r.stage).length);
}

function status(store: AppStore): void {
  const out = byId("status");
  let late = 0;
  let queued = 0;
  let isLate = false;
  const draw = () => {
    const s = statusOf(store);
    queued = store.state.outcome?.queued ?? 0;
    out.textContent = s.text;
    out.title = s.title;
    out.dataset["kind"] = s.kind;
  };
  // a quick compilation goes from one result to the next without a message in between
  store.watch(["compiling"], () => {
    window.clearTimeout(late);
    isLate = false;
    if (!store.state.compiling) draw();
    else
      late = window.setTimeout(() => {
        isLate = true;
        draw();
      }, 400);
  });
  // meanwhile the message is that of the result before
  store.watch(["compiling", "pending"], () => {
    const { compiling, pending } = store.state;
    out.setAttribute("aria-busy", String(compiling || (pending && settings.state.autoCompile)));
  });
  store.watch(["outcome", "pending", "problem"], () => {
    const { compiling, outcome } = store.state;
    if (!compiling || (isLate && (outcome?.queued ?? 0) !== queued)) draw();
  });
}

/** Shows the thin bar and the Cancel button after 0.4 s. */
function progress(store: AppStore, compiler: Compiler): void {
  const cancel = byId<HTMLButtonElement>("cancel");
  cancel.addEventListener("click", () => compiler.cancel());
  let late = 0;
  store.watch(["compiling"], () => {
    window.clearTimeout(late);
    document.body.classList.toggle("compiling", store.state.compiling);
    if (store.state.compiling) {
      late = window.setTimeout(() => {
        document.body.classList.add("waiting");
        cancel.hidden = false;
      }, 400);
    } else {
      document.body.classList.remove("waiting");
      cancel.hidden = true;
    }
  });
}

function checkButton(store: AppStore, compiler: Compiler): void {
  const check = byId<HTMLButtonElement>("check");
  check.addEventListener("click", () => {
    store.set({ check: !store.state.check });
    void compiler.now();
  });
  store.watch(["check"], () => check.setAttribute("aria-pressed", String(store.state.check)));
}

const NEXT_THEME: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

function themeButton(): void {
  const b = byId<HTMLButtonElement>("theme");
  b.addEventListener("click", () => settings.set({ theme: NEXT_THEME[settings.state.theme] }));
  settings.watch(["theme"], () => {
    const { theme } = settings.state;
    fill(b, icon(theme === "system" ? "half" : theme === "light" ? "sun" : "moon"));
    b.title = `Theme: ${theme}`;
    b.setAttribute("aria-label", `Theme: ${theme}`);
    showTheme(theme);
  });
}

export function mountHeader(store: AppStore, compiler: Compiler, actions: HeaderActions): void {
  examplePicker(store, actions);
  languagePicker(store, compiler);
  kernelPicker(store);
  targetPicker(store, compiler);
  pipelinePicker(store, compiler);
  versionPicker(store, compiler);
  status(store);
  progress(store, compiler);
  themeButton();
  checkButton(store, compiler);
  byId("share").addEventListener("click", () => actions.share());
  fill(byId("download"), icon("download"));
  byId("download").addEventListener("click", () => actions.downloads());
  byId("help-open").addEventListener("click", () => actions.help());
  fill(byId("settings-open"), icon("sliders"));
}
