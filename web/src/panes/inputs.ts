// inputs: a small form for the shapes of a kernel that does not say them itself.
import type { Diagnostic, InputSpec } from "../api/types";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { kernelOf } from "../state/outcome";
import { byId, button, el, fill } from "./dom";
import { icon } from "./icons";

const DTYPES = ["float32", "bfloat16", "float16", "int32", "int16", "int8", "uint32", "uint8", "bool", "float64", "int64"];

interface Row {
  name: string;
  shape: string;
  dtype: string;
}

const NEW_ROW: Row = { name: "", shape: "128, 512", dtype: "float32" };

/** Parameter names of the function at that line (from 1), or else of the first that looks like a kernel: a guess to start
 * from, which the user can change. */
export function guessParameters(source: string, line?: number): string[] {
  const m =
    line === undefined
      ? (/@trace[\s\S]*?\ndef\s+\w+\s*\(([^)]*)\)/.exec(source) ?? /^def\s+\w+\s*\(([^)]*)\)/m.exec(source))
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

export function mountInputs(store: AppStore, compiler: Compiler): void {
  const form = byId<HTMLFormElement>("inputs");
  let rows: Row[] = [];
  let timer = 0;

  /** What the compiler says of the inputs, if they are what is wrong. */
  function complaint(): Diagnostic | undefined {
    const { outcome } = store.state;
    return outcome?.status === "error" ? outcome.diagnostics.find((d) => d.code === "no-shapes" || d.code === "bad-inputs") : undefined;
  }

  function prefill(): Row[] {
    const { inputs, outcome, previous, kernelName, source } = store.state;
    const known = inputs ?? kernelOf(outcome, kernelName)?.inputs ?? kernelOf(previous, kernelName)?.inputs;
    const names = guessParameters(source, complaint()?.range?.line);
    if (known && known.length > 0 && (inputs || known.every((k, i) => k.name === names[i])))
      return known.map((s, i) => ({ name: s.name ?? names[i] ?? "", shape: s.shape.join(", "), dtype: s.dtype }));
    return (names.length > 0 ? names : [""]).map((name) => ({ ...NEW_ROW, name }));
  }

  /** The kernel has other parameters than the form: those that stay keep their rows, a new one takes what one that went had. */
  function follow(): void {
    const range = complaint()?.range;
    const names = range ? guessParameters(store.state.source, range.line) : [];
    if (names.length === 0 || names.join() === rows.map((r) => r.name).join()) return;
    const gone = rows.filter((r) => !names.includes(r.name));
    rows = names.map((name) => rows.find((r) => r.name === name) ?? { ...(gone.shift() ?? NEW_ROW), name });
    draw();
  }

  function apply(): void {
    const specs = specsOf(rows);
    if (!specs) return;
    store.set({ inputs: specs });
    void compiler.now();
  }

  function changed(): void {
    window.clearTimeout(timer);
    // once the form is in use, it follows typing like the editor does
    if (store.state.inputs) timer = window.setTimeout(apply, 300);
  }

  function field(row: Row, key: "name" | "shape", label: string): HTMLInputElement {
    const input = el("input", {
      class: key,
      attrs: { type: "text", value: row[key], "aria-label": label, spellcheck: "false", autocomplete: "off" },
    });
    input.addEventListener("input", () => {
      row[key] = input.value;
      input.setCustomValidity(key === "shape" && !parseShape(input.value) ? "Write the sizes like 128, 512" : "");
      input.toggleAttribute("aria-invalid", !input.checkValidity());
      changed();
    });
    return input;
  }

  function draw(): void {
    const lines = rows.map((row, i) => {
      const dtype = el("select", { attrs: { "aria-label": `Data type of input ${i + 1}` } });
      const names = DTYPES.includes(row.dtype) ? DTYPES : [row.dtype, ...DTYPES];
      fill(dtype, ...names.map((d) => el("option", { attrs: { value: d } }, d)));
      dtype.value = row.dtype;
      dtype.addEventListener("change", () => {
        row.dtype = dtype.value;
        changed();
      });
      const remove = el(
        "button",
        {
          class: "quiet tool",
          attrs: { type: "button", "aria-label": `Remove input ${i + 1}` },
          on: {
            click: () => {
              rows.splice(i, 1);
              draw();
              changed();
            },
          },
        },
        icon("close"),
      );
      return el("div", { class: "input-row" }, field(row, "name", `Name of input ${i + 1}`), field(row, "shape", `Shape of input ${i + 1}`), dtype, remove);
    });
    const add = button("+ row", "One more input", () => {
      rows.push({ ...NEW_ROW });
      draw();
      form.querySelectorAll<HTMLInputElement>("input.name")[rows.length - 1]?.focus();
    });
    const used = store.state.inputs !== null;
    const clear = button("leave to the source", "Shapes come from the source again", () => {
      store.set({ inputs: null, showInputs: false });
      void compiler.now();
    });
    clear.hidden = !used;
    fill(
      form,
      el("p", {}, "Shapes of the kernel's inputs, for a source that does not say them."),
      ...lines,
      el("div", { class: "input-actions" }, add, el("span", { class: "spring" }), clear, el("button", { class: "plain", attrs: { type: "submit" } }, used ? "Compile" : "Use these")),
    );
  }

  form.addEventListener("submit", (e) => {
    e.preventDefault();
    if (!form.reportValidity()) return;
    apply();
    draw();
    form.querySelector<HTMLButtonElement>("button[type=submit]")?.focus();
  });
  store.watch(["showInputs", "inputs"], () => {
    const open = store.state.showInputs;
    if (open && (form.hidden || store.state.inputs === null)) rows = prefill();
    const focused = form.contains(document.activeElement);
    form.hidden = !open;
    if (open && !focused) draw();
  });
  store.watch(["outcome"], () => {
    if (complaint()?.code === "no-shapes" && !store.state.showInputs) store.set({ showInputs: true });
    else if (!form.hidden && !form.contains(document.activeElement)) follow();
  });
}
