// room: the arrangement of the three panes: one is maximised, some are hidden.
//
// A hidden pane, or one in a window of its own, leaves a strip with its name in its place, which shows it again.  The style sheet arranges the panes by two
// attributes of their container, and only in windows that show them side by side.
import type { AppStore } from "../state/app";
import { keepHidden, keptHidden, PANES, type Pane } from "../state/room";
import css from "../style/room.late.css";
import { adoptStyle } from "../style/late";
import { byId, el, setAttr } from "./dom";

adoptStyle(css);

const NAMES: Record<Pane, string> = { source: "Source", stages: "Stages", ir: "Stage's text" };

function paneOf(pane: Pane): HTMLElement {
  return byId(`${pane}-pane`);
}

/** What gets the focus when the pane is shown again. */
function contentOf(pane: Pane): HTMLElement | null {
  return pane === "stages" ? byId("stages") : paneOf(pane).querySelector<HTMLElement>(".editor:not([hidden]) .cm-content");
}

export class Room {
  private hidden = new Set<Pane>(keptHidden());
  private maximised: Pane | null = null;
  /** Panes that are in windows of their own, with what brings them back. */
  private readonly lent = new Map<Pane, () => void>();
  private readonly box = byId("panes");

  constructor(private readonly store: AppStore) {
    for (const pane of PANES) {
      const title = `Show the ${NAMES[pane].toLowerCase()} again (${PANES.indexOf(pane) + 1})`;
      paneOf(pane).append(el("button", { class: "rail", title, attrs: { type: "button", "aria-label": title }, on: { click: () => this.railPressed(pane) } }, NAMES[pane]));
    }
    // another view takes the place of the stages and their text
    store.watch(["mode"], () => {
      if (store.state.mode !== "read") this.show("ir");
    });
    this.draw();
  }

  /** Which panes are hidden, and which has all the room. */
  get arrangement(): { hidden: Pane[]; maximised: Pane | null } {
    return { hidden: [...this.hidden], maximised: this.maximised };
  }

  /** Arranges the panes; those in windows of their own stay there. */
  set arrangement({ hidden, maximised }: { hidden: Pane[]; maximised: Pane | null }) {
    this.hidden = new Set(hidden);
    this.maximised = maximised && this.lent.has(maximised) ? null : maximised;
    if (PANES.every((p) => this.hidden.has(p) || this.lent.has(p))) this.hidden.clear();
    this.draw();
  }

  private railPressed(pane: Pane): void {
    const back = this.lent.get(pane);
    if (back) back();
    else this.toggle(pane);
  }

  /** A pane is in a window of its own, from which `back` brings it back; null: it is here again. */
  lend(pane: Pane, back: (() => void) | null): void {
    if (back) this.lent.set(pane, back);
    else this.lent.delete(pane);
    if (this.maximised === pane) this.maximised = null;
    // something stays to be seen here
    if (PANES.every((p) => this.hidden.has(p) || this.lent.has(p))) this.hidden.clear();
    this.draw();
  }

  /** Gives all room to a pane, or takes it back.  Null: the pane that has the focus. */
  maximise(pane: Pane | null): void {
    const own = document.activeElement?.closest(".pane")?.id.replace("-pane", "");
    const wanted = pane ?? PANES.find((p) => p === own) ?? "ir";
    if (this.lent.has(wanted)) return;
    this.maximised = this.maximised === null ? wanted : null;
    if (this.maximised) this.hidden.delete(this.maximised);
    this.draw();
  }

  /** Hides a pane, or shows it again.  The last one stays. */
  toggle(pane: Pane): void {
    if (this.maximised) {
      this.show(pane);
      return;
    }
    if (this.hidden.has(pane)) {
      this.show(pane);
      contentOf(pane)?.focus();
      return;
    }
    if (this.lent.has(pane) || new Set([...this.hidden, ...this.lent.keys()]).size === PANES.length - 1) return;
    const hadFocus = paneOf(pane).contains(document.activeElement);
    this.hidden.add(pane);
    this.draw();
    if (hadFocus) paneOf(pane).querySelector<HTMLElement>(".rail")?.focus();
  }

  /** Makes sure that a pane is in sight. */
  show(pane: Pane): void {
    if (this.maximised !== null && this.maximised !== pane) this.maximised = null;
    this.hidden.delete(pane);
    this.draw();
  }

  private draw(): void {
    const { box, maximised } = this;
    keepHidden([...this.hidden]);
    const hidden = new Set([...this.hidden, ...this.lent.keys()]);
    setAttr(box, "data-hidden", hidden.size > 0 ? [...hidden].join(" ") : null);
    setAttr(box, "data-maximised", maximised);
    byId("split-source").inert = hidden.has("source") || hidden.has("ir");
    byId("split-stages").inert = hidden.has("stages") || hidden.has("ir");
    for (const pane of PANES) {
      const rail = paneOf(pane).querySelector(":scope > .rail");
      const what = this.lent.has(pane) ? `Bring the ${NAMES[pane].toLowerCase()} back from its window` : `Show the ${NAMES[pane].toLowerCase()} again (${PANES.indexOf(pane) + 1})`;
      rail?.setAttribute("title", what);
      rail?.setAttribute("aria-label", what);
      const button = paneOf(pane).querySelector('.room [data-room="maximise"]');
      const title = button?.getAttribute("title")?.replace(/^\w+/, pane === maximised ? "Restore" : "Maximise");
      if (!button || !title) continue;
      button.setAttribute("aria-label", title);
      button.setAttribute("title", title);
      button.setAttribute("aria-pressed", String(pane === maximised));
    }
    // the shown stage may be out of sight in a pane of another size
    this.store.set({ reveal: this.store.state.reveal + 1 });
  }
}
