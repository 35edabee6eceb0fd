// places: the list of an operation's source places, each with the calls that led there.
import { Text } from "@codemirror/state";
import type { SourceRange } from "../api/types";
import { rangeText, snippet } from "../editor/positions";
import type { Place, SourceMap } from "../state/sourcemap";
import { el } from "./dom";

const MANY = 12;

function rangeLine(doc: Text, r: SourceRange, lead: string, shown: boolean): HTMLElement {
  return el(
    "span",
    { class: "place-range" },
    lead,
    el("span", { class: "at" }, shown ? rangeText(r) : `${r.file}:${r.line}`),
    " ",
    el("code", {}, shown ? snippet(doc, r) : ""),
    r.fn ? el("span", { class: "fn" }, ` in ${r.fn}`) : null,
  );
}

/** more: how many places there are, at least, besides those of the list. */
export function placeList(places: readonly Place[], more: number, map: SourceMap, source: string): HTMLElement {
  const doc = Text.of(source.split("\n"));
  const items = places.slice(0, MANY).map((place) =>
    el(
      "li",
      {},
      ...place.map((n, depth) =>
        rangeLine(doc, map.ranges[n] as SourceRange, depth === 0 ? "" : "called from ", map.isShown(n)),
      ),
    ),
  );
  const rest = places.length - items.length + more;
  const count = places.length + more;
  return el(
    "div",
    { class: "places" },
    count > 1 ? el("p", {}, `Made from ${count} places`) : null,
    el("ol", {}, ...items),
    rest > 0 ? el("p", {}, `and ${rest} more`) : null,
  );
}
