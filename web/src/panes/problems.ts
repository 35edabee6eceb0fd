// problems: the list of diagnostics, and what the kernel printed.
import { rangeText } from "../editor/positions";
import type { Diagnostic, SourceRange } from "../api/types";
import type { AppState, AppStore } from "../state/app";
import { mainName } from "../state/files";
import { blame } from "../state/outcome";
import { byId, el, fill, plural } from "./dom";
import { canShrink, shrinkButton } from "./shrinkbutton";
import type { SourcePane } from "./source";

/** Lines of a long chain of calls that are shown, in addition to the outermost. */
const INNER_CALLS = 3;

const GLYPH = { error: "✕", warning: "▲", note: "i" } as const;
const ORDER = { error: 0, warning: 1, note: 2 } as const;

const ELSEWHERE: [RegExp, string][] = [
  [/^\s*(import|from)\s+torch\b/m, "This looks like PyTorch. nkx traces NumPy: write the computation with np functions, and it goes through every stage."],
  [/^\s*(import|from)\s+(neuronxcc\.)?nki\b|^\s*from\s+neuronxcc\s+import\s+nki\b/m, "Call the NKI kernel with arrays in the file, annotate its parameters (a: nl.tensor[128, 512]), or fill in the form above the source."],
  [/^\s*(import|from)\s+(jax|tensorflow)\b/m, "This looks like another framework. nkx traces NumPy; it also reads the HLO that JAX and TensorFlow can print."],
];

/** What the page itself can say about an error. */
function advice(state: Readonly<AppState>, d: Diagnostic): string[] {
  if (d.code !== "no-shapes") return [];
  const elsewhere = ELSEWHERE.filter(([pattern]) => pattern.test(state.source)).map(([, text]) => text);
  return elsewhere.length > 0 ? elsewhere : ["Or fill in the form above the source."];
}

export function mountProblems(store: AppStore, source: SourcePane): void {
  const drawer = byId("problems");

  function goTo(range: SourceRange): void {
    if (store.state.edited?.file === range.file) void import("./editstage").then((m) => m.goToEdited(range));
    else source.goTo(range);
  }

  function place(range: SourceRange, lead: string): HTMLElement {
    const file = store.state.files.length === 0 && range.file === mainName(store.state) ? "" : range.file;
    const where = file === "" ? "" : ` of ${file}`;
    return el(
      "button",
      { class: "quiet at", attrs: { type: "button", "aria-label": `${lead || "go to"} line ${range.line}, column ${range.col}${where}` }, on: { click: () => goTo(range) } },
      file === "" ? rangeText(range) : `${file} ${rangeText(range)}`,
    );
  }

  /** The chain of calls; the middle of a long one is folded. */
  function callLines(d: Diagnostic): HTMLElement[] {
    const all = (d.calls ?? []).map((c) =>
      el("div", { class: "call" }, "called from ", place(c, "called from"), c.fn ? ` in ${c.fn}` : ""),
    );
    const middle = all.slice(INNER_CALLS, -1);
    if (middle.length < 2) return all;
    const fold = el("details", { class: "call" }, el("summary", {}, plural(middle.length, "more call")), ...middle);
    return [...all.slice(0, INNER_CALLS), fold, ...all.slice(-1)];
  }

  /** isFirst: it is the error that the reducer keeps. */
  function item(d: Diagnostic, isFirst: boolean): HTMLElement {
    const whose = blame(d);
    const calls = callLines(d);
    const box = el(
      "li",
      { class: `problem problem-${d.severity} blame-${whose}`, attrs: { "data-code": d.code } },
      el("span", { class: "glyph", attrs: { "aria-label": d.severity } }, whose === "limit" ? "◷" : whose === "ours" ? "⚠" : GLYPH[d.severity]),
      el(
        "div",
        { class: "problem-text" },
        el("p", { class: "message" }, d.message, " ", el("code", { class: "code" }, d.code)),
        d.hint ? el("p", { class: "hint" }, d.hint) : null,
        ...advice(store.state, d).map((text) => el("p", { class: "hint" }, text)),
        whose === "ours" ? el("p", { class: "hint" }, "This is a fault in nkx, not in your kernel.") : null,
        ...calls,
        isFirst && canShrink(store.state) ? shrinkButton(store, source) : null,
      ),
      d.range ? place(d.range, "") : d.stage ? el("span", { class: "at" }, d.stage) : null,
    );
    if (d.range) {
      const range = d.range;
      box.classList.add("clickable");
      box.addEventListener("click", (e) => {
        if (!(e.target as Element).closest("button")) goTo(range);
      });
    }
    return box;
  }

  store.watch(["outcome"], () => {
    const { outcome } = store.state;
    if (!outcome || (outcome.status === "running" && outcome.diagnostics.length === 0)) {
      if (!outcome) drawer.hidden = true;
      return;
    }
    const printed = outcome.diagnostics.filter((d) => d.code === "kernel-output");
    const list = outcome.diagnostics
      .filter((d) => d.code !== "kernel-output")
      .sort((a, b) => ORDER[a.severity] - ORDER[b.severity]);
    const first = outcome.status === "running" ? undefined : outcome.diagnostics.find((d) => d.severity === "error");
    drawer.hidden = list.length + printed.length === 0;
    const counts = (["error", "warning", "note"] as const).flatMap((s) => {
      const n = list.filter((d) => d.severity === s).length;
      return n > 0 ? [plural(n, s)] : [];
    });
    fill(
      drawer,
      list.length > 0 ? el("h3", {}, counts.join(", ")) : null,
      list.length > 0 ? el("ul", { class: "problem-list" }, ...list.map((d) => item(d, d === first))) : null,
      printed.length > 0 ? el("h3", {}, "Printed") : null,
      printed.length > 0 ? el("pre", { class: "printed", attrs: { tabindex: "0" } }, printed.map((d) => d.message).join("\n")) : null,
    );
  });
}
