// present: nothing but the source and the stage, in large type, for a projector and a clicker.
import type { AppStore } from "../state/app";
import { stepStage } from "../state/view";
import css from "../style/present.late.css";
import { adoptStyle } from "../style/late";
import { byId } from "./dom";

adoptStyle(css);

const KEY = "nkx.present";
const SIZES = [14, 16, 18, 20, 22, 24, 28, 32, 36];
const FIRST = SIZES.indexOf(20);

/** The index of the size of type that this browser used last. */
function keptSize(): number {
  try {
    const at = SIZES.indexOf(Number(localStorage.getItem(KEY)));
    return at < 0 ? FIRST : at;
  } catch {
    return FIRST; // no storage
  }
}

export class Presentation {
  private readonly root = document.documentElement;
  private size = keptSize();

  constructor(
    private readonly store: AppStore,
    private readonly say: (text: string) => void,
  ) {
    // before the editors, in which these keys scroll
    document.addEventListener("keydown", (e) => this.key(e), { capture: true });
  }

  get isOn(): boolean {
    return this.root.dataset["present"] !== undefined;
  }

  toggle(): void {
    if (this.isOn) this.leave();
    else this.enter();
  }

  private enter(): void {
    byId("settings").hidePopover(); // its button may have begun this
    this.root.dataset["present"] = "";
    this.store.set({ mode: "read", diffFrom: null });
    this.resize(0);
    this.say("PageDown and PageUp step through the stages, + and − change the size, Esc leaves");
  }

  leave(): void {
    delete this.root.dataset["present"];
    this.root.style.removeProperty("--present-size");
    this.measure();
  }

  private resize(by: number): void {
    this.size = Math.min(Math.max(this.size + by, 0), SIZES.length - 1);
    const size = SIZES[this.size] ?? 20;
    this.root.style.setProperty("--present-size", `${size}px`);
    try {
      localStorage.setItem(KEY, String(size));
    } catch {
      // no storage: the size lasts until the page is closed
    }
    this.measure();
  }

  /** The editors measure their lines again, and the selection comes back into sight. */
  private measure(): void {
    window.dispatchEvent(new Event("resize"));
    this.store.set({ reveal: this.store.state.reveal + 1 });
  }

  private key(e: KeyboardEvent): void {
    const target = e.target instanceof HTMLElement ? e.target : document.body;
    if (!this.isOn || e.ctrlKey || e.metaKey || e.altKey || target.closest("dialog, [popover]")) return;
    const isTyping = target.isContentEditable || target.matches("input, textarea, select");
    if (e.key === "PageDown") stepStage(this.store, 1);
    else if (e.key === "PageUp") stepStage(this.store, -1);
    else if (!isTyping && (e.key === "+" || e.key === "=")) this.resize(1);
    else if (!isTyping && e.key === "-") this.resize(-1);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }
}
