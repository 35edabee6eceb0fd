// inputs: a small form for the shapes of a kernel whose source does not say them.
import type { Diagnostic, Dtype, InputSpec, TensorInfo } from "../api/types";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { tabOf, textOfTab } from "../state/files";
import { kernelOf } from "../state/outcome";
import { byId, button, el, fill } from "./dom";
import { icon } from "./icons";

/** Milliseconds after the last key until shapes are taken: half of one is none. */
const TYPING_MS = 300;

const DTYPES: Dtype[] = ["float32", "bfloat16", "float16", "int32", "int16", "int8", "uint32", "uint8", "bool", "complex64", "float64", "int64"];

interface Row {
  name: string;
  shape: string;
  dtype: Dtype;
}

const NEW_ROW: Row = { name: "", shape: "128, 512", dtype: "float32" };

/** Parameter names of the function at that line (from 1), otherwise of the first function that looks like a kernel: a
 * guess, which the user can change. */
export function guessParameters(source: string, line?: number): string[] {
  const m =
    line === undefined
      ? (/@(?:trace|(?:nki\.)?jit)\b[\s\S]*?\ndef\s+\w+\s*\(([^)]*)\)/.exec(source) ?? /^def\s+\w+\s*\(([^)]*)\)/m.exec(source))
      : /^\s*def\s+\w+\s*\(([^)]*)\)/m.exec(source.split("\n").slice(line - 1).join("\n"));
  return (m?.[1] ?? "")
    .split(",")
    .map((p) => p.trim())
    .filter((p) => p !== "" && !p.startsWith("*") && p !== "/" && !p.includes("="))
    .map((p) => p.split(":")[0]?.trim() ?? "");
}

export function parseShape(text: string): number[] | null {
  const inner = text.trim().replace(/^[[(]|[\])]$/g, "").trim();
  if (inner === "") return [];
  const dims = inner.split(/\s*[,x×\s]\s*/).filter((d) => d !== "");
  const shape = dims.map(Number);
  return shape.every((n) => Number.isInteger(n) && n >= 0) ? shape : null;
}

function specsOf(rows: Row[]): InputSpec[] | null {
  const specs: InputSpec[] = [];
  for (const row of rows) {
    const shape = parseShape(row.shape);
    if (!shape || row.name.trim() === "") return null;
    specs.push({ name: row.name.trim(), shape, dtype: row.dtype });
  }
  return specs.length > 0 ? specs : null;
}

/** The form.  Its rows are what the user sees; the store's inputs are what is compiled, null while the source says it. */
export class InputForm {
  private readonly form = byId<HTMLFormElement>("inputs");
  private rows: Row[] = [];
  private timer = 0;

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
  ) {
    this.form.addEventListener("submit", (e) => this.submit(e));
    store.watch(["showInputs", "inputs"], () => this.show());
    store.watch(["outcome"], () => this.answered());
  }

  /** The error about the inputs in the last outcome, if there is one. */
  private complaint(): Diagnostic | undefined {
    const { outcome } = this.store.state;
    return outcome?.status === "error" ? outcome.diagnostics.find((d) => d.code === "no-shapes" || d.code === "bad-inputs") : undefined;
  }

  /** Names of the parameters of the kernel that the error is about. */
  private parameters(): string[] {
    const range = this.complaint()?.range;
    const tab = range ? tabOf(this.store.state, range.file) : null;
    return guessParameters(textOfTab(this.store.state, tab ?? null), range?.line);
  }

  private hasFocus(): boolean {
    return this.form.contains(document.activeElement);
  }

  /** The first rows: the inputs of the last compile if they still fit the source, otherwise the parameters' names. */
  private prefill(): Row[] {
    const { inputs, outcome, previous, kernelName } = this.store.state;
    const known: InputSpec[] | TensorInfo[] | undefined =
      inputs ?? kernelOf(outcome, kernelName)?.inputs ?? kernelOf(previous, kernelName)?.inputs;
    const names = this.parameters();
    if (known && known.length > 0 && (inputs || known.every((k, i) => k.name === names[i])))
      return known.map((s, i) => ({ name: s.name ?? names[i] ?? "", shape: s.shape.join(", "), dtype: (s.dtype ?? NEW_ROW.dtype) as Dtype }));
    return (names.length > 0 ? names : [""]).map((name) => ({ ...NEW_ROW, name }));
  }

  /** Follows a change of the kernel's parameters: those that remain keep their rows, a renamed one takes over an old row. */
  private follow(): void {
    const names = this.complaint()?.range ? this.parameters() : [];
    if (names.length === 0 || names.join() === this.rows.map((r) => r.name).join()) return;
    const gone = this.rows.filter((r) => !names.includes(r.name));
    this.rows = names.map((name) => this.rows.find((r) => r.name === name) ?? { ...(gone.shift() ?? NEW_ROW), name });
    this.draw();
  }

  private apply(): void {
    const specs = specsOf(this.rows);
    if (!specs) return;
    this.store.set({ inputs: specs });
    void this.compiler.now();
  }

  private changed(): void {
    window.clearTimeout(this.timer);
    // once the form is in use, it follows typing like the editor does
    if (this.store.state.inputs) this.timer = window.setTimeout(() => this.apply(), TYPING_MS);
  }

  private submit(e: Event): void {
    e.preventDefault();
    if (!this.form.reportValidity()) return;
    this.apply();
    this.draw();
    this.form.querySelector<HTMLButtonElement>("button[type=submit]")?.focus();
  }

  private show(): void {
    const open = this.store.state.showInputs;
    if (open && (this.form.hidden || this.store.state.inputs === null)) this.rows = this.prefill();
    this.form.hidden = !open;
    if (open && !this.hasFocus()) this.draw();
  }

  private answered(): void {
    if (this.complaint()?.code === "no-shapes" && !this.store.state.showInputs) this.store.set({ showInputs: true });
    else if (!this.form.hidden && !this.hasFocus()) this.follow();
  }

  private field(row: Row, key: "name" | "shape", label: string): HTMLInputElement {
    const input = el("input", {
      class: key,
      attrs: { type: "text", value: row[key], "aria-label": label, spellcheck: "false", autocomplete: "off" },
    });
    input.addEventListener("input", () => {
      row[key] = input.value;
      input.setCustomValidity(key === "shape" && !parseShape(input.value) ? "Write the sizes like 128, 512" : "");
      input.toggleAttribute("aria-invalid", !input.checkValidity());
      this.changed();
    });
    return input;
  }

  private dtypeChoice(row: Row, label: string): HTMLSelectElement {
    const choice = el("select", { attrs: { "aria-label": label } });
    const names = DTYPES.includes(row.dtype) ? DTYPES : [row.dtype, ...DTYPES];
    fill(choice, ...names.map((d) => el("option", { attrs: { value: d } }, d)));
    choice.value = row.dtype;
    choice.addEventListener("change", () => {
      row.dtype = choice.value as Dtype;
      this.changed();
    });
    return choice;
  }

  private line(row: Row, i: number): HTMLElement {
    const click = () => {
      this.rows.splice(i, 1);
      this.draw();
      this.changed();
    };
    const attrs = { type: "button", "aria-label": `Remove input ${i + 1}` };
    return el(
      "div",
      { class: "input-row" },
      this.field(row, "name", `Name of input ${i + 1}`),
      this.field(row, "shape", `Shape of input ${i + 1}`),
      this.dtypeChoice(row, `Data type of input ${i + 1}`),
      el("button", { class: "quiet tool", attrs, on: { click } }, icon("close")),
    );
  }

  private actions(): HTMLElement {
    const add = button("+ row", "One more input", () => {
      this.rows.push({ ...NEW_ROW });
      this.draw();
      this.form.querySelectorAll<HTMLInputElement>("input.name")[this.rows.length - 1]?.focus();
    });
    const clear = button("leave to the source", "Shapes come from the source again", () => {
      this.store.set({ inputs: null, showInputs: false });
      void this.compiler.now();
    });
    const isUsed = this.store.state.inputs !== null;
    clear.hidden = !isUsed;
    const submit = el("button", { class: "plain", attrs: { type: "submit" } }, isUsed ? "Compile" : "Use these");
    return el("div", { class: "input-actions" }, add, el("span", { class: "spring" }), clear, submit);
  }

  private draw(): void {
    fill(
      this.form,
      el("p", {}, "Shapes of the kernel's inputs, for a source that does not say them."),
      ...this.rows.map((row, i) => this.line(row, i)),
      this.actions(),
    );
  }
}
