// lanes: the timeline of a simulated run on a canvas: a row for each engine and queue, an execution as a block in the colour
// of its source line.
//
//   0 µs        10          20
//   T  ▒▒▒▒▒▒▒▒▒▒███████▁▁██
//   D  ██████▒▒▒███            a line below a block: it is on the critical path; hatched: waiting
//
// Drawing takes time proportional to the pixels, not to the executions: within a pixel only one block is drawn.
import { executionAt, firstFrom, laneName, timelineRows, type Execution, type Timeline, type TimelineLane, type TimelineRow } from "../state/timeline";
import { el } from "./dom";

const ROW = 26;
const HEAD = 22;
const LABEL = 104;

export interface LanesEvents {
  /** An execution was clicked or reached by keyboard; null: none. */
  chosen(execution: Execution | null): void;
  hovered(execution: Execution | null): void;
  /** Another stretch of time is in sight. */
  moved(): void;
}

export interface LanesLook {
  /** The colour of an instruction, by its index. */
  colour(instr: number): string;
  /** Whether an instruction is part of the selection. */
  isLit(instr: number): boolean;
  title(lane: TimelineLane): string;
}

const ENGINE_LETTER: Record<string, string> = { tensor: "T", vector: "V", scalar: "S", gpsimd: "G", sync: "Y", dma: "D" };

export class Lanes {
  readonly canvas = el("canvas", { attrs: { tabindex: 0, role: "application", "aria-label": "Timeline: w and s zoom, a and d move, [ and ] walk the critical path" } });
  private timeline: Timeline | null = null;
  private rows: TimelineRow[] = [];
  private look: LanesLook | null = null;
  private from = 0;
  private to = 1;
  private chosen: Execution | null = null;
  private onlyCritical = false;
  private frame = 0;
  private drag: { x: number; from: number; to: number; moved: boolean } | null = null;

  constructor(
    host: HTMLElement,
    private readonly events: LanesEvents,
  ) {
    host.append(this.canvas);
    new ResizeObserver(() => this.soon()).observe(host);
    const { canvas } = this;
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", (e) => {
      this.drag = { x: e.offsetX, from: this.from, to: this.to, moved: false };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", (e) => this.move(e));
    canvas.addEventListener("pointerup", (e) => {
      const { drag } = this;
      this.drag = null;
      if (drag && !drag.moved) this.choose(this.at(e.offsetX, e.offsetY), true);
    });
    canvas.addEventListener("pointerleave", () => this.events.hovered(null));
    canvas.addEventListener("keydown", (e) => {
      if (!e.ctrlKey && !e.metaKey && !e.altKey && this.key(e.key)) {
        e.preventDefault();
        e.stopPropagation();
      }
    });
  }

  show(timeline: Timeline | null, look: LanesLook): void {
    if (timeline !== this.timeline) {
      this.timeline = timeline;
      this.rows = timelineRows(timeline?.lanes ?? []);
      this.from = 0;
      this.to = timeline?.totalPs ?? 1;
      this.chosen = null;
    }
    this.look = look;
    this.soon();
  }

  /** The time in sight, in microseconds; without a timeline, all of it. */
  range(totalUs: number): { from: number; to: number } {
    return this.timeline ? { from: this.from / 1e6, to: this.to / 1e6 } : { from: 0, to: totalUs };
  }

  setCritical(only: boolean): void {
    this.onlyCritical = only;
    this.soon();
  }

  /** Zooms about the middle, and moves by a share of what is in sight. */
  zoom(factor: number, centre = 0.5): void {
    const total = this.timeline?.totalPs ?? 1;
    const span = Math.min(Math.max((this.to - this.from) * factor, 1000), total);
    const middle = this.from + (this.to - this.from) * centre;
    this.place(middle - span * centre, span);
  }

  pan(share: number): void {
    const span = this.to - this.from;
    this.place(this.from + span * share, span);
  }

  choose(execution: Execution | null, byUser: boolean): void {
    this.chosen = execution;
    if (execution && !byUser) this.bringIntoSight(execution);
    this.soon();
    if (byUser) this.events.chosen(execution);
  }

  private bringIntoSight({ lane, at }: Execution): void {
    const l = this.timeline?.lanes[lane];
    this.reveal(l?.starts[at] ?? 0, l?.ends[at] ?? 0);
  }

  /** Brings a stretch of time into sight, in picoseconds. */
  reveal(start: number, end: number): void {
    if (!this.timeline) return;
    if (start >= this.from && end <= this.to) return;
    const span = Math.max(this.to - this.from, (end - start) * 1.2);
    this.place((start + end - span) / 2, span);
  }

  private place(from: number, span: number): void {
    const total = this.timeline?.totalPs ?? 1;
    this.from = Math.min(Math.max(from, 0), total - span);
    this.to = this.from + span;
    this.soon();
    this.events.moved();
  }

  private key(key: string): boolean {
    switch (key.toLowerCase()) {
      case "w":
      case "arrowup":
        this.zoom(0.7);
        return true;
      case "s":
      case "arrowdown":
        this.zoom(1 / 0.7);
        return true;
      case "a":
      case "arrowleft":
        this.pan(-0.15);
        return true;
      case "d":
      case "arrowright":
        this.pan(0.15);
        return true;
      case "home":
      case "0":
        this.place(0, this.timeline?.totalPs ?? 1);
        return true;
      default:
        return false;
    }
  }

  private wheel(e: WheelEvent): void {
    e.preventDefault();
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan((e.deltaX || e.deltaY) / 800);
    else this.zoom(Math.exp(e.deltaY / 400), Math.min(Math.max((e.offsetX - LABEL) / Math.max(this.width() - LABEL, 1), 0), 1));
  }

  private move(e: PointerEvent): void {
    const { drag } = this;
    if (!drag) {
      const hit = this.at(e.offsetX, e.offsetY);
      this.canvas.style.cursor = hit ? "pointer" : "default";
      this.events.hovered(hit);
      return;
    }
    const by = ((drag.x - e.offsetX) / Math.max(this.width() - LABEL, 1)) * (drag.to - drag.from);
    if (Math.abs(drag.x - e.offsetX) > 3) drag.moved = true;
    if (drag.moved) this.place(drag.from + by, drag.to - drag.from);
  }

  private width(): number {
    return this.canvas.clientWidth;
  }

  private at(x: number, y: number): Execution | null {
    const t = this.timeline;
    const row = this.rows[Math.floor((y - HEAD) / ROW)];
    if (!t || x < LABEL || !row || "title" in row) return null;
    const { lane } = row;
    const perPixel = (this.to - this.from) / Math.max(this.width() - LABEL, 1);
    return executionAt(t, lane, this.from + (x - LABEL) * perPixel, perPixel * 3);
  }

  private soon(): void {
    if (!this.frame)
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
  }

  /** The picture as PNG. */
  png(): Promise<Blob | null> {
    return new Promise((done) => this.canvas.toBlob(done));
  }

  private draw(): void {
    const { canvas, timeline: t, look } = this;
    const host = canvas.parentElement;
    if (!host || !look) return;
    const width = host.clientWidth;
    const height = HEAD + ROW * this.rows.length + 4;
    const scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const g = canvas.getContext("2d");
    if (!g) return;
    const css = getComputedStyle(document.documentElement);
    const inks = new Map<string, string>(); // asking for a style costs more than drawing a block
    const ink = (name: string) => {
      const known = inks.get(name) ?? css.getPropertyValue(name).trim();
      inks.set(name, known);
      return known;
    };
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.fillStyle = ink("--surface");
    g.fillRect(0, 0, width, height);
    if (!t) return;
    this.drawScale(g, width, height, ink);
    this.rows.forEach((row, i) => {
      const lane = "lane" in row ? t.lanes[row.lane] : undefined;
      if (lane) this.drawLane(g, t, lane, i, width, ink, look);
      else if ("title" in row) this.drawTitle(g, row.title, i, width, ink);
    });
    this.drawChosen(g, t, height, ink);
  }

  private drawScale(g: CanvasRenderingContext2D, width: number, height: number, ink: (n: string) => string): void {
    const span = this.to - this.from;
    const room = Math.max(width - LABEL, 1);
    const raw = span / Math.max(room / 90, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw) ?? power * 10;
    g.font = "11px system-ui, sans-serif";
    g.textBaseline = "middle";
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = LABEL + ((at - this.from) / span) * room;
      g.fillStyle = ink("--line");
      g.fillRect(x, HEAD, 1, height - HEAD);
      g.fillStyle = ink("--dim");
      const digits = Math.max(0, Math.ceil(-Math.log10(step / 1e6)));
      g.fillText(`${(at / 1e6).toFixed(digits)}${at === 0 ? " µs" : ""}`, x + 3, HEAD / 2);
    }
  }

  /** Above the lanes of a core. */
  private drawTitle(g: CanvasRenderingContext2D, title: string, row: number, width: number, ink: (n: string) => string): void {
    const y = HEAD + row * ROW;
    g.fillStyle = ink("--line");
    g.fillRect(0, y, width, 1);
    g.font = "600 12px system-ui, sans-serif";
    g.fillStyle = ink("--text");
    g.fillText(title, 10, y + ROW / 2);
  }

  private drawLane(g: CanvasRenderingContext2D, t: Timeline, lane: TimelineLane, row: number, width: number, ink: (n: string) => string, look: LanesLook): void {
    const y = HEAD + row * ROW;
    g.fillStyle = ink("--line");
    g.fillRect(0, y, width, 1);
    const room = Math.max(width - LABEL, 1);
    const perPixel = (this.to - this.from) / room;
    g.save();
    g.beginPath();
    g.rect(LABEL, y, room, ROW);
    g.clip();
    const n = lane.starts.length;
    // transfers overlap: some that began earlier may still run
    let i = Math.max(0, firstFrom(lane, this.from) - 64);
    while (i < n && (lane.starts[i] ?? 0) <= this.to) {
      const start = lane.starts[i] ?? 0;
      let end = lane.ends[i] ?? 0;
      const instr = lane.instr[i] ?? -1;
      let critical = t.tags[lane.tag[i] ?? -1]?.critical === true;
      let lit = look.isLit(instr);
      const x = LABEL + (start - this.from) / perPixel;
      let next = i + 1;
      let share = 1;
      if (end - start < perPixel) {
        // all that begins within this pixel is one block, as dark as the lane is busy
        next = Math.max(next, firstFrom(lane, start + perPixel));
        let busy = end - start;
        for (let k = i + 1; k < next; k++) {
          busy += (lane.ends[k] ?? 0) - (lane.starts[k] ?? 0);
          critical ||= t.tags[lane.tag[k] ?? -1]?.critical === true;
          lit ||= look.isLit(lane.instr[k] ?? -1);
        }
        end = Math.max(end, lane.ends[next - 1] ?? end);
        share = Math.min(busy / perPixel, 1);
      }
      const w = Math.max((end - start) / perPixel, 1.2);
      g.globalAlpha = (critical || lit || !this.onlyCritical ? 1 : 0.35) * (0.3 + 0.7 * share);
      g.fillStyle = instr < 0 ? ink("--dim") : look.colour(instr);
      g.fillRect(x, y + 5, w > 3 ? w - 0.6 : w, ROW - 11);
      if (critical) {
        g.fillStyle = ink("--text");
        g.fillRect(x, y + ROW - 5, Math.max(w, 1.2), 2);
      }
      if (lit && w > 2) {
        g.strokeStyle = ink("--accent");
        g.lineWidth = 1.5;
        g.strokeRect(x + 0.5, y + 4.5, w - 1, ROW - 10);
      }
      const reason = t.tags[lane.tag[i] ?? -1]?.reason;
      const before = i > 0 ? (lane.ends[i - 1] ?? 0) : 0;
      if (reason && reason !== "start" && start - before > 24 * perPixel) this.drawWait(g, LABEL + (before - this.from) / perPixel, x, y, reason, ink);
      i = next;
    }
    g.globalAlpha = 1;
    g.restore();
    g.fillStyle = ink("--surface");
    g.fillRect(0, y + 1, LABEL, ROW - 1);
    g.font = "600 12px system-ui, sans-serif";
    g.fillStyle = ink(`--engine-${lane.engine}`) || ink("--text");
    g.fillText(ENGINE_LETTER[lane.engine] ?? "", 10, y + ROW / 2);
    g.font = "12px system-ui, sans-serif";
    g.fillStyle = ink("--soft");
    g.fillText(laneName(lane), 28, y + ROW / 2, LABEL - 34);
  }

  private drawWait(g: CanvasRenderingContext2D, from: number, to: number, y: number, reason: string, ink: (n: string) => string): void {
    g.globalAlpha = 1;
    g.strokeStyle = ink("--line");
    g.lineWidth = 1;
    g.beginPath();
    for (let x = Math.max(from, LABEL - 12) + 2; x < Math.min(to, this.width()) - 4; x += 6) {
      g.moveTo(x, y + ROW - 7);
      g.lineTo(x + 6, y + 6);
    }
    g.stroke();
    const text = `waits: ${reason}`;
    g.font = "11px system-ui, sans-serif";
    const w = g.measureText(text).width;
    const left = Math.max(from, LABEL);
    if (to - left < w + 16) return;
    g.fillStyle = ink("--surface");
    g.fillRect((left + to - w) / 2 - 4, y + 6, w + 8, ROW - 13);
    g.fillStyle = ink("--dim");
    g.fillText(text, (left + to - w) / 2, y + ROW / 2);
  }

  private drawChosen(g: CanvasRenderingContext2D, t: Timeline, height: number, ink: (n: string) => string): void {
    const { chosen } = this;
    const lane = chosen ? t.lanes[chosen.lane] : undefined;
    if (!chosen || !lane) return;
    const perPixel = (this.to - this.from) / Math.max(this.width() - LABEL, 1);
    const x0 = LABEL + ((lane.starts[chosen.at] ?? 0) - this.from) / perPixel;
    const x1 = LABEL + ((lane.ends[chosen.at] ?? 0) - this.from) / perPixel;
    g.save();
    g.beginPath();
    g.rect(LABEL, 0, this.width() - LABEL, height);
    g.clip();
    g.strokeStyle = ink("--accent");
    g.lineWidth = 2;
    g.strokeRect(x0 - 1, HEAD + this.rows.findIndex((r) => "lane" in r && r.lane === chosen.lane) * ROW + 4, Math.max(x1 - x0, 2) + 2, ROW - 9);
    g.lineWidth = 1;
    for (const [x, dash] of [
      [x0, []],
      [x1, [2, 3]],
    ] as [number, number[]][]) {
      g.setLineDash(dash);
      g.beginPath();
      g.moveTo(x, HEAD);
      g.lineTo(x, height);
      g.stroke();
    }
    g.setLineDash([]);
    g.restore();
  }
}
