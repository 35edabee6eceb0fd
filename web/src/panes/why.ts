// why: the reasons of a decision: the rule and the fact behind it, limits as bars, what was rejected, and the knobs that
// would take it.  It is loaded when reasons are first opened.
import type { Remark, RemarkLimit, RejectedChoice, Rule, Stage } from "../api/types";
import type { AppStore } from "../state/app";
import type { KernelOutcome } from "../state/outcome";
import { rules } from "../state/rules";
import { adoptStyle } from "../style/late";
import css from "../style/why.late.css";
import { button, el } from "./dom";
import { say } from "./notices";
import { isOffering, literal, writeOffer, type KnobEditor, type Offering } from "./offers";

export type { KnobEditor };

export interface Reasons {
  remark: Remark;
  stage: Stage;
  kernel: KernelOutcome;
  editor: KnobEditor;
  store: AppStore;
}

export type WhyView = (reasons: Reasons) => HTMLElement;

adoptStyle(css);

const number = (n: number) => n.toLocaleString("en");

function limitRow({ name, unit, used, available }: RemarkLimit): HTMLElement {
  const part = available > 0 ? Math.min(1, used / available) : 1;
  const over = used > available;
  const fill = el("span", { class: over ? "used over" : "used" });
  fill.style.width = `${(part * 100).toFixed(1)}%`;
  const bar = el("span", { class: "limit-bar", attrs: { role: "meter", "aria-label": name, "aria-valuemin": 0, "aria-valuemax": available, "aria-valuenow": Math.min(used, available), "aria-valuetext": `${number(used)} of ${number(available)} ${unit}` } }, fill);
  return el("li", { class: "limit" }, el("span", { class: "name" }, name), bar, el("span", { class: "figures" }, `${number(used)} of ${number(available)} ${unit}${over ? ": more than there is" : ""}`));
}

/** The decision, about the same expression, whose knob changes this one. */
function decider(kernel: KernelOutcome, remark: Remark, rule: Rule | undefined): { stage: Stage; remark: Offering } | null {
  if (!rule?.via || remark.src === undefined) return null;
  const place = kernel.map.placesOf(remark.src)[0]?.join();
  for (const stage of kernel.stages)
    for (const r of stage.remarks ?? [])
      if (r.rule === rule.via && isOffering(r) && r.src !== undefined && kernel.map.placesOf(r.src)[0]?.join() === place) return { stage, remark: r };
  return null;
}

/** "this: 4 tiles": what the choice costs. */
function costOf(remark: Remark): HTMLElement | null {
  return remark.cost === undefined ? null : el("p", { class: "chosen" }, "this: ", el("b", { class: "cost" }, remark.cost));
}

/** The choices that were rejected, "instead X: 8 tiles", each with the button that takes it if a knob does. */
function rejectedList(by: Reasons, remark: Remark): HTMLElement | null {
  const one = ({ choice, reason, cost, value }: RejectedChoice): HTMLElement => {
    const text = el("span", { class: "text" }, "instead ", el("b", {}, choice), ": ", cost === undefined ? null : el("b", { class: "cost" }, cost), `${cost === undefined ? "" : "; "}${reason}`);
    if (value === undefined || !isOffering(remark) || by.store.state.language !== "nkipy") return el("li", {}, text);
    const knob = `.${remark.knob.call}(${remark.knob.argument}=${literal(value)})`;
    const write = button(`Write ${knob}`, `Write ${knob} for this value into the source`, () => say(writeOffer({ ...by, remark, value })), "write-knob");
    return el("li", {}, text, write);
  };
  return remark.rejected?.length ? el("ul", { class: "rejected", attrs: { "aria-label": "Rejected" } }, ...remark.rejected.map(one)) : null;
}

/** What is said of the knob where no button is. */
function knobNote(by: Reasons, rule: Rule | undefined): (HTMLElement | null)[] {
  if (isOffering(by.remark)) return [];
  const other = decider(by.kernel, by.remark, rule);
  if (other) return [el("p", { class: "by-other" }, `Decided by ${other.stage.name}: `, el("b", {}, other.remark.text)), costOf(other.remark), rejectedList(by, other.remark)];
  if (!rule) return [];
  const none = rule.knob.startsWith("No knob");
  return [el("p", { class: "by-other" }, none ? rule.knob : `No knob here: the operation is a part of an expression, or its place is fixed. The knob is ${rule.knob}.`)];
}

export const whyView: WhyView = (reasons) => {
  const { remark } = reasons;
  const said = el("p", { class: "rule" }, el("code", {}, remark.rule ?? ""));
  const knob = el("div", {});
  void rules().then((all) => {
    const rule = all?.get(remark.rule ?? "");
    const forced = rule?.forced ?? remark.forced;
    if (rule) said.append(` ${rule.says} `, el("span", { class: "because" }, rule.because, forced === undefined ? "" : ` No other choice: ${forced}`));
    knob.append(...knobNote(reasons, rule).filter((n) => n !== null));
  });
  return el(
    "div",
    { class: "why" },
    said,
    remark.limits?.length ? el("ul", { class: "limits", attrs: { "aria-label": "Limits" } }, ...remark.limits.map(limitRow)) : null,
    costOf(remark),
    rejectedList(reasons, remark),
    knob,
  );
};
