// elements: a part of a value's elements as a table, which is paged through in every dimension.
import type { Value } from "../api/types";
import { numberText } from "../state/units";
import { button, el, fill } from "./dom";
import type { Window2 } from "./heatmap";

/** Elements of a side of the table. */
const SIDE = 32;
/** A value of one dimension is shown in rows of as many. */
const LINE = 8;

interface Cells {
  /** What the rows and columns are called. */
  rows: string[];
  columns: string[];
  at(row: number, column: number): { index: number[]; text: number | string } | null;
}

export class Elements {
  readonly box = el("section", { class: "elements", attrs: { "aria-label": "Elements" } });
  private cells: Cells | null = null;

  constructor(private readonly goTo: (at: number[]) => void) {}

  /** Shows the page that has the element `at`, and marks the element `wrong`.  Returns what it shows of the heat map's two
   * dimensions. */
  show(value: Value, at: readonly number[] | null, wrong: readonly number[] | null): Window2 {
    const none = { row: 0, column: 0, rows: 1, columns: 1 };
    const { slice, heat } = value;
    const shape = value.shape ?? [];
    const { start, shape: size, data } = slice ?? {};
    if (!start || !size || !data || data.length === 0) {
      this.cells = null;
      fill(this.box, el("p", { class: "note" }, slice?.reason ? `The elements are not shown: ${slice.reason}.` : "It has no elements."));
      return none;
    }
    const textOf = (index: readonly number[]) => {
      let k = 0;
      for (let d = 0; d < size.length; d++) {
        const i = (index[d] ?? 0) - (start[d] ?? 0);
        if (i < 0 || i >= (size[d] ?? 0)) return null;
        k = k * (size[d] ?? 0) + i;
      }
      return data[k] ?? null;
    };
    if (!heat) {
      this.cells = { rows: [""], columns: [""], at: () => ({ index: [], text: textOf([]) ?? "–" }) };
      this.draw(value, null, []);
      return none;
    }
    const { row_dim: rowDim, column_dim: columnDim } = heat;
    const here = at ?? heat.at;
    const isLine = rowDim < 0;
    const first = (d: number, side: number) => (d < 0 ? 0 : (here[d] ?? 0) - ((here[d] ?? 0) % side));
    const part: Window2 = {
      row: first(rowDim, SIDE),
      column: first(columnDim, isLine ? LINE * LINE : SIDE),
      rows: isLine ? 1 : Math.min(SIDE, (shape[rowDim] ?? 1) - first(rowDim, SIDE)),
      columns: Math.min(isLine ? LINE * LINE : SIDE, (shape[columnDim] ?? 1) - first(columnDim, isLine ? LINE * LINE : SIDE)),
    };
    const index = (r: number, c: number) => here.map((i, d) => (d === rowDim ? r : d === columnDim ? c : i));
    const cell = (r: number, c: number) => {
      const text = r < part.row + part.rows && c < part.column + part.columns ? textOf(index(r, c)) : null;
      return text === null ? null : { index: index(r, c), text };
    };
    const count = (n: number, label: (i: number) => string) => Array.from({ length: n }, (_, i) => label(i));
    this.cells = isLine
      ? {
          rows: count(Math.ceil(part.columns / LINE), (i) => String(part.column + i * LINE)),
          columns: count(Math.min(LINE, part.columns), (i) => `+${i}`),
          at: (r, c) => cell(0, part.column + r * LINE + c),
        }
      : {
          rows: count(part.rows, (i) => String(part.row + i)),
          columns: count(part.columns, (i) => String(part.column + i)),
          at: (r, c) => cell(part.row + r, part.column + c),
        };
    this.draw(value, wrong, this.steppers(shape, here, rowDim, columnDim, part));
    return part;
  }

  /** For each dimension that is longer than what is shown: its place, and the way to others. */
  private steppers(shape: readonly number[], here: readonly number[], rowDim: number, columnDim: number, part: Window2): HTMLElement[] {
    return shape.flatMap((n, d) => {
      const [from, length] = d === rowDim ? [part.row, part.rows] : d === columnDim ? [part.column, part.columns] : [here[d] ?? 0, 1];
      if (length >= n) return [];
      const side = d === columnDim && rowDim < 0 ? LINE * LINE : d === rowDim || d === columnDim ? SIDE : 1;
      const go = (i: number) => this.goTo(here.map((at, k) => (k === d ? Math.min(Math.max(i, 0), n - 1) : at)));
      const name = `dimension ${d}`;
      const step = (text: string, label: string, to: number, isThere: boolean) => {
        const b = button(text, label, () => go(to));
        b.setAttribute("aria-label", label);
        b.dataset["step"] = `${d}${text}`;
        b.disabled = !isThere;
        return b;
      };
      const field = el("input", { attrs: { type: "text", inputmode: "numeric", size: String(n).length + 1, value: from, "aria-label": `First element of ${name}` } });
      field.dataset["step"] = `${d}=`;
      field.addEventListener("change", () => {
        const i = Math.round(Number(field.value));
        if (Number.isFinite(i)) go(i);
      });
      const range = length > 1 ? `–${from + length - 1} of ${n}` : ` of ${n}`;
      return [
        el("span", { class: "stepper", attrs: { role: "group", "aria-label": name } }, `dim ${d}`, step("‹", `Back in ${name}`, from - side, from > 0), field, range, step("›", `On in ${name}`, from + side, from + side < n)),
      ];
    });
  }

  private draw(value: Value, wrong: readonly number[] | null, steppers: HTMLElement[]): void {
    const { cells } = this;
    if (!cells) return;
    const isWhole = !/float|bf|f\d/.test(value.dtype ?? "");
    const isWrong = (index: readonly number[]) => wrong !== null && index.every((i, d) => i === wrong[d]);
    const td = (r: number, c: number) => {
      const x = cells.at(r, c);
      if (!x) return el("td", {});
      const bad = isWrong(x.index);
      return el("td", { class: `${typeof x.text === "string" ? "bad" : x.text === 0 ? "zero" : ""}${bad ? " wrong" : ""}`, title: bad ? "The first that differs from the reference" : "" }, numberText(x.text, isWhole));
    };
    const isScalar = value.shape?.length === 0;
    const head = isScalar ? null : el("thead", {}, el("tr", {}, el("td", {}), ...cells.columns.map((c) => el("th", { attrs: { scope: "col" } }, c))));
    const rows = cells.rows.map((name, r) => el("tr", {}, isScalar ? null : el("th", { attrs: { scope: "row" } }, name), ...cells.columns.map((_, c) => td(r, c))));
    const focus = document.activeElement instanceof HTMLElement && this.box.contains(document.activeElement) ? document.activeElement.dataset["step"] : undefined;
    fill(
      this.box,
      el("div", { class: "elements-head" }, el("b", {}, "Elements"), ...steppers),
      el("div", { class: "elements-scroll", attrs: { tabindex: 0, role: "region", "aria-label": "Table of elements" } }, el("table", { class: "grid" }, head, el("tbody", {}, ...rows))),
    );
    const again = focus === undefined ? null : [...this.box.querySelectorAll<HTMLElement>("[data-step]")].find((n) => n.dataset["step"] === focus);
    if (again) (again.matches(":disabled") ? again.parentElement?.querySelector<HTMLElement>("input") : again)?.focus();
    this.box.querySelector(".wrong")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  csv(): string {
    const { cells } = this;
    if (!cells) return "";
    const rows = cells.rows.map((name, r) => [name, ...cells.columns.map((_, c) => String(cells.at(r, c)?.text ?? ""))]);
    return [["", ...cells.columns], ...rows].map((row) => row.join(",")).join("\n") + "\n";
  }
}
