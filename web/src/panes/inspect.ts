// inspect: the drawer below a stage's text that looks into the selected line: the values there, or the tiles that an
// instruction touches.  While it is open, it follows the selection.
import { linesOfStage } from "../editor/rows";
import { opLabel } from "../highlight/label";
import type { AppStore, Inspect } from "../state/app";
import type { Shown } from "../state/view";
import { STAGE_KEYS } from "../state/view";
import css from "../style/inspect.late.css";
import { adoptStyle } from "../style/late";
import { byId, el, fill, setAttr, toggle } from "./dom";
import { icon } from "./icons";
import type { StageText } from "./stagetext";
import { TilesLook } from "./tiles";
import { ValuesLook } from "./values";

adoptStyle(css);

/** What the drawer looks into. */
export interface Subject {
  shown: Shown;
  /** Of the stage's text. */
  line: number;
  /** The value at the caret; null: what the line's operation computes or writes. */
  name: string | null;
  /** The execution, from 1, to begin with; null: any. */
  execution: number | null;
}

/** One way to look. */
export interface Look {
  readonly body: HTMLElement;
  /** Buttons for the drawer's head. */
  readonly tools: readonly HTMLElement[];
  show(subject: Subject): void;
  /** There is nothing to show, for this reason. */
  clear(why: string): void;
}

/** Milliseconds after which a selection that stays is looked into. */
const PAUSE_MS = 90;

const HEIGHT = { least: 15, most: 85, step: 4 };
const TITLES: Record<Inspect, [label: string, title: string]> = {
  values: ["values", "What the value holds (v)"],
  tiles: ["tiles", "What the instruction touches of its buffers (o)"],
};

export class InspectPane {
  private readonly box = el("section", { id: "inspect", class: "drawer", attrs: { "aria-label": "Values", tabindex: -1 } });
  private readonly looks: Record<Inspect, Look>;
  private readonly tabs: Record<Inspect, HTMLButtonElement>;
  private readonly title = el("span", { class: "inspect-title" });
  private readonly tools = el("span", { class: "tools" });
  private timer = 0;
  private last: Subject | null = null;
  private percent = 52;

  constructor(
    private readonly store: AppStore,
    private readonly text: () => StageText,
  ) {
    this.looks = { values: new ValuesLook(store), tiles: new TilesLook(store) };
    const tab = (look: Inspect) => toggle(...TITLES[look], () => store.set({ inspect: look }));
    this.tabs = { values: tab("values"), tiles: tab("tiles") };
    const close = el("button", { class: "quiet tool", title: "Close (Esc)", attrs: { type: "button", "aria-label": "Close the drawer" }, on: { click: () => this.close() } }, icon("close"));
    const head = el("div", { class: "inspect-head" }, ...Object.values(this.tabs), this.title, el("span", { class: "spring" }), this.tools, close);
    this.box.append(this.grip(), head, ...Object.values(this.looks).map((l) => l.body));
    byId("history").before(this.box);
    this.box.addEventListener("keydown", (e) => {
      if (e.key !== "Escape" || e.defaultPrevented) return;
      e.preventDefault();
      e.stopPropagation();
      this.close();
    });
    store.watch([...STAGE_KEYS, "inspect", "execution", "compiling", "pending", "anchor", "partner", "beside"], () => this.soon());
    store.watch(["inspect"], () => this.arrange());
  }

  /** Puts the focus into the drawer. */
  focus(): void {
    this.box.focus();
  }

  private close(): void {
    const hadFocus = this.box.contains(document.activeElement);
    this.store.set({ inspect: null });
    if (hadFocus) this.text().viewer.view.focus();
  }

  private arrange(): void {
    const { inspect } = this.store.state;
    this.box.hidden = inspect === null;
    if (inspect === null) return;
    setAttr(this.box, "aria-label", inspect === "values" ? "Values" : "Tiles");
    for (const [look, tab] of Object.entries(this.tabs)) tab.setAttribute("aria-pressed", String(look === inspect));
    for (const [look, { body }] of Object.entries(this.looks)) body.hidden = look !== inspect;
    fill(this.tools, ...this.looks[inspect].tools);
  }

  private soon(): void {
    window.clearTimeout(this.timer);
    if (this.store.state.inspect !== null) this.timer = window.setTimeout(() => this.follow(), PAUSE_MS);
  }

  private follow(): void {
    const { inspect, execution, outcome, compiling, pending, shared } = this.store.state;
    if (inspect === null) return;
    const look = this.looks[inspect];
    const at = this.text().lookedAt();
    const subject = at ? { ...at, execution } : this.again();
    this.last = subject ?? this.last;
    const isReady = outcome?.status === "ok" && !compiling && !pending;
    this.title.textContent = subject ? `${subject.shown.stage.index} ${subject.shown.stage.name} · line ${subject.line}` : "";
    if (!isReady) look.clear(compiling || pending ? "The kernel is being compiled…" : "The kernel did not compile.");
    else if (outcome.snippet !== null && shared?.isCurrent === false) look.clear("This link shows the result of an older version: compile it again to see its values.");
    else if (!subject) look.clear("Select a line of the stage, or of the source.");
    else {
      look.show(subject);
      this.store.set({ execution: null });
    }
  }

  /** What was looked into before an edit ended the selection, if the line still has the same operation. */
  private again(): Subject | null {
    const { last } = this;
    const { shown } = this.text();
    if (!last || !shown || this.store.state.anchor || shown.stage.name !== last.shown.stage.name) return null;
    const labelIn = ({ stage }: Shown) => opLabel(linesOfStage(stage)[last.line - 1] ?? "", stage.dialect);
    return labelIn(shown) !== "" && labelIn(shown) === labelIn(last.shown) ? { ...last, shown, execution: null } : null;
  }

  /** The upper edge: it is dragged, or moved by arrow keys. */
  private grip(): HTMLElement {
    const grip = el("div", { class: "inspect-grip", title: "Height of the drawer", attrs: { role: "separator", tabindex: 0, "aria-orientation": "horizontal", "aria-label": "Height of the drawer", "aria-valuemin": HEIGHT.least, "aria-valuemax": HEIGHT.most } });
    const set = (percent: number) => {
      this.percent = Math.min(Math.max(percent, HEIGHT.least), HEIGHT.most);
      this.box.style.setProperty("--inspect", `${this.percent}%`);
      grip.setAttribute("aria-valuenow", String(Math.round(this.percent)));
    };
    set(this.percent);
    grip.addEventListener("pointerdown", (e) => {
      const pane = this.box.parentElement;
      if (e.button !== 0 || !pane) return;
      e.preventDefault();
      grip.setPointerCapture(e.pointerId);
      const { height } = pane.getBoundingClientRect();
      const { bottom } = this.box.getBoundingClientRect();
      const move = (m: PointerEvent) => set(((bottom - m.clientY) / height) * 100);
      const stop = () => grip.removeEventListener("pointermove", move);
      grip.addEventListener("pointermove", move);
      grip.addEventListener("pointerup", stop, { once: true });
      grip.addEventListener("pointercancel", stop, { once: true });
    });
    grip.addEventListener("keydown", (e) => {
      const by = { ArrowUp: HEIGHT.step, ArrowDown: -HEIGHT.step }[e.key];
      if (by === undefined) return;
      e.preventDefault();
      set(this.percent + by);
    });
    return grip;
  }
}
