// tree: the fields of an operation, those with fields of their own opened and closed by the browser.
import type { Field } from "../nisa/fields";
import { el } from "./dom";

export function fieldTree(fields: readonly Field[]): HTMLElement {
  const entry = (f: Field) => {
    const label = [el("span", { class: "name" }, f.name), f.value === "" ? null : el("code", {}, f.value)];
    return f.fields.length === 0 ? el("li", {}, ...label) : el("li", {}, el("details", {}, el("summary", {}, ...label), fieldTree(f.fields)));
  };
  return el("ul", { class: "fields" }, ...fields.map(entry));
}
