// history: the selected operation or expression in each stage, as chips that open it.
import type { SourceRange } from "../api/types";
import { placeText, snippet } from "../editor/positions";
import { hloClass, mlirClass } from "../highlight/opclass";
import { opLabel } from "../highlight/label";
import type { AppStore } from "../state/app";
import { stageKeys, type KernelOutcome } from "../state/outcome";
import { hiddenOfOps, images, placesOfOps, type Anchor, type Image } from "../state/selection";
import type { Place } from "../state/sourcemap";
import { choose, shownStage, STAGE_KEYS, textsOfKernel } from "../state/view";
import { byId, button, el, fill, plural } from "./dom";
import { docOf, placeList } from "./places";

interface Step {
  first: number;
  last: number;
  label: string;
  count: number;
  more: number;
  via: Image["via"];
}

const textLines = new WeakMap<object, string[]>();

function linesOf(stage: { text: string }): string[] {
  let lines = textLines.get(stage);
  if (!lines) textLines.set(stage, (lines = stage.text.split("\n")));
  return lines;
}

/** Sorts operations that compute before the constants and buffers that they use. */
function rank(label: string, dialect: string): number {
  const cls = dialect === "hlo" ? hloClass(label) : mlirClass(label);
  const scalar = /^(arith|math)\./.test(label) ? 3 : 0;
  return { compute: 0, transfer: 1, sync: 2, otherop: 2, control: 5, alloc: 4 }[cls as string] ?? 6 + scalar;
}

function labelsOf(kernel: KernelOutcome, index: number, ops: readonly number[]): [string, number][] {
  const stage = kernel.stages[index];
  if (!stage) return [];
  const links = kernel.map.linksOf(stage);
  const counts = new Map<string, number>();
  for (const op of ops) {
    const line = links.opLines.get(op)?.[0];
    if (line === undefined) continue;
    const label = opLabel(linesOf(stage)[line - 1] ?? "", stage.dialect);
    counts.set(label, (counts.get(label) ?? 0) + 1);
  }
  const scalar = (l: string) => (/^(arith|math)\./.test(l) ? 1 : 0);
  return [...counts].sort(([a], [b]) => rank(a, stage.dialect) - rank(b, stage.dialect) || scalar(a) - scalar(b));
}

function stepsOf(kernel: KernelOutcome, all: Image[]): Step[] {
  const steps: Step[] = [];
  all.forEach((image, i) => {
    const labels = labelsOf(kernel, i, image.ops);
    const [head] = labels;
    if (!head) return;
    const step: Step = { first: i, last: i, label: head[0], count: head[1], more: labels.length - 1, via: image.via };
    const before = steps.at(-1);
    const same = before && before.last === i - 1 && before.label === step.label && before.count === step.count && before.more === step.more;
    if (same && before.via === step.via) before.last = i;
    else steps.push(step);
  });
  return steps;
}

function lead(anchor: Anchor, kernel: KernelOutcome, texts: ReadonlyMap<string, string>): { name: string; isCode: boolean; places: Place[]; more: number } {
  if (anchor.kind === "ranges") {
    const first = kernel.map.ranges[anchor.ranges[0] ?? -1];
    return { name: first ? snippet(docOf(texts, first), first, 48) : "", isCode: true, places: anchor.ranges.map((n) => [n]), more: 0 };
  }
  const stage = kernel.stages[anchor.stage];
  const links = stage ? kernel.map.linksOf(stage) : null;
  const places = links ? placesOfOps(links, anchor.ops) : [];
  const more = links ? hiddenOfOps(links, anchor.ops) : 0;
  return { name: labelsOf(kernel, anchor.stage, anchor.ops)[0]?.[0] ?? "", isCode: false, places, more };
}

export function mountHistory(store: AppStore): void {
  const box = byId("history");

  function chip(kernel: KernelOutcome, step: Step, shownIndex: number): HTMLElement {
    const here = shownIndex >= step.first && shownIndex <= step.last;
    const names = kernel.stages.slice(step.first, step.last + 1).map((s) => `${s.index} ${s.name}`);
    const no = step.first === step.last ? String(step.first) : `${step.first}–${step.last}`;
    const why = step.via === "range" ? "same source" : "came from it";
    return el(
      "button",
      {
        class: `chip via-${step.via}`,
        title: `${names.join("\n")}\n${why}`,
        attrs: { type: "button", "aria-current": here ? "step" : null, "aria-label": `stage ${names.join(", ")}: ${step.label}` },
        on: {
          click: () => {
            const key = stageKeys(kernel.stages.map((s) => s.name))[here ? shownIndex : step.first];
            store.set({ stageKey: key ?? null, reveal: store.state.reveal + 1, pane: "ir" });
          },
        },
      },
      el("span", { class: "no" }, no),
      el("span", { class: "op" }, step.label),
      step.count > 1 ? el("span", { class: "times" }, `×${step.count}`) : null,
      step.more > 0 ? el("span", { class: "times" }, `+${step.more}`) : null,
    );
  }

  store.watch([...STAGE_KEYS, "anchor"], () => {
    const { anchor } = store.state;
    const shown = shownStage(store.state);
    const kernel = shown?.row.kernel;
    box.classList.toggle("none", !anchor || anchor.map !== kernel?.map);
    if (!anchor || !shown || !kernel || anchor.map !== kernel.map) {
      fill(box, el("p", { class: "note" }, "Click a line or an expression to follow it through the stages."));
      return;
    }
    const texts = textsOfKernel(store.state, kernel) ?? new Map<string, string>();
    const { name, isCode, places, more: hidden } = lead(anchor, kernel, texts);
    const all = images(anchor, kernel);
    const steps = stepsOf(kernel, all);
    const index = kernel.stages.indexOf(shown.stage);
    const end = steps.at(-1)?.last ?? -1;
    const gone = end >= 0 && end < kernel.stages.length - 1 ? kernel.stages[end + 1] : undefined;
    const only = places.length === 1 ? places[0] : undefined;
    const one = only ? kernel.map.ranges[only[0] as number] : undefined;
    const where = (r: SourceRange) => [el("span", {}, `· line ${placeText(kernel.map, r)}`), isCode ? null : el("span", {}, "·"), isCode ? null : el("code", {}, snippet(docOf(texts, r), r, 48))];
    const calls = (only?.length ?? 1) - 1;
    const more = places.length > 1 ? `${plural(places.length + hidden, "place")} in the source` : calls > 0 ? `through ${plural(calls, "call")}` : "";
    const nothingHere = (all[index]?.ops.length ?? 0) === 0;
    const close = button("×", "Clear the selection (Esc)", () => choose(store, null), "quiet close");
    close.setAttribute("aria-label", "Clear the selection");
    const head = el(
      "div",
      { class: "history-head" },
      el("span", {}, "History of"),
      el(isCode ? "code" : "b", { class: "op" }, name || "the selection"),
      ...(one ? where(one) : []),
      places.length === 0 ? el("span", {}, "· made by the compiler, no source") : null,
      nothingHere ? el("span", { class: "gone" }, "· nothing of it in this stage") : null,
      el("span", { class: "spring" }),
      close,
    );
    const chips: Node[] = [];
    steps.forEach((step, i) => {
      if (i > 0) chips.push(el("span", { class: "arrow", attrs: { "aria-hidden": "true" } }, "→"));
      chips.push(chip(kernel, step, index));
    });
    if (gone) chips.push(el("span", { class: "arrow gone", title: `${gone.index} ${gone.name}` }, `→ gone in ${gone.index} ${gone.name}`));
    fill(
      box,
      head,
      el("div", { class: "chips" }, ...chips),
      more === "" ? null : el("details", { class: "history-places" }, el("summary", {}, more), placeList(places, hidden, kernel.map, texts)),
    );
    box.querySelector<HTMLElement>('[aria-current="step"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
}
