// nkicard: what a call of NKI does: its sentence, engines, operands, limits and cost.  Loaded with the first card.
import type { NkiCall, NkiOperand } from "../api/types";
import { nkiCalls } from "../state/nki";
import { costRows, limitsOf, row } from "./card";
import { el } from "./dom";

/** Lines of the stages of NKI that are no calls. */
const LINES: Readonly<Record<string, string>> = {
  def: "The kernel, with the shapes and types of its parameters, which are in HBM.",
  return: "The tensors that the kernel returns.",
  for: "A loop: the lines below it, once for each number.",
  while: "A loop: the lines below it, as long as the condition holds.",
  if: "The lines below it, if the condition holds.",
  elif: "The lines below it, if this condition holds and none above it.",
  else: "The lines below it, if no condition above it holds.",
  with: "The lines below it, in the order in which they are written.",
};

/** "read, in SBUF or PSUM" */
function operandText(o: NkiOperand): string {
  const memories = ["sbuf", "psum", "hbm"].filter((m) => o.memories.includes(m)).map((m) => m.toUpperCase());
  return `${o.use}${memories.length > 0 ? `, in ${memories.join(" or ")}` : ""}${o.optional ? "; may be left out" : ""}`;
}

/** What an operator is good for besides being called. */
function asOperator(call: NkiCall): string {
  if (call.kind === "function") return "a function of nisa.activation";
  if (call.kind === "operator" || call.kind === "bits") return call.reduces ? "an operator of nki.isa; reductions take it, too" : "an operator of nki.isa";
  return "";
}

function facts(call: NkiCall, engine: string, target: string): Node[] {
  const engines = call.engines.map((e) => `${e}${e === engine ? " (here)" : ""}`).join(", ");
  const tensors = call.operands.filter((o) => o.memories.length > 0);
  const costs = call.costs.filter((c) => c.engine === (engine || call.engines[0]));
  const op = asOperator(call);
  return [
    ...(op ? row("op=", op) : []),
    ...(call.beta1 && call.generations.length > 1 ? row("beta 1", el("code", {}, `(${call.beta1.join(", ")})`)) : []),
    ...(engines ? row("engines", engines) : []),
    ...costRows(costs.length > 0 ? costs : call.costs, target),
    ...limitsOf(call.limits, target).flatMap((l, i) => row(i === 0 ? "limits" : "", l)),
    ...tensors.flatMap((o) => row(o.name, operandText(o))),
    ...(call.instead ? row("instead", call.instead) : []),
    ...(call.becomes.length > 0 ? row("becomes", call.becomes.join(", ")) : []),
  ];
}

function card(call: NkiCall, engine: string, target: string): HTMLElement {
  const list = facts(call, engine, target);
  return el(
    "div",
    { class: "card" },
    el("h3", {}, el("code", {}, call.name)),
    el("p", {}, call.what),
    call.example !== "" && el("p", {}, el("code", {}, call.example)),
    list.length > 0 && el("dl", {}, ...list),
  );
}

/** The card of a name such as "nl.load"; null if the list does not have it. */
export async function nkiCard(name: string, target: string): Promise<HTMLElement | null> {
  const call = (await nkiCalls())?.get(name);
  return call ? card(call, "", target) : null;
}

/** The same for completion, which has the call already. */
export function nkiTip(call: NkiCall, target: string): HTMLElement {
  return card(call, "", target);
}

/** The children of the card of a line of a stage of NKI; label: the name of its operation. */
export async function nkiLineCard(label: string, line: string, target: string): Promise<Node[]> {
  const sentence = LINES[label];
  if (sentence) return [el("h3", {}, el("code", {}, label)), el("p", {}, sentence)];
  const calls = await nkiCalls();
  const call = calls?.get(label);
  if (!call) return [el("p", {}, calls ? "An operator of tiles, as the kernel writes it: nki-canonicalize shows the calls that it becomes." : "The server did not say what this call does.")];
  const engine = /\bengine=(?:nisa\.)?engine\.(\w+)/.exec(line)?.[1] ?? call.engines[0] ?? "";
  return [...card(call, engine, target).childNodes];
}
