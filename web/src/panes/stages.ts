// stages: the list of stages.
import type { AppStore } from "../state/app";
import { lastRow, type StageRow } from "../state/outcome";
import { comparedRow } from "./diff";
import { allRows, currentRow, ROW_KEYS, showStage, stepPhase, stepStage, visibleRows } from "../state/view";
import { arrange, byId, el, ms, setAttr, setText, toggle } from "./dom";
import { RowElement, shapeOf } from "./stagerow";

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

/** A phase of the list: its name, its time, and its rows. */
interface Group {
  element: HTMLElement;
  time: HTMLElement;
}

/** The list as it is drawn.  Rows, phases and gaps stay as long as they are shown. */
class StageList {
  private rows = new Map<string, RowElement>();
  private groups = new Map<string, Group>();
  /** The gap before a row, by the row's key. */
  private gaps = new Map<string, HTMLElement>();
  private readonly nothing = el("p", { class: "empty" }, "No stage matches the filter.");
  private all: StageRow[] = [];
  private shown: StageRow[] = [];
  private active: HTMLElement | null = null;

  constructor(
    private readonly store: AppStore,
    private readonly list: HTMLElement,
  ) {}

  draw(): void {
    const { state } = this.store;
    const all = allRows(state);
    const shown = visibleRows(state);
    const isSame = this.all === all && this.shown.length === shown.length && shown.every((r, i) => r === this.shown[i]);
    const isMoved = !isSame && this.drawRows(all, shown);
    this.all = all;
    this.shown = shown;
    this.mark(currentRow(state), comparedRow(state), isMoved);
  }

  /** Returns whether rows came, went or changed their places. */
  private drawRows(all: StageRow[], shown: StageRow[]): boolean {
    const { store, list } = this;
    const end = lastRow(all);
    const last = store.state.outcome?.status === "ok" || end?.stale ? end : undefined; // stale rows are of a complete result
    const rows = new Map<string, RowElement>();
    const groups = new Map<string, Group>();
    const gaps = new Map<string, HTMLElement>();
    let position = 0;
    let before = -1; // the index of the row above
    let isMoved = false;
    const drawn: HTMLElement[] = phasesOf(shown).map((phase) => {
      const inside = phase.rows.flatMap((r) => {
        const at = all.indexOf(r);
        const gap = store.state.hideUnchanged && store.state.filter === "" ? at - before - 1 : 0;
        before = at;
        const key = unique(rows, r.key);
        const row = this.rows.get(key) ?? new RowElement(r.key);
        rows.set(key, row);
        row.show(r, shapeOf(r, last), ++position, shown.length);
        if (gap <= 0) return [row.element];
        const element = this.gaps.get(key) ?? gapElement(() => store.set({ hideUnchanged: false }));
        gaps.set(key, element);
        setText(element.firstElementChild ?? element, `${gap} unchanged`);
        return [element, row.element];
      });
      const key = unique(groups, phase.name);
      const group = this.groups.get(key) ?? groupElement(phase.name);
      groups.set(key, group);
      const us = all.filter((r) => r.phase === phase.name).reduce((sum, r) => sum + (r.stage?.time_us ?? 0), 0);
      setText(group.time, `${ms(us)} ms`);
      isMoved = arrange(group.element, 1, inside) || isMoved;
      return group.element;
    });
    if (shown.length === 0 && all.length > 0) drawn.push(this.nothing);
    isMoved = arrange(list, 0, drawn) || isMoved;
    [this.rows, this.groups, this.gaps] = [rows, groups, gaps];
    const isChecked = all.some((r) => r.stage?.check);
    if (list.classList.contains("checked") !== isChecked) list.classList.toggle("checked", isChecked);
    const changed = all.filter((r) => r.stage?.changed !== false).length;
    setText(byId("stages-note"), all.length > 0 ? `${changed} of ${all.length} changed` : "");
    return isMoved;
  }

  private mark(current: StageRow | null, compared: StageRow | null, isMoved: boolean): void {
    let active: HTMLElement | null = null;
    for (const [, row] of this.rows) {
      const key = row.element.dataset["key"];
      const isSelected = key === current?.key;
      row.mark(isSelected, key === compared?.key);
      if (isSelected) active ??= row.element;
    }
    setAttr(this.list, "aria-activedescendant", active?.id ?? null);
    // it asks for the layout: only where it may have to scroll
    if (active && (isMoved || active !== this.active)) active.scrollIntoView({ block: "nearest" });
    this.active = active;
  }
}

/** A key that the map has not: stages of two results in one list may have the same. */
function unique(map: ReadonlyMap<string, unknown>, key: string): string {
  return map.has(key) ? unique(map, key + " again") : key;
}

function groupElement(name: string): Group {
  const time = el("span", { class: "time" });
  const head = el("div", { class: "phase", attrs: { role: "presentation" } }, el("span", {}, name), time);
  return { element: el("div", { attrs: { role: "group", "aria-label": name } }, head), time };
}

/** In place of neighbours that changed nothing, while these are hidden. */
function gapElement(show: () => void): HTMLElement {
  return el("div", { class: "gap", attrs: { role: "presentation" } }, el("button", { class: "quiet", title: "Show them", attrs: { type: "button", tabindex: "-1" }, on: { click: show } }));
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
  const drawn = new StageList(store, list);
  store.watch([...ROW_KEYS, "stageKey", "diffFrom", "filter", "hideUnchanged"], () => drawn.draw());
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
