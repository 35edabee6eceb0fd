// signature: the parameters of the call that is being written, above its line, with the present one in bold.
//
// It opens when something is typed among the arguments, or with Ctrl+Shift+Space, follows the caret within the call, and closes
// outside of it and with Escape; then it stays closed for this call.
import { type EditorState, type Extension, Prec, StateEffect, StateField, type Transaction } from "@codemirror/state";
import { EditorView, keymap, showTooltip, type Tooltip } from "@codemirror/view";
import { callAround, type CallAround } from "./callaround";
import { isListOpen } from "./complete";
import type { Known } from "./known";
import { isPython } from "./names";

interface Shown {
  call: CallAround;
  tooltip: Tooltip;
}

interface Signature {
  shown: Shown | null;
  /** Where the parenthesis of the call is for which the user has closed it; -1: none. */
  closed: number;
}

const open = StateEffect.define<null>();
const close = StateEffect.define<null>();

/** Which of the parameters the present argument is for; -1: none. */
export function presentParameter(parameters: readonly string[], call: Pick<CallAround, "index" | "keyword">): number {
  if (call.keyword !== null) return parameters.findIndex((p) => p.split("=")[0] === call.keyword);
  const rest = parameters.findIndex((p) => p.startsWith("*"));
  if (rest < 0 || call.index < rest) return call.index < parameters.length ? call.index : -1;
  return parameters[rest] === "*" ? -1 : rest;
}

function draw(call: CallAround, parameters: readonly string[]): HTMLElement {
  const dom = document.createElement("div");
  dom.className = "signature";
  const present = presentParameter(parameters, call);
  dom.append(`${call.name.replace(/^\./, "")}(`);
  parameters.forEach((p, i) => {
    const part = document.createElement(i === present ? "b" : "span");
    part.textContent = p;
    dom.append(i > 0 ? ", " : "", part);
  });
  dom.append(")");
  return dom;
}

function around(state: EditorState, known: ReadonlyMap<string, Known> | null): Shown | null {
  const { main } = state.selection;
  const call = main.empty && isPython(state) ? callAround(state, main.head) : null;
  const parameters = call && known?.get(call.name)?.parameters;
  if (!call || !parameters) return null;
  return { call, tooltip: { pos: call.start, above: true, create: () => ({ dom: draw(call, parameters) }) } };
}

function isSame(a: CallAround, b: CallAround): boolean {
  return a.name === b.name && a.start === b.start && a.index === b.index && a.keyword === b.keyword;
}

function next(was: Signature, tr: Transaction, known: ReadonlyMap<string, Known> | null): Signature {
  const isAsked = tr.effects.some((e) => e.is(open));
  const isTyped = tr.isUserEvent("input") || tr.isUserEvent("delete");
  if (tr.effects.some((e) => e.is(close))) return { shown: null, closed: was.shown?.call.from ?? was.closed };
  if (!tr.docChanged && !tr.selection && !isAsked) return was;
  const closed = was.closed < 0 ? -1 : tr.changes.mapPos(was.closed);
  const shown = was.shown || isTyped || isAsked ? around(tr.state, known) : null;
  const stays = closed >= 0 && around(tr.state, known)?.call.from === closed;
  if (stays && !isAsked) return { shown: null, closed };
  // the same tooltip is not drawn again
  return { shown: shown && was.shown && isSame(shown.call, was.shown.call) ? was.shown : shown, closed: -1 };
}

export function signatureHelp(known: () => ReadonlyMap<string, Known> | null): Extension {
  const field = StateField.define<Signature>({
    create: () => ({ shown: null, closed: -1 }),
    update: (was, tr) => next(was, tr, known()),
    provide: (f) => showTooltip.from(f, (s) => s.shown?.tooltip ?? null),
  });
  const leave = (view: EditorView): boolean => {
    if (!view.state.field(field).shown || isListOpen(view.state)) return false; // the list is closed first
    view.dispatch({ effects: close.of(null) });
    return true;
  };
  const ask = (view: EditorView): boolean => {
    view.dispatch({ effects: open.of(null) });
    return true;
  };
  return [
    field,
    EditorView.focusChangeEffect.of((state, focusing) => (!focusing && state.field(field).shown ? close.of(null) : null)),
    Prec.highest(keymap.of([{ key: "Escape", run: leave }, { key: "Ctrl-Shift-Space", run: ask }])),
  ];
}
