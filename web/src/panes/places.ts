// places: the list of an operation's source places, each with the calls that led there.
import { Text } from "@codemirror/state";
import type { SourceRange } from "../api/types";
import { placeText, snippet } from "../editor/positions";
import { roundText } from "../state/rounds";
import type { Place, SourceMap } from "../state/sourcemap";
import { el } from "./dom";

const MANY = 12;

const docs = new WeakMap<ReadonlyMap<string, string>, Map<string, Text>>();

/** The document that a range is in; an empty one if it is none of the texts. */
export function docOf(texts: ReadonlyMap<string, string>, r: SourceRange): Text {
  const known = docs.get(texts) ?? new Map<string, Text>();
  docs.set(texts, known);
  const doc = known.get(r.file) ?? Text.of((texts.get(r.file) ?? "").split("\n"));
  known.set(r.file, doc);
  return doc;
}

function rangeLine(map: SourceMap, texts: ReadonlyMap<string, string>, n: number, lead: string): HTMLElement {
  const r = map.ranges[n] as SourceRange;
  const shown = map.isShown(n);
  return el(
    "span",
    { class: "place-range" },
    lead,
    el("span", { class: "at" }, shown ? placeText(map, r) : `${r.file}:${r.line}`),
    " ",
    el("code", {}, shown ? snippet(docOf(texts, r), r) : ""),
    r.fn ? el("span", { class: "fn" }, ` in ${r.fn}`) : null,
  );
}

/** more: how many places there are, at least, besides those of the list.  isShared: it is a constant or a buffer, which they
 * all use. */
export function placeList(places: readonly Place[], more: number, map: SourceMap, texts: ReadonlyMap<string, string>, isShared = false): HTMLElement {
  const rounds = map.roundsOf(places);
  const items = places.slice(0, MANY).map((place, i) => {
    const text = roundText(rounds?.[i] ?? null, map.roundsOfLoop);
    return el(
      "li",
      {},
      ...place.map((n, depth) => rangeLine(map, texts, n, depth === 0 ? "" : "called from ")),
      text === "" ? null : el("span", { class: "place-round" }, text),
    );
  });
  const rest = places.length - items.length + more;
  const count = places.length + more;
  return el(
    "div",
    { class: "places" },
    count > 1 ? el("p", {}, isShared ? `Shared by ${count} expressions` : `Made from ${count} places`) : null,
    el("ol", {}, ...items),
    rest > 0 ? el("p", {}, `and ${rest} more`) : null,
  );
}
