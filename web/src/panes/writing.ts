// writing: what helps to write a kernel, loaded when the source editor gets the focus for the first time.
import type { Extension } from "@codemirror/state";
import { completion } from "../editor/complete";
import type { Known } from "../editor/known";
import { signatureHelp } from "../editor/signature";
import type { AppStore } from "../state/app";
import { vocabulary, type Vocabulary } from "../state/operations";
import { nkiCalls } from "../state/nki";
import { kernelOf } from "../state/outcome";
import { adoptStyle } from "../style/late";
import css from "../style/writing.late.css";
import { el } from "./dom";
import { nkiTip } from "./nkicard";
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

async function nkiKnown(store: AppStore): Promise<[string, Known][]> {
  const calls = await nkiCalls();
  return [...(calls ?? [])].map(([name, call]) => {
    const { parameters } = call;
    return [name, { ...(parameters ? { parameters } : {}), isKnob: false, isByName: call.kind === "instruction", tip: () => nkiTip(call, store.state.target) }];
  });
}

/** The extension of the editor. */
export function writing(store: AppStore): Extension {
  adoptStyle(css);
  let known: Map<string, Known> | null = null;
  const numpy = vocabulary().then((words) => (known = words && knownFrom(words)));
  let hasNki = false;
  // the names of NKI are needed once a source imports it
  store.watch(["source", "files"], () => {
    const texts = [store.state.source, ...store.state.files.map((f) => f.source)];
    if (hasNki || !texts.some((text) => /^\s*(?:import|from)\s[^\n]*\bnki\b/m.test(text))) return;
    hasNki = true;
    void Promise.all([nkiKnown(store), numpy]).then(([calls]) => {
      known = new Map([...(known ?? []), ...calls]);
      hasNki = calls.length > 0;
    });
  });
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
