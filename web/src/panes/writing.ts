// writing: what helps to write a kernel, loaded when the source editor gets the focus for the first time.
import type { Extension } from "@codemirror/state";
import { completion } from "../editor/complete";
import type { Known } from "../editor/known";
import { signatureHelp } from "../editor/signature";
import type { AppStore } from "../state/app";
import { vocabulary, type Vocabulary } from "../state/operations";
import { kernelOf } from "../state/outcome";
import { adoptStyle } from "../style/late";
import css from "../style/writing.late.css";
import { el } from "./dom";
import { operationTip } from "./operations";

function knownFrom({ operations, knobs }: Vocabulary): Map<string, Known> {
  const known = new Map<string, Known>();
  for (const [name, op] of operations) {
    const parameters = op.parameters?.slice(name.startsWith(".") ? 1 : 0);
    known.set(name, { ...(parameters ? { parameters } : {}), isKnob: false, tip: () => operationTip(op) });
  }
  for (const { name, parameters, what } of knobs) known.set(name, { parameters, isKnob: true, tip: () => el("p", { class: "operation-tip" }, what) });
  return known;
}

/** The extension of the editor. */
export function writing(store: AppStore): Extension {
  adoptStyle(css);
  let known: ReadonlyMap<string, Known> | null = null;
  void vocabulary().then((words) => (known = words && knownFrom(words)));
  const help = {
    known: () => known,
    inputs: () => {
      const { outcome, previous, kernelName } = store.state;
      const kernel = kernelOf(outcome, kernelName) ?? kernelOf(previous, kernelName);
      return new Map((kernel?.inputs ?? []).map((i) => [i.name, `(${i.shape.join(", ")}) ${i.dtype}`]));
    },
  };
  return [signatureHelp(help.known), completion(help)];
}
