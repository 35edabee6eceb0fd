// stagetext: the text of a stage, with what is selected and pointed at.
import { StateEffect } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { linesOfStage } from "../editor/rows";
import { StageViewer } from "../editor/viewer";
import type { AppState, AppStore, Inspect } from "../state/app";
import { bestOf, describe } from "../state/ranking";
import { remarksByLine } from "../state/remarks";
import { images, lightOfAnchor, lightOfOps, type Anchor, type Light } from "../state/selection";
import { settings } from "../state/settings";
import { choose, shownStage, textsOfKernel, ROW_KEYS, STAGE_KEYS, type Shown } from "../state/view";
import { operationCard } from "./card";
import { insideOf } from "./inside";
import { button, el } from "./dom";
import { placeList } from "./places";
import { remarkTip } from "./remarks";
import { Ruler } from "./ruler";

/** How often the selected line is scrolled into sight again after one step: a pane may be too low to show it. */
const REVEALS = 8;

/** Which stage is shown, and what is lit in it. */
export interface StageOf {
  shown(s: Readonly<AppState>): Shown | null;
  selected(s: Readonly<AppState>, shown: Shown): Light | null;
  hover(s: Readonly<AppState>, shown: Shown): Light | null;
  /** The line that the address points at: it is shown instead of the selection. */
  marked(s: Readonly<AppState>): number | null;
}

/** The signs of the compact form that a row has, each with what it means. */
function signsIn(row: string): [string, string][] {
  const signs: [string, string][] = [];
  const copy = /\{[^}]*\}/.exec(row)?.[0];
  if (copy) signs.push([copy, "which of the buffer's copies: they take turns, so that a round need not wait for the one before"]);
  if (row.includes("↑")) signs.push(["↑", "raises its stream's semaphore when it is complete: others wait for it"]);
  return signs;
}

export class StageText {
  readonly viewer: StageViewer;
  private readonly ruler: Ruler;
  shown: Shown | null = null;
  /** The line that stays in sight until the user scrolls. */
  private kept: number | null = null;
  private tries = 0;

  constructor(
    private readonly store: AppStore,
    host: HTMLElement,
    private readonly of: StageOf,
  ) {
    this.viewer = new StageViewer(host, {
      point: (line) => this.point(line),
      caret: (line) => this.point(line),
      clicked: (line, add) => this.clicked(line, add),
      explain: (line) => this.explain(line),
      // it would cover the drawer
      hovers: () => store.state.inspect === null,
      card: (line) => this.card(line),
    });
    this.ruler = new Ruler(host, this.viewer.view);
    store.watch(["wrap"], () => this.viewer.setWrap(store.state.wrap));
    settings.watch(["fullText", "attributes"], () => this.viewer.setDetail({ full: settings.state.fullText, attributes: settings.state.attributes }));
    store.watch([...STAGE_KEYS, "beside"], () => this.draw());
    store.watch([...STAGE_KEYS, "beside", "hover", "anchor", "partner"], () => this.drawLights());
    store.watch(["stageKey", "beside", "reveal", "diffFrom"], () => this.revealSelection());
    store.watch(ROW_KEYS, () => {
      if (this.kept !== null) this.revealSelection();
    });
    new ResizeObserver(() => {
      this.tries = REVEALS;
      this.keepInSight();
    }).observe(host);
    const { view } = this.viewer;
    // heights are estimates until lines are drawn, so that the first scroll may miss
    view.dispatch({ effects: StateEffect.appendConfig.of(EditorView.updateListener.of((u) => u.geometryChanged && this.keepInSight())) });
    for (const type of ["wheel", "pointerdown", "touchstart", "keydown"] as const)
      view.dom.addEventListener(type, () => (this.kept = null), { passive: true, capture: true });
  }

  private draw(): void {
    const now = this.of.shown(this.store.state);
    const was = this.shown;
    this.shown = now;
    if (!now) {
      if (was) this.viewer.clear();
      return;
    }
    if (was?.stage === now.stage) return;
    const { map } = now.row.kernel;
    const label = `IR after stage ${now.stage.index} ${now.stage.name}`;
    const links = map.linksOf(now.stage);
    // before a failed pass, the text and its remarks are those of another pass
    const notes = now.row.stage ? remarksByLine(now.stage, links) : new Map<number, string[]>();
    this.viewer.show(now.stage, { map, links, notes }, label, was ? this.follow(was, now) : null);
  }

  /** The line that must not move: that of the selected operation, otherwise of a visible one. */
  private follow(was: Shown, now: Shown): { from: number; to: number } | null {
    const { first, last } = this.viewer.visibleLines();
    const oldLinks = was.row.kernel.map.linksOf(was.stage);
    if (was.row.kernel.map !== now.row.kernel.map) {
      // another compilation: the same line number is the best guess
      return was.stage.name === now.stage.name && first > 1 ? { from: first, to: first } : null;
    }
    const from = was.row.kernel.stages.indexOf(was.stage);
    const to = now.row.kernel.stages.indexOf(now.stage);
    const bestIn = (stage: number, anchor: Anchor) => {
      const at = now.row.kernel.stages[stage];
      return at && bestOf(at, now.row.kernel.map.linksOf(at), images(anchor, now.row.kernel)[stage]?.ops ?? [])?.line;
    };
    const { anchor } = this.store.state;
    const best = anchor ? bestIn(to, anchor) : undefined;
    if (anchor && best !== undefined) {
      const old = bestIn(from, anchor);
      const isSeen = old !== undefined && old > first && old < last;
      return { from: isSeen ? old : first + Math.round((last - first) / 3), to: best };
    }
    if (first <= 1) return null; // the top stays the top
    for (let line = first; line <= last; line++) {
      const op = oldLinks.lineOp[line - 1] ?? -1;
      if (op < 0) continue;
      const hit = bestIn(to, { kind: "ops", map: was.row.kernel.map, stage: from, ops: [op] });
      if (hit !== undefined) return { from: line, to: hit };
    }
    return null;
  }

  private drawLights(): void {
    const { store, shown } = this;
    const selected = shown && this.of.selected(store.state, shown);
    const hover = shown && this.of.hover(store.state, shown);
    this.viewer.showLights(hover, selected);
    if (!shown) return;
    const { map } = shown.row.kernel;
    const links = map.linksOf(shown.stage);
    const linesOf = (ops: ReadonlySet<number> | undefined) =>
      [...(ops ?? [])].flatMap((op) => links.opLines.get(op) ?? []).map((line) => this.viewer.rowOf(line));
    this.ruler.draw(
      selected?.map === map ? linesOf(selected.ops) : [],
      hover?.map === map ? linesOf(hover.ops) : [],
    );
  }

  /** The line that the address points at, or else the best partner's. */
  private wantedLine(): number | null {
    const { shown, store } = this;
    const marked = this.of.marked(store.state);
    if (marked !== null || !shown) return marked;
    const best = this.of.selected(store.state, shown)?.best ?? null;
    return best === null ? null : (shown.row.kernel.map.linksOf(shown.stage).opLines.get(best)?.[0] ?? null);
  }

  /** Scrolls to the best partner, and keeps it in sight while the layout changes, until the user scrolls. */
  private revealSelection(): void {
    this.kept = this.wantedLine();
    this.tries = REVEALS;
    this.keepInSight();
  }

  private keepInSight(): void {
    const { kept } = this;
    if (kept === null || this.tries === 0) return;
    this.viewer.view.requestMeasure({
      key: this,
      read: () => this.viewer.isInSight(kept),
      write: (isInSight) => {
        if (this.kept !== kept || isInSight) return;
        this.tries--;
        queueMicrotask(() => this.viewer.reveal(kept));
      },
    });
  }

  private opAt(line: number): number | null {
    if (!this.shown) return null;
    const op = this.shown.row.kernel.map.linksOf(this.shown.stage).lineOp[line - 1] ?? -1;
    return op >= 0 ? op : null;
  }

  private point(line: number | null): void {
    const op = line === null ? null : this.opAt(line);
    const { hover } = this.store.state;
    if (op === null || !this.shown) {
      if (hover) this.store.set({ hover: null });
      return;
    }
    const { stage, row } = this.shown;
    const { map, stages } = row.kernel;
    const anchor: Anchor = { kind: "ops", map, stage: stages.indexOf(stage), ops: [op] };
    const was = hover?.anchor;
    if (was?.kind === "ops" && was.map === map && was.stage === anchor.stage && was.ops.includes(op)) return;
    const light = lightOfOps(map, stage, [op]);
    const main = shownStage(this.store.state);
    // the operations of a light are those of the shown stage, beside which this one may be
    const ops = !main || main.stage === stage ? light.ops : (lightOfAnchor(anchor, row.kernel, stages.indexOf(main.stage))?.ops ?? new Set<number>());
    this.store.set({ hover: { origin: "ir", anchor, light: { ...light, ops } } });
  }

  private clicked(line: number, add: boolean): void {
    const op = this.opAt(line);
    if (op === null || !this.shown) return;
    const { kernel } = this.shown.row;
    const stage = kernel.stages.indexOf(this.shown.stage);
    const { anchor } = this.store.state;
    const more = add && anchor?.kind === "ops" && anchor.map === kernel.map && anchor.stage === stage ? anchor.ops : [];
    const ops = more.includes(op) ? more.filter((o) => o !== op) : [...more, op];
    choose(this.store, ops.length > 0 ? { kind: "ops", map: kernel.map, stage, ops } : null);
  }

  /** What the user looks at: the caret's line with the value there, if it was selected in this stage or nothing is; otherwise
   * the line of the best partner. */
  lookedAt(): { shown: Shown; line: number; name: string | null } | null {
    const { shown } = this;
    if (!shown) return null;
    const { anchor } = this.store.state;
    const { map, stages } = shown.row.kernel;
    const selected = this.of.selected(this.store.state, shown);
    const line = this.viewer.caretLine();
    const op = this.opAt(line);
    const isOwn = !anchor || (anchor.kind === "ops" && anchor.map === map && anchor.stage === stages.indexOf(shown.stage));
    if (isOwn && op !== null && (!selected || selected.ops.has(op))) return { shown, line, name: this.viewer.caretName() };
    const best = selected?.best ?? null;
    const at = best === null ? undefined : map.linksOf(shown.stage).opLines.get(best)?.[0];
    return at === undefined ? null : { shown, line: at, name: null };
  }

  /** What a click does, from the keyboard. */
  chooseCaret(): void {
    this.clicked(this.viewer.caretLine(), false);
  }

  /** Shows a line of the stage, lit as if the pointer were over it, and leaves the keyboard where it is. */
  openLine(line: number): void {
    this.kept = line;
    this.tries = REVEALS;
    this.viewer.openLine(line, "", false);
    this.point(line);
  }

  private card(line: number): HTMLElement | null {
    const text = this.shown && this.opAt(line) !== null ? linesOfStage(this.shown.stage)[line - 1] : undefined;
    if (text === undefined || !this.shown) return null;
    const card = operationCard(text, this.shown.stage.dialect, this.store.state.target);
    const inside = insideOf(this.store, text, this.shown.stage.dialect, () => this.viewer.closeTips());
    if (inside) card.append(inside);
    if (document.documentElement.dataset["form"] !== "embed") card.append(this.lookInto(line));
    return card;
  }

  /** The ways from a line's card into the drawer. */
  private lookInto(line: number): HTMLElement {
    const look = (inspect: Inspect) => {
      this.viewer.closeTips();
      this.viewer.openLine(line);
      this.chooseCaret();
      this.store.set({ inspect });
    };
    const dialect = this.shown?.stage.dialect;
    return el("p", { class: "card-looks" }, dialect !== "nki" && button("values", "What the operation computes or writes (v)", () => look("values")), dialect === "nisa" && button("tiles", "What the instruction touches of its buffers (o)", () => look("tiles")));
  }

  private explain(line: number): HTMLElement | null {
    if (!this.shown) return null;
    const { kernel } = this.shown.row;
    const links = kernel.map.linksOf(this.shown.stage);
    const places = links.places[line - 1] ?? [];
    const chained = places.length > 1 || places.some((p) => p.length > 1);
    const texts = textsOfKernel(this.store.state, kernel);
    const op = this.opAt(line);
    const kind = op === null ? null : (describe(this.shown.stage, links, op)?.kind ?? null);
    const isShared = kind === "constant" || kind === "buffer";
    const isListed = chained || kernel.map.roundsOf(places) !== null;
    const list = isListed && texts ? placeList(places, links.more[line - 1] ?? 0, kernel.map, texts, isShared) : null;
    const remarks = remarksByLine(this.shown.stage, links).get(line);
    const signs = this.shown.stage.dialect === "nisa" ? signsIn(this.viewer.rowText(line)) : [];
    if (!remarks && signs.length === 0) return list;
    return el("div", {}, remarks ? remarkTip([{ stage: this.shown.stage, texts: remarks }]) : null, list, ...signs.map(([sign, what]) => el("p", { class: "sign" }, el("code", {}, sign), ` ${what}`)));
  }
}
