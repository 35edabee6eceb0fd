// heatmap: two dimensions of a value on a canvas, a colour for the mean of each cell.  The outlined part is the one that the
// table of elements shows; a click, or the arrow keys and Enter, move it.
//
//   rows: row_dim      ▒▒▒▒▓▓┌──┐░░
//   columns:           ▒▒▒▓▓▓│██│░░      a ring: where the value differs from the reference
//   column_dim         ░░░▒▒▒└──┘▓▓      hatched: no finite element
import type { HeatMap } from "../api/types";
import { numberText } from "../state/units";
import { el } from "./dom";
import { scaleOf, type Scale } from "./scales";

const HEIGHT = { least: 18, most: 232 };
const LEGEND = 30;

export interface HeatEvents {
  /** The element of the two dimensions whose cell was chosen. */
  chosen(row: number, column: number): void;
  /** The cell below the pointer or the cursor, in words; "" for none. */
  said(text: string): void;
}

/** A part of the two dimensions, in elements. */
export interface Window2 {
  row: number;
  column: number;
  rows: number;
  columns: number;
}

export class HeatCanvas {
  readonly canvas = el("canvas", { class: "heat-map", attrs: { tabindex: 0, role: "application", "aria-label": "Heat map: arrow keys move over its cells, Enter shows the elements of one" } });
  private heat: HeatMap | null = null;
  private window: Window2 | null = null;
  private wrong: { row: number; column: number } | null = null;
  private cursor: { r: number; c: number } | null = null;
  private width = 0;

  constructor(
    host: HTMLElement,
    private readonly events: HeatEvents,
  ) {
    const { canvas } = this;
    host.append(canvas);
    new ResizeObserver(() => host.clientWidth !== this.width && this.draw()).observe(host);
    canvas.addEventListener("pointermove", (e) => this.point(this.cellAt(e)));
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("click", (e) => {
      const cell = this.cellAt(e);
      if (cell) this.choose(cell);
    });
    canvas.addEventListener("keydown", (e) => this.key(e));
  }

  show(heat: HeatMap, window: Window2, wrong: { row: number; column: number } | null): void {
    if (heat.rows !== this.heat?.rows || heat.columns !== this.heat.columns) this.cursor = null;
    this.heat = heat;
    this.window = window;
    this.wrong = wrong;
    this.point(this.cursor);
  }

  private key(e: KeyboardEvent): void {
    const { heat } = this;
    const step: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const by = step[e.key];
    if (!heat || e.ctrlKey || e.metaKey || e.altKey || (!by && e.key !== "Enter")) return;
    const at = this.cursor ?? { r: 0, c: by && this.cursor === null ? -1 : 0 };
    if (by) {
      const far = e.shiftKey ? 8 : 1;
      const clamp = (v: number, n: number) => Math.min(Math.max(v, 0), n - 1);
      this.point({ r: clamp(at.r + by[0] * far, heat.rows), c: clamp(at.c + by[1] * far, heat.columns) });
    } else this.choose({ r: at.r, c: Math.max(at.c, 0) });
    e.preventDefault();
    e.stopPropagation();
  }

  private choose({ r, c }: { r: number; c: number }): void {
    if (this.heat) this.events.chosen(r * this.heat.row_step, c * this.heat.column_step);
  }

  private point(cell: { r: number; c: number } | null): void {
    const { heat } = this;
    this.cursor = cell;
    this.draw();
    this.events.said(cell && heat ? this.words(heat, cell) : "");
  }

  private words(heat: HeatMap, { r, c }: { r: number; c: number }): string {
    const range = (i: number, step: number) => (step === 1 ? String(i) : `${i * step}–${(i + 1) * step - 1}`);
    const mean = heat.means[r * heat.columns + c];
    const index = heat.at.map((at, d) => (d === heat.row_dim ? range(r, heat.row_step) : d === heat.column_dim ? range(c, heat.column_step) : String(at)));
    const isOne = heat.row_step * heat.column_step === 1;
    return `[${index.join(", ")}]: ${mean === null || mean === undefined ? "no finite element" : `${isOne ? "" : "mean "}${numberText(mean)}`}`;
  }

  private cellAt(e: MouseEvent): { r: number; c: number } | null {
    const { heat } = this;
    const { w, h } = this.size();
    if (!heat || e.offsetY >= h) return null;
    const [r, c] = [Math.floor((e.offsetY / h) * heat.rows), Math.floor((e.offsetX / w) * heat.columns)];
    return r >= 0 && c >= 0 && r < heat.rows && c < heat.columns ? { r, c } : null;
  }

  private size(): { w: number; h: number } {
    const w = Math.max(this.canvas.parentElement?.clientWidth ?? 0, 60);
    const { heat } = this;
    const wanted = heat ? (w * heat.rows) / Math.max(heat.columns, 1) : 0;
    return { w, h: Math.round(Math.min(Math.max(wanted, HEIGHT.least), HEIGHT.most)) };
  }

  /** The picture as PNG. */
  png(): Promise<Blob | null> {
    return new Promise((done) => this.canvas.toBlob(done));
  }

  private draw(): void {
    const { canvas, heat } = this;
    const g = canvas.getContext("2d");
    if (!heat || !g) return;
    const { w, h } = this.size();
    this.width = canvas.parentElement?.clientWidth ?? 0;
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(w * scale);
    canvas.height = Math.round((h + LEGEND) * scale);
    canvas.style.width = `${w}px`;
    canvas.style.height = `${h + LEGEND}px`;
    g.setTransform(scale, 0, 0, scale, 0, 0);
    const css = getComputedStyle(document.documentElement);
    const ink = (name: string) => css.getPropertyValue(name).trim();
    g.fillStyle = ink("--page");
    g.fillRect(0, 0, w, h + LEGEND);
    const colours = scaleOf(heat.means, document.documentElement.dataset["theme"] === "dark");
    this.drawCells(g, heat, w, h, colours, ink);
    const box = (row: number, column: number, rows: number, columns: number) => {
      const [x, y] = [(column / heat.column_step / heat.columns) * w, (row / heat.row_step / heat.rows) * h];
      return [x, y, Math.max((columns / heat.column_step / heat.columns) * w, 3), Math.max((rows / heat.row_step / heat.rows) * h, 3)] as const;
    };
    const outline = ([x, y, bw, bh]: readonly [number, number, number, number], colour: string, width: number) => {
      g.lineWidth = width + 2;
      g.strokeStyle = ink("--surface");
      g.strokeRect(x, y, Math.min(bw, w - x), Math.min(bh, h - y));
      g.lineWidth = width;
      g.strokeStyle = colour;
      g.strokeRect(x, y, Math.min(bw, w - x), Math.min(bh, h - y));
    };
    g.save();
    g.beginPath();
    g.rect(0, 0, w, h);
    g.clip();
    const { window: part, wrong, cursor } = this;
    if (part && (part.rows < heat.rows * heat.row_step || part.columns < heat.columns * heat.column_step)) outline(box(part.row, part.column, part.rows, part.columns), ink("--accent"), 1.5);
    if (wrong) this.drawRing(g, box(wrong.row, wrong.column, 1, 1), ink);
    if (cursor) outline(box(cursor.r * heat.row_step, cursor.c * heat.column_step, heat.row_step, heat.column_step), ink("--text"), 1.5);
    g.restore();
    this.drawLegend(g, w, h, colours, heat.means.includes(null), ink);
  }

  private drawCells(g: CanvasRenderingContext2D, heat: HeatMap, w: number, h: number, colours: Scale, ink: (n: string) => string): void {
    const cells = document.createElement("canvas");
    cells.width = heat.columns;
    cells.height = heat.rows;
    const small = cells.getContext("2d");
    if (!small) return;
    const data = small.createImageData(heat.columns, heat.rows);
    const absent: [number, number][] = [];
    heat.means.forEach((v, i) => {
      if (v === null) absent.push([Math.floor(i / heat.columns), i % heat.columns]);
      else data.data.set([...colours.colour(v), 255], i * 4);
    });
    small.putImageData(data, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(cells, 0, 0, w, h);
    const [cw, ch] = [w / heat.columns, h / heat.rows];
    g.strokeStyle = ink("--bad");
    g.lineWidth = 1;
    g.beginPath();
    for (const [r, c] of absent) {
      g.moveTo(c * cw, (r + 1) * ch);
      g.lineTo((c + 1) * cw, r * ch);
    }
    g.stroke();
  }

  private drawRing(g: CanvasRenderingContext2D, [x, y, w, h]: readonly [number, number, number, number], ink: (n: string) => string): void {
    for (const [colour, width] of [
      [ink("--surface"), 5],
      [ink("--bad"), 2.5],
    ] as const) {
      g.strokeStyle = colour;
      g.lineWidth = width;
      g.beginPath();
      g.arc(x + w / 2, y + h / 2, Math.max(w, h) / 2 + 5, 0, 2 * Math.PI);
      g.stroke();
    }
  }

  private drawLegend(g: CanvasRenderingContext2D, w: number, h: number, colours: Scale, hasAbsent: boolean, ink: (n: string) => string): void {
    const width = Math.min(w, 260);
    for (let x = 0; x < width; x++) {
      const [r, gr, b] = colours.colour(colours.from + ((colours.to - colours.from) * x) / Math.max(width - 1, 1));
      g.fillStyle = `rgb(${r} ${gr} ${b})`;
      g.fillRect(x, h + 6, 1, 7);
    }
    g.fillStyle = ink("--soft");
    g.font = "11px system-ui, sans-serif";
    g.textBaseline = "alphabetic";
    const y = h + 26;
    g.textAlign = "left";
    g.fillText(numberText(colours.from), 0, y);
    g.textAlign = "center";
    if (colours.to > colours.from) g.fillText(numberText((colours.from + colours.to) / 2), width / 2, y);
    g.textAlign = "right";
    g.fillText(numberText(colours.to), width, y);
    g.textAlign = "left";
    if (hasAbsent && w > width + 100) g.fillText("⟋ not finite", width + 14, y);
  }
}
