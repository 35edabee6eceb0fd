// ruler: ticks at the right edge of a text for its highlighted lines, visible or not; a click on one scrolls there.
import { StateEffect } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { el } from "./dom";

/** Pixels around a tick that count as the tick. */
const NEAR = 5;

export class Ruler {
  private readonly canvas: HTMLCanvasElement;
  private selected: number[] = [];
  private hover: number[] = [];
  private frame = 0;

  constructor(
    private readonly host: HTMLElement,
    private readonly view: EditorView,
  ) {
    const canvas = el("canvas", { class: "ruler", attrs: { "aria-hidden": "true" } });
    this.canvas = canvas;
    host.append(canvas);
    new ResizeObserver(() => this.soon()).observe(host);
    // lines of another size of type are elsewhere
    view.dispatch({ effects: StateEffect.appendConfig.of(EditorView.updateListener.of((u) => u.heightChanged && this.soon())) });
    // the canvas itself lets the pointer through, to the scroll bar below it
    host.addEventListener("pointerdown", (e) => this.pressed(e), { capture: true });
    host.addEventListener("pointermove", (e) => (canvas.dataset["tick"] = String(this.tickAt(e) !== null)), { passive: true });
  }

  /** Line numbers, 1-based. */
  draw(selected: number[], hover: number[]): void {
    if (same(selected, this.selected) && same(hover, this.hover)) return;
    this.selected = selected;
    this.hover = hover;
    this.soon();
  }

  /** Paints with the next frame: the size is asked for once, when the layout has been done anyway. */
  private soon(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  /** Pixels from the top for a line's tick. */
  private topOf(line: number): number | null {
    const { doc } = this.view.state;
    if (line < 1 || line > doc.lines) return null;
    // if the text fits, the ticks are beside its lines; otherwise they are scaled to the edge's height
    const scale = Math.min(1, this.host.clientHeight / Math.max(this.view.contentHeight, 1));
    return this.view.lineBlockAt(doc.line(line).from).top * scale;
  }

  /** The line of the tick below the pointer. */
  private tickAt(e: PointerEvent): number | null {
    const box = this.canvas.getBoundingClientRect();
    if (e.clientX < box.left - NEAR || e.clientX > box.right + 1) return null;
    const y = e.clientY - box.top;
    let best: number | null = null;
    let least = NEAR;
    for (const line of [...this.selected, ...this.hover]) {
      const distance = Math.abs((this.topOf(line) ?? Infinity) + 2 - y);
      if (distance < least) [best, least] = [line, distance];
    }
    return best;
  }

  private pressed(e: PointerEvent): void {
    const line = e.button === 0 ? this.tickAt(e) : null;
    if (line === null) return;
    e.preventDefault();
    const { from } = this.view.state.doc.line(line);
    this.view.dispatch({ effects: EditorView.scrollIntoView(from, { y: "center" }) });
  }

  private paint(): void {
    const { canvas, host } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, host.clientHeight];
    const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const g = canvas.getContext("2d");
    if (!g) return;
    g.resetTransform();
    g.clearRect(0, 0, w, h);
    if (this.selected.length + this.hover.length === 0) return;
    const style = getComputedStyle(canvas);
    g.scale(ratio, ratio);
    const tick = (line: number, colour: string) => {
      const top = this.topOf(line);
      if (top === null) return;
      g.fillStyle = colour;
      g.fillRect(0, top, width, 4);
    };
    for (const line of this.hover) tick(line, style.getPropertyValue("--tick-hover"));
    for (const line of this.selected) tick(line, style.getPropertyValue("--tick"));
  }
}

function same(a: number[], b: number[]): boolean {
  return a.length === b.length && a.every((x, i) => x === b[i]);
}
