// stages: the list of stages.
import type { AppStore } from "../state/app";
import { lastRow, opCount, opDelta, type StageRow } from "../state/outcome";
import { comparedRow } from "./diff";
import { allRows, currentRow, ROW_KEYS, showStage, stepPhase, stepStage, visibleRows } from "../state/view";
import { byId, el, fill, ms, plural, setAttr, toggle } from "./dom";

type Shape = "changed" | "same" | "failed" | "final";

const GLYPH: Record<Shape, string> = { changed: "●", same: "○", failed: "✕", final: "◆" };
const SPOKEN: Record<Shape, string> = {
  changed: "changed",
  same: "no change",
  failed: "failed",
  final: "final",
};

const PARTIAL = "partial: up to where the kernel was refused";

function shapeOf(row: StageRow, last: StageRow | undefined): Shape {
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

function checkMark(row: StageRow): HTMLElement | null {
  const check = row.stage?.check;
  if (!check) return null;
  const mark = check.status === "pass" ? "✓" : check.status === "fail" ? "✕" : "–";
  const title = checkText(row);
  return el("span", { class: `check check-${check.status}`, title, attrs: { "aria-label": title } }, mark);
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

/** In place of neighbours that changed nothing, while these are hidden. */
function gapElement(n: number, show: () => void): HTMLElement {
  return el("div", { class: "gap", attrs: { role: "presentation" } }, el("button", { class: "quiet", title: "Show them", attrs: { type: "button", tabindex: "-1" }, on: { click: show } }, `${n} unchanged`));
}

/** What the user changed in the pipeline here. */
function handMark(row: StageRow): HTMLElement | null {
  const marks = { "left out": ["left out", "You left this pass out"], "put in": ["put in", "You put this pass in"], options: ["options", "You gave this pass options"] } as const;
  const mark = row.stage?.by_hand ? marks[row.stage.by_hand] : null;
  return mark && el("span", { class: "by-hand-mark", title: mark[1] }, ` ${mark[0]}`);
}

function rowElement(row: StageRow, shape: Shape, position: number, total: number): HTMLElement {
  const before = row.stage ? row.kernel.stages[row.kernel.stages.indexOf(row.stage) - 1] : undefined;
  const delta = row.stage ? opDelta(row.stage, before) : null;
  const plus = delta && delta.added > 0 ? `+${delta.added}` : "";
  const minus = delta && delta.removed > 0 ? `−${delta.removed}` : "";
  return el(
    "div",
    {
      class: `stage stage-${shape}${row.stale ? " stale" : ""}`,
      id: `stage-${row.index}`,
      title: factsOf(row),
      attrs: {
        role: "option",
        "aria-selected": "false",
        "aria-setsize": total,
        "aria-posinset": position,
        "aria-label": spoken(row, shape),
        "data-key": row.key,
        "data-shape": shape,
      },
    },
    el("span", { class: "glyph" }, GLYPH[shape]),
    el("span", { class: "name" }, row.name, row.stage?.edit === "here" ? el("span", { class: "edited", title: "You changed this text" }, " ✎") : null, handMark(row)),
    el("span", { class: "time" }, row.stage && row.stage.time_us >= SHOWN_US ? `${ms(row.stage.time_us)} ms` : ""),
    el("span", { class: "delta", title: "operations added and removed, by kind" }, el("ins", {}, plus), el("del", {}, minus)),
    el("span", { class: "ops" }, row.stage ? opCount(row.stage).toLocaleString("en") : ""),
    el("span", { class: "no" }, String(row.index)),
    checkMark(row),
  );
}

interface Phase {
  name: string;
  rows: StageRow[];
}

function phasesOf(rows: StageRow[]): Phase[] {
  const phases: Phase[] = [];
  for (const row of rows) {
    const last = phases.at(-1);
    if (last && last.name === row.phase) last.rows.push(row);
    else phases.push({ name: row.phase, rows: [row] });
  }
  return phases;
}

/** What the list was drawn from. */
interface Drawn {
  all: StageRow[];
  shown: StageRow[];
}

/** Builds the rows anew if they are others than those drawn, and marks the shown stage and the one compared with. */
function draw(store: AppStore, list: HTMLElement, drawn: Drawn | null): Drawn {
  const all = allRows(store.state);
  const shown = visibleRows(store.state);
  if (drawn?.all !== all || drawn.shown.length !== shown.length || shown.some((r, i) => r !== drawn.shown[i])) drawRows(store, list, all, shown);
  mark(list, currentRow(store.state), comparedRow(store.state));
  return { all, shown };
}

function drawRows(store: AppStore, list: HTMLElement, all: StageRow[], shown: StageRow[]): void {
  const end = lastRow(all);
  const last = store.state.outcome?.status === "ok" || end?.stale ? end : undefined; // stale rows are of a complete result
  let position = 0;
  let before = -1; // the index of the row above
  const groups = phasesOf(shown).map((phase) => {
    const us = all.filter((r) => r.phase === phase.name).reduce((sum, r) => sum + (r.stage?.time_us ?? 0), 0);
    const head = el(
      "div",
      { class: "phase", attrs: { role: "presentation" } },
      el("span", {}, phase.name),
      el("span", { class: "time" }, `${ms(us)} ms`),
    );
    const rows = phase.rows.flatMap((r) => {
      const at = all.indexOf(r);
      const gap = store.state.hideUnchanged && store.state.filter === "" ? at - before - 1 : 0;
      before = at;
      const element = rowElement(r, shapeOf(r, last), ++position, shown.length);
      return gap > 0 ? [gapElement(gap, () => store.set({ hideUnchanged: false })), element] : [element];
    });
    return el("div", { attrs: { role: "group", "aria-label": phase.name } }, head, ...rows);
  });
  const top = list.scrollTop;
  fill(list, ...groups);
  if (shown.length === 0 && all.length > 0) list.append(el("p", { class: "empty" }, "No stage matches the filter."));
  list.scrollTop = top;
  list.classList.toggle("checked", all.some((r) => r.stage?.check));
  const changed = all.filter((r) => r.stage?.changed !== false).length;
  byId("stages-note").textContent = all.length > 0 ? `${changed} of ${all.length} changed` : "";
}

const COMPARED = ", compared with";

function mark(list: HTMLElement, current: StageRow | null, compared: StageRow | null): void {
  for (const e of list.querySelectorAll<HTMLElement>(".stage")) {
    const selected = String(e.dataset["key"] === current?.key);
    if (e.getAttribute("aria-selected") !== selected) e.setAttribute("aria-selected", selected);
    const isCompared = e.dataset["key"] === compared?.key;
    if (e.classList.contains("compared") === isCompared) continue;
    e.classList.toggle("compared", isCompared);
    const label = e.getAttribute("aria-label") ?? "";
    e.setAttribute("aria-label", isCompared ? label + COMPARED : label.slice(0, -COMPARED.length));
  }
  const active = list.querySelector<HTMLElement>('[aria-selected="true"]');
  setAttr(list, "aria-activedescendant", active?.id ?? null);
  active?.scrollIntoView({ block: "nearest" });
}

function filterField(store: AppStore, list: HTMLElement): HTMLInputElement {
  const input = el("input", {
    attrs: { type: "search", placeholder: "Filter stages   /", "aria-label": "Filter stages", spellcheck: "false" },
    on: {
      input: () => store.set({ filter: input.value }),
      keydown: (e) => {
        if (e.key === "Escape") {
          store.set({ filter: "" });
          list.focus();
        } else if (e.key === "Enter") {
          const first = visibleRows(store.state)[0];
          if (first) showStage(store, first);
          list.focus();
        } else if (e.key === "ArrowDown") {
          // the shown stage may be filtered out
          const listed = visibleRows(store.state);
          if (listed[0] && !listed.some((r) => r.key === currentRow(store.state)?.key)) showStage(store, listed[0]);
          list.focus();
        } else return;
        e.preventDefault();
        e.stopPropagation();
      },
    },
  });
  store.watch(["filter"], () => {
    if (input.value !== store.state.filter) input.value = store.state.filter;
  });
  return input;
}

export interface StagesPane {
  focusFilter(): void;
}

export function mountStages(store: AppStore, openStage: () => void): StagesPane {
  const list = byId("stages");
  const filter = filterField(store, list);
  const hide = toggle("changed only", "Hide stages that changed nothing", () =>
    store.set({ hideUnchanged: !store.state.hideUnchanged }),
  );
  byId("stages-filter").append(filter, hide);
  store.watch(["hideUnchanged"], () => hide.setAttribute("aria-pressed", String(store.state.hideUnchanged)));
  list.addEventListener("click", (e) => {
    const key = (e.target as Element).closest<HTMLElement>(".stage")?.dataset["key"];
    const row = allRows(store.state).find((r) => r.key === key);
    if (!row) return;
    if (e.altKey) {
      store.set({ beside: row.key });
      return;
    }
    showStage(store, row);
    // in a narrow window, where one pane is shown at a time, choosing a stage shows it
    if (matchMedia("(max-width: 599px), (max-width: 799px) and (max-height: 699px)").matches) openStage();
  });
  list.addEventListener("dblclick", openStage);
  list.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && !e.ctrlKey && !e.metaKey && !e.shiftKey) openStage();
    else return;
    e.preventDefault();
  });
  let drawn: Drawn | null = null;
  store.watch([...ROW_KEYS, "stageKey", "diffFrom", "filter", "hideUnchanged"], () => (drawn = draw(store, list, drawn)));
  return { focusFilter: () => filter.focus() };
}

/** The keys that step through the stages while the focus is outside a text. */
export function stageKey(store: AppStore, key: string): boolean {
  switch (key) {
    case "ArrowDown":
    case "PageDown":
    case "j":
      stepStage(store, 1);
      return true;
    case "ArrowUp":
    case "PageUp":
    case "k":
      stepStage(store, -1);
      return true;
    case "Home":
      stepStage(store, "first");
      return true;
    case "End":
      stepStage(store, "last");
      return true;
    case "n":
      stepPhase(store, 1);
      return true;
    case "b":
      stepPhase(store, -1);
      return true;
    default:
      return false;
  }
}
