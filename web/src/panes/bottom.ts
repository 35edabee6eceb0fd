// bottom: the kernel's signature and the most useful keys; in a narrow window, the switch between panes.
import type { TensorInfo } from "../api/types";
import type { AppState, AppStore } from "../state/app";
import { kernelOf } from "../state/outcome";
import { settings } from "../state/settings";
import { byId, el, fill, refill } from "./dom";

const SHORT: Record<string, string> = {
  float32: "f32",
  float16: "f16",
  bfloat16: "bf16",
  float64: "f64",
  int32: "i32",
  int64: "i64",
  int16: "i16",
  int8: "i8",
  uint8: "u8",
  uint32: "u32",
};

function tensor(t: TensorInfo): string {
  const alias = t.alias_of ? ` = ${t.alias_of}` : "";
  return `${t.name ? t.name + " " : ""}${SHORT[t.dtype] ?? t.dtype}[${t.shape.join("×")}]${alias}`;
}

function signature(store: AppStore): void {
  const box = byId("signature");
  store.watch(["outcome", "previous", "kernelName"], () => {
    const { outcome, previous, kernelName } = store.state;
    const kernel = kernelOf(outcome, kernelName) ?? kernelOf(previous, kernelName);
    if (!kernel) {
      fill(box);
      return;
    }
    const text = `(${kernel.inputs.map(tensor).join(", ")}) → ${kernel.outputs.map(tensor).join(", ")}`;
    refill(box, el("b", {}, kernel.name), text);
    box.title = kernel.name + text;
  });
}

function hints(): void {
  const list: [string, string][] = [
    ["j k", "stages"],
    ["n b", "phases"],
    ["d", "diff"],
    ["/", "filter"],
    ["h", "history"],
    ["?", "keys"],
  ];
  settings.watch(["letterKeys"], () => {
    const shown = settings.state.letterKeys ? list : [["F6", "panes"]];
    fill(byId("hints"), ...shown.map(([keys, what]) => el("span", { class: "hint" }, el("kbd", {}, keys ?? ""), ` ${what}`)));
  });
}

function switcher(store: AppStore): void {
  const nav = byId("switcher");
  const panes: [AppState["pane"], string][] = [
    ["source", "Source"],
    ["stages", "Stages"],
    ["ir", "IR"],
  ];
  const buttons = panes.map(([pane, label]) => {
    const b = el("button", { attrs: { type: "button" }, on: { click: () => store.set({ pane }) } }, label);
    return { pane, b };
  });
  nav.append(...buttons.map((x) => x.b));
  store.watch(["pane", "outcome"], () => {
    const { pane, outcome } = store.state;
    document.body.dataset["pane"] = pane;
    for (const x of buttons) {
      x.b.setAttribute("aria-current", x.pane === pane ? "page" : "false");
      const errors = outcome?.diagnostics.filter((d) => d.severity === "error").length ?? 0;
      if (x.pane === "source") x.b.textContent = errors > 0 ? `Source ✕${errors}` : "Source";
    }
  });
}

export function mountBottom(store: AppStore): void {
  signature(store);
  hints();
  switcher(store);
}
