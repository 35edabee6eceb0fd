// stagerow: a row of the list of stages.  It stays from one result to the next, and only what differs is written: most of a
// list of fifty rows is the same after each key, and the page would be laid out for every row that is made anew.
import { opCount, opDelta, type StageRow } from "../state/outcome";
import { count, el, ms, plural, setAttr, setText } from "./dom";

export type Shape = "changed" | "same" | "failed" | "final";

const GLYPH: Record<Shape, string> = { changed: "●", same: "○", failed: "✕", final: "◆" };
const SPOKEN: Record<Shape, string> = {
  changed: "changed",
  same: "no change",
  failed: "failed",
  final: "final",
};

const PARTIAL = "partial: up to where the kernel was refused";

export function shapeOf(row: StageRow, last: StageRow | undefined): Shape {
  if (row.failed) return "failed";
  if (row === last) return "final";
  return row.stage?.changed === false ? "same" : "changed";
}

/** What the stage's check found, in words; "" if there was none. */
export function checkText(row: StageRow): string {
  const check = row.stage?.check;
  if (!check) return "";
  const figure = (v: number | null) => (v === null ? "infinite" : v.toExponential(1));
  const errors =
    check.max_abs_err === undefined ? "" : ` · max abs ${figure(check.max_abs_err)}, rel ${figure(check.max_rel_err ?? 0)}`;
  const first = check.first_wrong;
  const wrong = first ? ` · ${first.output}[${first.index.join(", ")}] is ${first.got ?? "not finite"}, not ${first.expected ?? "finite"}` : "";
  return `${check.status === "pass" ? "computes what NumPy computes" : check.status === "fail" ? "differs from NumPy" : "not checked"}${errors}${wrong}${check.reason ? ` · ${check.reason}` : ""}${check.note ? ` · ${check.note}` : ""}`;
}

function spoken(row: StageRow, shape: Shape): string {
  const parts = [`${row.index} ${row.name}`, row.stage?.partial ? PARTIAL : SPOKEN[shape]];
  if (row.stage?.edit) parts.push(row.stage.edit === "here" ? "changed by you" : "from your change");
  if (row.stage) parts.push(`${opCount(row.stage)} operations`, `${ms(row.stage.time_us)} milliseconds`);
  if (row.stage?.check) parts.push(`check ${row.stage.check.status}: ${checkText(row)}`);
  return parts.join(", ");
}

/** Shorter times are noise; they are in the title. */
const SHOWN_US = 1000;

function factsOf(row: StageRow): string {
  if (row.stage?.partial) return PARTIAL;
  return row.stage ? `${row.index} ${row.name}: ${plural(opCount(row.stage), "operation")}, ${ms(row.stage.time_us)} ms` : row.name;
}

/** What the user changed in the pipeline here. */
function handMark(row: StageRow): HTMLElement | null {
  const marks = { "left out": ["left out", "You left this pass out"], "put in": ["put in", "You put this pass in"], options: ["options", "You gave this pass options"] } as const;
  const mark = row.stage?.by_hand ? marks[row.stage.by_hand] : null;
  return mark && el("span", { class: "by-hand-mark", title: mark[1] }, ` ${mark[0]}`);
}

const COMPARED = ", compared with";

export class RowElement {
  private readonly glyph = el("span", { class: "glyph" });
  private readonly name = el("span", { class: "name" });
  private readonly time = el("span", { class: "time" });
  private readonly plus = el("ins");
  private readonly minus = el("del");
  private readonly ops = el("span", { class: "ops" });
  private readonly no = el("span", { class: "no" });
  private readonly delta = el("span", { class: "delta", title: "operations added and removed, by kind" }, this.plus, this.minus);
  private check: HTMLElement | null = null;
  private label = "";
  private named = "";
  readonly element: HTMLElement;

  constructor(key: string) {
    const attrs = { role: "option", "aria-selected": "false", "data-key": key };
    this.element = el("div", { class: "stage", attrs }, this.glyph, this.name, this.time, this.delta, this.ops, this.no);
  }

  /** Shows a row, the position-th of so many. */
  show(row: StageRow, shape: Shape, position: number, total: number): void {
    const { element } = this;
    const { stage } = row;
    const classes = `stage stage-${shape}${row.stale ? " stale" : ""}${element.classList.contains("compared") ? " compared" : ""}`;
    if (element.className !== classes) element.className = classes;
    const id = `stage-${row.index}`;
    if (element.id !== id) element.id = id;
    setAttr(element, "title", factsOf(row));
    setAttr(element, "aria-setsize", total);
    setAttr(element, "aria-posinset", position);
    setAttr(element, "data-shape", shape);
    setText(this.glyph, GLYPH[shape]);
    this.showName(row);
    setText(this.time, stage && stage.time_us >= SHOWN_US ? `${ms(stage.time_us)} ms` : "");
    const delta = stage && opDelta(stage, row.kernel.stages[row.kernel.stages.indexOf(stage) - 1]);
    setText(this.plus, delta && delta.added > 0 ? `+${delta.added}` : "");
    setText(this.minus, delta && delta.removed > 0 ? `−${delta.removed}` : "");
    setText(this.ops, stage ? count(opCount(stage)) : "");
    setText(this.no, String(row.index));
    this.showCheck(row);
    this.label = spoken(row, shape);
  }

  /** Follows show().  One row is selected, and one may be compared with it. */
  mark(isSelected: boolean, isCompared: boolean): void {
    const { element } = this;
    setAttr(element, "aria-selected", String(isSelected));
    if (element.classList.contains("compared") !== isCompared) element.classList.toggle("compared", isCompared);
    setAttr(element, "aria-label", isCompared ? this.label + COMPARED : this.label);
  }

  private showName(row: StageRow): void {
    const named = `${row.name} ${row.stage?.edit ?? ""} ${row.stage?.by_hand ?? ""}`;
    if (named === this.named) return;
    this.named = named;
    this.name.replaceChildren(row.name);
    if (row.stage?.edit === "here") this.name.append(el("span", { class: "edited", title: "You changed this text" }, " ✎"));
    const mark = handMark(row);
    if (mark) this.name.append(mark);
  }

  private showCheck(row: StageRow): void {
    const check = row.stage?.check;
    if (!check) {
      this.check?.remove();
      this.check = null;
      return;
    }
    if (!this.check) this.element.append((this.check = el("span")));
    const title = checkText(row);
    setAttr(this.check, "class", `check check-${check.status}`);
    setAttr(this.check, "title", title);
    setAttr(this.check, "aria-label", title);
    setText(this.check, check.status === "pass" ? "✓" : check.status === "fail" ? "✕" : "–");
  }
}
