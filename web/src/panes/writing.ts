// writing: what helps to write a kernel, loaded when the source editor gets the focus for the first time.
import type { Extension } from "@codemirror/state";
import { completion } from "../editor/complete";
import type { Known } from "../editor/known";
import { isBeta1 } from "../editor/nkinames";
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

/** The names of a generation, with its parameters. */
async function nkiKnown(store: AppStore, isBeta: boolean): Promise<[string, Known][]> {
  const calls = await nkiCalls();
  const own = [...(calls ?? [])].filter(([, call]) => call.kind !== "refused" && call.generations.includes(isBeta ? "neuronxcc.nki" : "nki"));
  return own.map(([name, call]) => {
    const parameters = isBeta ? call.beta1 : call.parameters;
    return [name, { ...(parameters ? { parameters } : {}), isKnob: false, isByName: call.kind === "instruction" || call.kind === "method", tip: () => nkiTip(call, store.state.target) }];
  });
}

/** The extension of the editor. */
export function writing(store: AppStore): Extension {
  adoptStyle(css);
  let known: Map<string, Known> | null = null;
  let beta: ReadonlyMap<string, Known> | null = null;
  const numpy = vocabulary().then((words) => (known = words && knownFrom(words)));
  let hasNki = false;
  // the names of NKI are needed once a source imports it
  store.watch(["source", "files"], () => {
    const texts = [store.state.source, ...store.state.files.map((f) => f.source)];
    if (hasNki || !texts.some((text) => /^\s*(?:import|from)\s[^\n]*\bnki\b/m.test(text))) return;
    hasNki = true;
    void Promise.all([nkiKnown(store, false), nkiKnown(store, true), numpy]).then(([calls, betaCalls]) => {
      beta = new Map([...(known ?? []), ...betaCalls]);
      known = new Map([...(known ?? []), ...calls]);
      hasNki = calls.length > 0;
    });
  });
  const help = {
    known: () => (beta && isBeta1(store.state.source) ? beta : known),
    inputs: () => {
      const { outcome, previous, kernelName } = store.state;
      const kernel = kernelOf(outcome, kernelName) ?? kernelOf(previous, kernelName);
      return new Map((kernel?.inputs ?? []).map((i) => [i.name, `(${i.shape.join(", ")}) ${i.dtype}`]));
    },
  };
  return [signatureHelp(help.known), completion(help)];
}
