// card: what an operation does: a sentence, its fields, engines, limits and cost, from the tables of the compiler.
import { getInstructions } from "../api/client";
import type { Instruction, InstructionCost } from "../api/types";
import { opLabel } from "../highlight/label";
import { fieldsOf, fullName } from "../nisa/fields";
import { readInstruction } from "../nisa/read";
import { el, fill } from "./dom";
import { fieldTree } from "./tree";

interface Cards {
  instructions: ReadonlyMap<string, Instruction>;
  sentences: ReadonlyMap<string, string>;
}

let loading: Promise<Cards> | null = null;

/** Requested when the first card is shown. */
function cards(): Promise<Cards> {
  loading ??= getInstructions().then(
    ({ instructions, operations }) => ({
      instructions: new Map(instructions.map((i) => [i.name, i])),
      sentences: new Map([...instructions, ...operations].map((o) => [o.name, o.what])),
    }),
    (e: unknown) => {
      loading = null; // the next card tries again
      throw e;
    },
  );
  return loading;
}

const CONFIDENCE: Readonly<Record<string, string>> = { H: "well founded", M: "one published figure", L: "inferred" };

export function row(name: string, ...value: (Node | string)[]): Node[] {
  return value.length > 0 ? [el("dt", {}, name), el("dd", {}, ...value)] : [];
}

function costText(cost: InstructionCost, target: string): Node[] {
  const trust = cost.confidence[target as keyof InstructionCost["confidence"]] ?? "";
  return [
    el("span", {}, cost.formula),
    el("span", { class: "trust" }, ` ${CONFIDENCE[trust] ?? ""}; ${cost.source}`),
  ];
}

export function costRows(costs: readonly InstructionCost[], target: string): Node[] {
  return costs.flatMap((c) => row("cost", ...costText(c, target)));
}

/** Limits that name a target are those of that target only. */
export function limitsOf(limits: readonly string[], target: string): string[] {
  return limits.filter((l) => !/^trn\d: /.test(l) || l.startsWith(`${target}: `)).map((l) => l.replace(/^trn\d: /, ""));
}

function facts(i: Instruction, engine: string, target: string): HTMLElement {
  const engines = i.engines.map((e) => `${e.name}${e.name === engine ? " (here)" : ""}`).join(", ");
  const here = i.engines.find((e) => e.name === engine);
  const reach = here ? `reads ${here.reads.join(", ") || "nothing"}; writes ${here.writes.join(", ") || "nothing"}` : "";
  const costs = i.costs.filter((c) => c.engine === engine);
  return el(
    "dl",
    {},
    ...(engines ? row("engines", engines) : []),
    ...(reach ? row("memories", reach) : []),
    ...limitsOf(i.limits, target).flatMap((l) => row("limit", l)),
    ...costRows(costs.length > 0 ? costs : i.costs, target),
  );
}

/** The card of a line of NKI, whose module is loaded with the first one. */
function nkiCard(line: string, target: string): HTMLElement {
  const box = el("div", {}, el("p", {}, "…"));
  import("./nkicard").then((m) => m.nkiLineCard(opLabel(line, "nki"), line, target)).then(
    (content) => fill(box, ...content),
    () => fill(box, el("p", {}, "This card could not be loaded: is the server reachable?")),
  );
  return el("div", { class: "card" }, box);
}

/** The card of an operation's line, which fills itself once the texts are there; null for a line without one. */
export function operationCard(line: string, dialect: string, target: string): HTMLElement {
  if (dialect === "nki") return nkiCard(line, target);
  const name = fullName(opLabel(line, dialect), dialect);
  const what = el("p", {}, "…");
  const more = el("div", {});
  cards().then(
    ({ instructions, sentences }) => {
      const instruction = instructions.get(name);
      fill(what, sentences.get(name) ?? "An operation that this page has no sentence for.");
      if (instruction) fill(more, facts(instruction, readInstruction(line)?.engine ?? "", target));
    },
    () => fill(what, "The server did not say what this operation does."),
  );
  const title = el("h3", {}, el("code", {}, name.replace(/^hlo\./, "")));
  return el("div", { class: "card" }, title, what, fieldTree(fieldsOf(line, dialect)), more);
}
