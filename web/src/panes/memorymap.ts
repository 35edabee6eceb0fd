// memorymap: the buffers of an on-chip memory on a canvas: time across, bytes of a partition up.
//
//   KiB   ┌──────────┐  ┌────┐
//         │%sbuf_3   │  │    │     a rectangle: a buffer, from its first use to its last, in the colour of its source line
//    0    └──────────┘  └────┘     dashed: the fullest moment;  a line: the time below the pointer, here and in the timeline
//
// The banks of PSUM lie one above the other.
import type { PlacedBuffer, ProfileMemory } from "../api/types";
import { bytesText, time } from "../state/units";
import { button, el, plural, saveFile } from "./dom";

const LABEL = 104;
const BOTTOM = 6;
const TOP = 8;
const HEIGHT = { SBUF: 178, PSUM: 118 };
const BANKS = 8;
/** As many of what is alive are named. */
const NAMED = 5;

export interface MapEvents {
  /** A buffer was clicked or reached by keyboard. */
  chosen(buffer: PlacedBuffer, words: string): void;
  /** The time below the pointer, and what there is to say; null: none. */
  pointed(us: number | null, text: string): void;
  zoom(factor: number, centre: number): void;
  pan(share: number): void;
  /** Brings this time into sight. */
  reveal(fromUs: number, toUs: number): void;
}

export interface MapLook {
  colour(buffer: PlacedBuffer): string;
  isLit(buffer: PlacedBuffer): boolean;
  /** As the last stage's text has it: "%sbuf_3". */
  nameOf(buffer: PlacedBuffer): string;
}

interface Life {
  buffer: PlacedBuffer;
  from: number;
  to: number;
  byte: number;
}

function title(label: string): string {
  return `Buffers in ${label} over time: left and right arrow go from buffer to buffer, w, s, a and d zoom and move`;
}

export class MemoryMap {
  readonly box: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private lives: Life[] = [];
  private label: string;
  private memory: ProfileMemory | null = null;
  private look: MapLook | null = null;
  private range = { from: 0, to: 1 };
  private top = 1;
  private cursor: number | null = null;
  private chosen = -1;
  private frame = 0;

  constructor(
    private readonly name: "SBUF" | "PSUM",
    private readonly events: MapEvents,
  ) {
    this.label = name;
    const canvas = el("canvas", { class: "memory-map", attrs: { tabindex: 0, role: "application", "aria-label": title(name) } });
    this.canvas = canvas;
    this.box = el("figure", { class: "memory" }, canvas, button("PNG", `Save the picture of ${name}`, () => canvas.toBlob((blob) => blob && saveFile(`${name.toLowerCase()}.png`, blob))));
    new ResizeObserver(() => this.soon()).observe(this.box);
    canvas.addEventListener("pointermove", (e) => this.point(e));
    canvas.addEventListener("pointerleave", () => this.events.pointed(null, ""));
    canvas.addEventListener("click", (e) => this.choose(this.at(e.offsetX, e.offsetY)));
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || !this.key(e.key)) return;
      e.preventDefault();
      e.stopPropagation();
    });
  }

  /** label: the memory, and of which core. */
  show(memory: ProfileMemory, range: { from: number; to: number }, look: MapLook, label: string): void {
    if (label !== this.label) this.canvas.setAttribute("aria-label", title(label));
    this.label = label;
    if (memory !== this.memory) {
      this.memory = memory;
      this.chosen = -1;
      const buffers = memory.buffers ?? [];
      this.lives = (memory.lives ?? []).flatMap(([n, from, to, byte]) => {
        const buffer = buffers[n];
        return buffer && byte >= 0 ? [{ buffer, from, to, byte }] : [];
      });
      const end = this.lives.reduce((most, l) => Math.max(most, l.byte + l.buffer.bytes), 1);
      this.top = this.name === "PSUM" ? memory.capacity : Math.min(end, Math.max(memory.capacity, end));
    }
    this.range = range;
    this.look = look;
    this.soon();
  }

  /** Marks a time, such as that below the pointer in another picture. */
  mark(us: number | null): void {
    this.cursor = us;
    this.soon();
  }

  // ---- the pointer and the keyboard

  private get height(): number {
    return HEIGHT[this.name];
  }

  private x(us: number): number {
    const room = Math.max(this.canvas.clientWidth - LABEL, 10);
    return LABEL + ((us - this.range.from) / Math.max(this.range.to - this.range.from, 1e-9)) * room;
  }

  private y(byte: number): number {
    return this.height - BOTTOM - (byte / this.top) * (this.height - BOTTOM - TOP);
  }

  private timeAt(x: number): number {
    const room = Math.max(this.canvas.clientWidth - LABEL, 10);
    return this.range.from + ((x - LABEL) / room) * (this.range.to - this.range.from);
  }

  /** The smallest buffer there: a larger one may lie below it, in other partitions. */
  private at(x: number, y: number): number {
    if (x < LABEL) return -1;
    let found = -1;
    this.lives.forEach((l, i) => {
      const isThere = x >= this.x(l.from) - 1 && x <= Math.max(this.x(l.to), this.x(l.from) + 2) && y <= this.y(l.byte) && y >= Math.min(this.y(l.byte + l.buffer.bytes), this.y(l.byte) - 3);
      const best = this.lives[found];
      if (isThere && (!best || l.buffer.bytes * (l.to - l.from) < best.buffer.bytes * (best.to - best.from))) found = i;
    });
    return found;
  }

  private point(e: PointerEvent): void {
    const { canvas } = this;
    if (e.offsetX < LABEL) {
      this.events.pointed(null, "");
      return;
    }
    const us = this.timeAt(e.offsetX);
    const hit = this.lives[this.at(e.offsetX, e.offsetY)];
    canvas.style.cursor = hit ? "pointer" : "default";
    this.events.pointed(us, hit ? this.words(hit) : this.aliveAt(us));
  }

  private words(l: Life): string {
    const { buffer: b, byte, from, to } = l;
    const name = this.look?.nameOf(b) ?? "";
    const first = b.first_partition ?? 0;
    const bank = this.name === "PSUM" && this.memory ? `bank ${Math.floor(byte / (this.memory.capacity / BANKS))}, ` : "";
    const place = b.place ? ` · line ${b.place.line}` : "";
    const copies = b.copies ? ` · one of ${b.copies} copies` : "";
    return `${name || "a buffer"}: ${bytesText(b.bytes)} in partitions ${first}–${first + b.partitions - 1}, ${bank}bytes ${byte.toLocaleString("en")}–${(byte + b.bytes - 1).toLocaleString("en")} · ${from.toFixed(3)}–${to.toFixed(3)} µs${copies}${place}`;
  }

  /** What is alive at a time. */
  private aliveAt(us: number): string {
    const alive = this.lives.filter((l) => l.from <= us && us < l.to).sort((a, b) => b.buffer.bytes - a.buffer.bytes);
    const sum = alive.reduce((n, l) => n + l.buffer.bytes, 0);
    const names = alive.slice(0, NAMED).map((l) => `${this.look?.nameOf(l.buffer) ?? ""} ${bytesText(l.buffer.bytes)}`.trim());
    const more = alive.length > NAMED ? `, and ${alive.length - NAMED} more` : "";
    return alive.length === 0 ? `${time(us)}: ${this.label} is empty` : `${time(us)}: ${plural(alive.length, "buffer")} in ${this.label}, ${bytesText(sum)} of a partition: ${names.join(", ")}${more}`;
  }

  private choose(i: number): void {
    const life = this.lives[i];
    this.chosen = life ? i : -1;
    this.soon();
    if (!life) return;
    this.events.chosen(life.buffer, this.words(life));
  }

  private key(key: string): boolean {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (by !== undefined) {
      const next = this.chosen < 0 ? 0 : Math.min(Math.max(this.chosen + by, 0), this.lives.length - 1);
      const life = this.lives[next];
      if (life) this.events.reveal(life.from, life.to);
      this.choose(next);
      return true;
    }
    switch (key.toLowerCase()) {
      case "w":
        this.events.zoom(0.7, this.centre());
        return true;
      case "s":
        this.events.zoom(1 / 0.7, this.centre());
        return true;
      case "a":
        this.events.pan(-0.15);
        return true;
      case "d":
        this.events.pan(0.15);
        return true;
      default:
        return false;
    }
  }

  /** Where the keyboard zooms: at the chosen buffer if it is in sight, otherwise in the middle. */
  private centre(): number {
    const life = this.lives[this.chosen];
    const { from, to } = this.range;
    const share = life ? ((life.from + life.to) / 2 - from) / Math.max(to - from, 1e-9) : 0.5;
    return share >= 0 && share <= 1 ? share : 0.5;
  }

  private wheel(e: WheelEvent): void {
    if (!e.shiftKey && !e.ctrlKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY)) return; // it scrolls the pane
    e.preventDefault();
    if (e.ctrlKey) this.events.zoom(Math.exp(e.deltaY / 400), Math.min(Math.max((e.offsetX - LABEL) / Math.max(this.canvas.clientWidth - LABEL, 1), 0), 1));
    else this.events.pan((e.deltaX || e.deltaY) / 800);
  }

  // ---- drawing

  private soon(): void {
    if (!this.frame)
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
  }

  private draw(): void {
    const { canvas, memory, look, height, box } = this;
    const g = canvas.getContext("2d");
    if (!memory || !look || !g || box.clientWidth === 0) return;
    const width = box.clientWidth;
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const css = getComputedStyle(document.documentElement);
    const ink = (name: string) => css.getPropertyValue(name).trim();
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.fillStyle = ink("--surface");
    g.fillRect(0, 0, width, height);
    this.drawScale(g, memory, width, ink);
    g.save();
    g.beginPath();
    g.rect(LABEL, 0, width - LABEL, height);
    g.clip();
    this.lives.forEach((l, i) => this.drawLife(g, l, i === this.chosen, look, width, ink));
    this.drawTimes(g, memory, ink);
    g.restore();
  }

  private drawScale(g: CanvasRenderingContext2D, memory: ProfileMemory, width: number, ink: (n: string) => string): void {
    g.textBaseline = "middle";
    g.fillStyle = ink("--text");
    g.font = "600 12px system-ui, sans-serif";
    g.fillText(this.label, 10, 14);
    g.font = "11px system-ui, sans-serif";
    g.fillStyle = ink("--soft");
    g.fillText(bytesText(memory.peak), 10, 32);
    g.fillText(`of ${bytesText(memory.capacity)}`, 10, 48);
    const line = (y: number, label: string) => {
      g.fillStyle = ink("--line");
      g.fillRect(LABEL, y, width - LABEL, 1);
      g.fillStyle = ink("--dim");
      g.textAlign = "right";
      g.fillText(label, LABEL - 5, y);
      g.textAlign = "left";
    };
    if (this.name === "PSUM") {
      const bank = memory.capacity / BANKS;
      g.fillText("by bank", 10, 64);
      for (let b = 0; b < BANKS; b++) {
        line(this.y(b * bank), "");
        g.fillStyle = ink("--dim");
        g.textAlign = "right";
        g.fillText(String(b), LABEL - 5, this.y((b + 0.5) * bank));
        g.textAlign = "left";
      }
      return;
    }
    const step = [1, 2, 4, 8, 16, 32, 64].map((k) => k * 1024).find((s) => this.top / s <= 5) ?? 65536;
    for (let byte = 0; byte <= this.top; byte += step) line(this.y(byte), String(byte / 1024));
  }

  private drawLife(g: CanvasRenderingContext2D, l: Life, isChosen: boolean, look: MapLook, width: number, ink: (n: string) => string): void {
    const x = this.x(l.from);
    const w = Math.max(this.x(l.to) - x, 1.5);
    if (x > width || x + w < LABEL) return;
    const [y, bottom] = [this.y(l.byte + l.buffer.bytes), this.y(l.byte)];
    const h = Math.max(bottom - y - 1, this.name === "PSUM" ? 4 : 1.5);
    const isLit = isChosen || look.isLit(l.buffer);
    g.globalAlpha = isLit ? 0.75 : 0.42;
    g.fillStyle = look.colour(l.buffer);
    const top = bottom - h - 0.5;
    g.fillRect(x, top, w, h);
    g.globalAlpha = 1;
    if (w > 3 && h > 2.5) {
      g.strokeStyle = isLit ? ink("--text") : look.colour(l.buffer);
      g.lineWidth = isChosen ? 2 : 1;
      g.strokeRect(x + 0.5, top + 0.5, w - 1, h - 1);
    }
    const left = Math.max(x, LABEL);
    const text = `${look.nameOf(l.buffer)}  ${bytesText(l.buffer.bytes)}`;
    if (h < 12 || x + w - left < 40) return;
    g.font = "11px system-ui, sans-serif";
    g.fillStyle = ink("--text");
    g.save();
    g.beginPath();
    g.rect(left, y, x + w - left - 3, h);
    g.clip();
    g.fillText(text, left + 5, y + h / 2 + 1);
    g.restore();
  }

  private drawTimes(g: CanvasRenderingContext2D, memory: ProfileMemory, ink: (n: string) => string): void {
    const upright = (x: number, dash: number[], colour: string) => {
      g.strokeStyle = colour;
      g.lineWidth = 1;
      g.setLineDash(dash);
      g.beginPath();
      g.moveTo(x, 0);
      g.lineTo(x, this.height);
      g.stroke();
      g.setLineDash([]);
    };
    if (memory.peak > 0) {
      const x = this.x(memory.peak_us);
      upright(x, [3, 3], ink("--warn"));
      g.font = "11px system-ui, sans-serif";
      g.fillStyle = ink("--warn");
      g.textAlign = x > this.canvas.clientWidth - 50 ? "right" : "left";
      g.fillText("peak", x + (g.textAlign === "right" ? -4 : 4), 7);
      g.textAlign = "left";
    }
    if (this.cursor !== null) upright(this.x(this.cursor), [], ink("--accent"));
  }
}
