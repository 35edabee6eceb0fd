// inside: a call of an NKI kernel in HLO as a unit: its card says what is inside, and leads to the kernel's own stages if the server has
// compiled it from one of the files.
import { fieldsOf, type Field } from "../nisa/fields";
import type { AppStore } from "../state/app";
import { button, el } from "./dom";

const CALL = /custom_call_target="(AwsNeuronCustomNativeKernel|nki\.[\w.]+)"/;

function find(fields: readonly Field[], name: string): Field | undefined {
  for (const f of fields) {
    const found = f.name === name ? f : find(f.fields, name);
    if (found) return found;
  }
  return undefined;
}

/** A text of the configuration; "" if it has none. */
function textOf(fields: readonly Field[], name: string): string {
  const value = find(fields, name)?.value ?? "";
  return value.startsWith('"') ? value.replace(/^"|"$/g, "") : "";
}

/** What the card of such a call has besides; null for any other line.  close: closes the card. */
export function insideOf(store: AppStore, line: string, dialect: string, close: () => void): HTMLElement | null {
  const target = dialect === "hlo" ? CALL.exec(line)?.[1] : undefined;
  if (target === undefined) return null;
  const fields = fieldsOf(line, dialect);
  const name = textOf(fields, "func_name") || target.replace(/^nki\.|\.\d+$/g, "");
  const isKnown = store.state.outcome?.kernels.some((k) => k.name === name) === true;
  if (isKnown) {
    const enter = () => {
      close();
      store.set({ kernelName: name, stageKey: null, anchor: null });
    };
    return el("p", { class: "inside" }, button(`Enter ${name}`, "Show the stages of the NKI kernel that is called", enter));
  }
  if (target !== "AwsNeuronCustomNativeKernel") return null; // of a kernel in the same source
  const path = textOf(fields, "binary");
  const where = path === "" ? "HLO has no code of it." : `HLO has only the path of its code, ${path}, on the machine that made it.`;
  return el("p", { class: "inside" }, `${name === "" ? "The NKI kernel" : `The NKI kernel ${name}`} cannot be entered: ${where} Add the Python file that defines it to the files, and it can.`);
}
