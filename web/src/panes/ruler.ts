// ruler: ticks at the right edge of a text for its highlighted lines, visible or not.
import type { EditorView } from "@codemirror/view";
import { el } from "./dom";

export class Ruler {
  private readonly canvas: HTMLCanvasElement;
  private selected: number[] = [];
  private hover: number[] = [];

  constructor(
    private readonly host: HTMLElement,
    private readonly view: EditorView,
  ) {
    this.canvas = el("canvas", { class: "ruler", attrs: { "aria-hidden": "true" } });
    host.append(this.canvas);
    new ResizeObserver(() => this.paint()).observe(host);
  }

  /** Line numbers, 1-based. */
  draw(selected: number[], hover: number[]): void {
    if (same(selected, this.selected) && same(hover, this.hover)) return;
    this.selected = selected;
    this.hover = hover;
    this.paint();
  }

  private paint(): void {
    const { canvas, host } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, host.clientHeight];
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.max(1, Math.round(height * ratio));
    const g = canvas.getContext("2d");
    if (!g || this.selected.length + this.hover.length === 0) return;
    const style = getComputedStyle(canvas);
    g.scale(ratio, ratio);
    const content = this.view.contentHeight;
    // if the text fits, the ticks are beside its lines; otherwise they are scaled to the edge's height
    const scale = Math.min(1, height / Math.max(content, 1));
    const tick = (line: number, colour: string) => {
      const { doc } = this.view.state;
      if (line < 1 || line > doc.lines) return;
      const block = this.view.lineBlockAt(doc.line(line).from);
      g.fillStyle = colour;
      g.fillRect(0, block.top * scale, width, Math.max(2, Math.min(block.height * scale, 4)));
    };
    for (const line of this.hover) tick(line, style.getPropertyValue("--tick-hover"));
    for (const line of this.selected) tick(line, style.getPropertyValue("--tick"));
  }
}

function same(a: number[], b: number[]): boolean {
  return a.length === b.length && a.every((x, i) => x === b[i]);
}
