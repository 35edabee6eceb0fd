// sheet: a drawing on the screen that can be moved and zoomed: by wheel, drag, two fingers and keys.
//
// Only what is in sight is in the document, so that a drawing of thousands of boxes costs no more than one of a hundred.
import type { Box, Drawing, Edge } from "../graph/drawing";
import { el, setAttr } from "./dom";
import { drawing as picture, svg, svgText } from "./pictures";

export interface SheetEvents {
  /** A box was clicked, or Space pressed on it; null: the background. */
  picked(box: Box | null, add: boolean): void;
  /** A box is to be opened or closed. */
  toggled(box: Box): void;
  /** The pointer or the keyboard is on a box. */
  pointed(box: Box | null): void;
}

export interface SheetLook {
  /** The class of a box that is lit; "". */
  lit(box: Box): string;
  /** The class with the colour of its source line; "". */
  band(box: Box): string;
}

interface View {
  x: number;
  y: number;
  scale: number;
}

const MIN = 0.04;
const MAX = 3;
/** Below this, text is too small to be read, and is not drawn. */
const TEXT_MIN = 0.32;
/** The share of the sheet beyond its edges that is drawn too. */
const MARGIN = 0.5;
const DOUBLE_MS = 500;
const HELP = "Arrow keys go from box to box, Enter opens and closes groups, Space selects, plus and minus zoom, 0 fits, Shift and arrows move";

export class Sheet {
  readonly host = el("div", { class: "sheet", attrs: { tabindex: 0, role: "application", "aria-label": HELP } });
  private readonly content = svg("g", {});
  private readonly root = picture(1, 1, "", this.content);
  private shown: Drawing | null = null;
  private look: SheetLook = { lit: () => "", band: () => "" };
  private view: View = { x: 0, y: 0, scale: 1 };
  /** What of the drawing is in the document. */
  private drawn: { x0: number; y0: number; x1: number; y1: number; text: boolean } | null = null;
  private at: Box | null = null;
  private frame = 0;
  private readonly pointers = new Map<number, { x: number; y: number }>();
  /** The first of two clicks at one place: it may move what is under the pointer. */
  private clicked: { box: Box | null; x: number; y: number; time: number } | null = null;
  private press: { target: Element | null; moved: boolean } | null = null;

  constructor(
    private readonly events: SheetEvents,
    private readonly tip: (text: string | null, x: number, y: number) => void,
  ) {
    const { host } = this;
    this.root.setAttribute("class", "picture sheet-svg");
    this.root.removeAttribute("viewBox");
    this.root.querySelector("title")?.remove(); // the browser would show it over everything
    host.append(this.root);
    host.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    host.addEventListener("pointerdown", (e) => this.down(e));
    host.addEventListener("pointermove", (e) => this.move(e));
    host.addEventListener("pointerup", (e) => this.up(e));
    host.addEventListener("pointercancel", (e) => this.pointers.delete(e.pointerId));
    host.addEventListener("pointerleave", () => this.point(null));
    host.addEventListener("dblclick", () => {
      const box = this.clicked?.box;
      if (box && box.open !== null) this.events.toggled(box);
    });
    host.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || !this.key(e)) return;
      e.preventDefault();
      e.stopPropagation();
    });
    new ResizeObserver(() => this.soon()).observe(host);
  }

  /** `anchor`: a box that stays where it is; without one that both drawings have, the drawing is fitted. */
  show(drawing: Drawing, look: SheetLook, anchor: string | "keep" | null): void {
    const before = this.shown?.boxes.find((b) => b.id === anchor);
    const after = before && drawing.boxes.find((b) => b.id === anchor);
    const { at } = this;
    this.root.setAttribute("aria-label", drawing.summary);
    this.shown = drawing;
    this.look = look;
    this.drawn = null;
    this.at = (at && drawing.boxes.find((b) => b.id === at.id)) ?? null;
    if (before && after) {
      this.view.x += (before.x - after.x) * this.view.scale;
      this.view.y += (before.y - after.y) * this.view.scale;
    } else if (anchor !== "keep") this.start();
    this.soon();
  }

  /** The lights have changed. */
  relight(): void {
    for (const node of this.content.querySelectorAll("[data-box]")) {
      const box = this.boxOf(node);
      if (box) node.setAttribute("class", this.classOf(box));
    }
  }

  get cursor(): Box | null {
    return this.at;
  }

  /** The whole drawing, but not so small that nothing can be read: then its beginning. */
  private start(): void {
    this.fit();
    if (this.view.scale >= 0.7 || !this.shown) return;
    const { clientWidth: w, clientHeight: h } = this.host;
    const { width, boxes, edges } = this.shown;
    const scale = Math.min(Math.max(w / width, edges.length > 0 ? 0.7 : 0.85), 1);
    const centres = boxes.filter((b) => !b.open && b.y * scale < h).map((b) => b.x + b.width / 2);
    const middle = centres.reduce((sum, c) => sum + c, 0) / Math.max(centres.length, 1);
    // of a wide graph, the middle of what is at its top
    const x = edges.length === 0 || width * scale <= w ? Math.max((w - width * scale) / 2, 4) : w / 2 - middle * scale;
    this.view = { scale, x: edges.length === 0 ? 4 : Math.min(x, 4 + w / 2), y: 4 };
  }

  fit(): void {
    if (!this.shown) return;
    const { clientWidth: w, clientHeight: h } = this.host;
    const scale = Math.min(Math.max(Math.min((w - 8) / this.shown.width, (h - 8) / this.shown.height), MIN), 1);
    this.view = { scale, x: Math.max((w - this.shown.width * scale) / 2, 4), y: Math.max((h - this.shown.height * scale) / 2, 4) };
    this.soon();
  }

  zoom(factor: number, x = this.host.clientWidth / 2, y = this.host.clientHeight / 2): void {
    const { view } = this;
    const scale = Math.min(Math.max(view.scale * factor, MIN), MAX);
    const by = scale / view.scale;
    this.view = { scale, x: x - (x - view.x) * by, y: y - (y - view.y) * by };
    this.soon();
  }

  pan(dx: number, dy: number): void {
    this.view = { ...this.view, x: this.view.x + dx, y: this.view.y + dy };
    this.soon();
  }

  /** Moves a box into sight, at a scale at which it can be read. */
  reveal(box: Box): void {
    if (this.view.scale < TEXT_MIN) this.zoom(0.75 / this.view.scale);
    const { x, y, scale } = this.view;
    const { clientWidth: w, clientHeight: h } = this.host;
    // of a large group, its head
    const [width, height] = [Math.min(box.width, 260) * scale, Math.min(box.height, 60) * scale];
    const [left, top] = [box.x * scale + x, box.y * scale + y];
    const dx = left < 8 ? 8 - left : left + width > w - 8 ? Math.max(w - 8 - left - width, 8 - left) : 0;
    const dy = top < 8 ? 8 - top : top + height > h - 8 ? Math.max(h - 8 - top - height, 8 - top) : 0;
    if (dx !== 0 || dy !== 0) this.pan(dx, dy);
  }

  private wheel(e: WheelEvent): void {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : 1;
    const { left, top } = this.host.getBoundingClientRect();
    if (e.ctrlKey || e.metaKey) this.zoom(Math.exp((-e.deltaY * unit) / 300), e.clientX - left, e.clientY - top);
    else if (e.shiftKey && e.deltaX === 0) this.pan(-e.deltaY * unit, 0);
    else this.pan(-e.deltaX * unit, -e.deltaY * unit);
  }

  private down(e: PointerEvent): void {
    if (e.button !== 0) return;
    this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    this.press = { target: e.target instanceof Element ? e.target : null, moved: this.pointers.size > 1 };
    this.host.setPointerCapture(e.pointerId);
  }

  private move(e: PointerEvent): void {
    const was = this.pointers.get(e.pointerId);
    if (!was) {
      this.hover(e);
      return;
    }
    const [dx, dy] = [e.clientX - was.x, e.clientY - was.y];
    if (this.press && !this.press.moved && Math.hypot(dx, dy) < 4) return;
    if (this.press) this.press.moved = true;
    const other = [...this.pointers].find(([id]) => id !== e.pointerId)?.[1];
    if (other) {
      const box = this.host.getBoundingClientRect();
      const before = Math.hypot(was.x - other.x, was.y - other.y);
      const now = Math.hypot(e.clientX - other.x, e.clientY - other.y);
      if (before > 10) this.zoom(now / before, (e.clientX + other.x) / 2 - box.left, (e.clientY + other.y) / 2 - box.top);
    } else this.pan(dx, dy);
    this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
  }

  private up(e: PointerEvent): void {
    const { press } = this;
    if (!this.pointers.delete(e.pointerId) || this.pointers.size > 0) return;
    this.press = null;
    if (!press || press.moved) return;
    const box = this.boxOf(press.target);
    const isFold = press.target?.closest("[data-fold]") !== null && press.target !== null;
    const was = this.clicked;
    if (was?.box && e.timeStamp - was.time < DOUBLE_MS && Math.hypot(e.clientX - was.x, e.clientY - was.y) < 6) return;
    this.clicked = { box: isFold ? null : box, x: e.clientX, y: e.clientY, time: e.timeStamp };
    if (box && isFold) this.events.toggled(box);
    else {
      if (box) this.at = box;
      this.events.picked(box, e.ctrlKey || e.metaKey);
    }
    this.relight();
  }

  private hover(e: PointerEvent): void {
    const target = e.target instanceof Element ? e.target : null;
    const edge = target?.closest("[data-edge]")?.getAttribute("data-edge");
    const text = edge ? this.shown?.edges[Number(edge)]?.text : undefined;
    const { left, top } = this.host.getBoundingClientRect();
    this.tip(text ?? null, e.clientX - left, e.clientY - top);
    this.point(this.boxOf(target));
  }

  private pointed: Box | null = null;

  private point(box: Box | null): void {
    if (box === this.pointed) return;
    this.pointed = box;
    if (!box) this.tip(null, 0, 0);
    this.events.pointed(box);
  }

  private boxOf(node: Element | null): Box | null {
    const n = node?.closest("[data-box]")?.getAttribute("data-box");
    return n === null || n === undefined ? null : (this.shown?.boxes[Number(n)] ?? null);
  }

  private key(e: KeyboardEvent): boolean {
    const steps: Record<string, [number, number]> = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    const step = steps[e.key];
    if (step && e.shiftKey) this.pan(-step[0] * 60, -step[1] * 60);
    else if (step) this.walk(step[0], step[1]);
    else if (e.key === "Enter" && this.at && this.at.open !== null) this.events.toggled(this.at);
    else if ((e.key === "Enter" || e.key === " ") && this.at) this.events.picked(this.at, false);
    else if (e.key === "+" || e.key === "=") this.zoom(1.25);
    else if (e.key === "-") this.zoom(0.8);
    else if (e.key === "0") this.fit();
    else return false;
    return true;
  }

  /** To the nearest box in a direction. */
  private walk(dx: number, dy: number): void {
    const boxes = this.shown?.boxes ?? [];
    const centre = (b: Box): [number, number] => [b.open ? b.x + 40 : b.x + b.width / 2, b.open ? b.y + 11 : b.y + b.height / 2];
    if (!this.at) {
      this.stand(boxes[0] ?? null);
      return;
    }
    const [x, y] = centre(this.at);
    let best: Box | null = null;
    let least = Infinity;
    for (const b of boxes) {
      const [bx, by] = centre(b);
      const along = (bx - x) * dx + (by - y) * dy;
      const aside = Math.abs((bx - x) * dy) + Math.abs((by - y) * dx);
      // in a column of boxes, how far a box reaches to the right says nothing
      const cost = along + aside * (dx !== 0 ? 3 : this.shown?.edges.length === 0 ? 0.05 : 1.5);
      if (b !== this.at && along > 2 && cost < least) [best, least] = [b, cost];
    }
    if (best) this.stand(best);
  }

  private stand(box: Box | null): void {
    this.at = box;
    if (!box) return;
    this.reveal(box);
    this.relight();
    this.events.pointed(box);
  }

  private soon(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  private draw(): void {
    const { x, y, scale } = this.view;
    const { clientWidth: w, clientHeight: h } = this.host;
    setAttr(this.root, "width", w);
    setAttr(this.root, "height", h);
    this.content.setAttribute("transform", `translate(${Math.round(x)} ${Math.round(y)}) scale(${scale})`);
    const seen = { x0: -x / scale, y0: -y / scale, x1: (w - x) / scale, y1: (h - y) / scale };
    const text = scale >= TEXT_MIN;
    const d = this.drawn;
    if (d && d.text === text && seen.x0 >= d.x0 && seen.y0 >= d.y0 && seen.x1 <= d.x1 && seen.y1 <= d.y1) return;
    const [mx, my] = [(seen.x1 - seen.x0) * MARGIN, (seen.y1 - seen.y0) * MARGIN];
    this.drawn = { x0: seen.x0 - mx, y0: seen.y0 - my, x1: seen.x1 + mx, y1: seen.y1 + my, text };
    this.fill(this.drawn);
  }

  private fill(part: { x0: number; y0: number; x1: number; y1: number; text: boolean }): void {
    const nodes: SVGElement[] = [];
    const isSeen = (x0: number, y0: number, x1: number, y1: number) => x1 >= part.x0 && x0 <= part.x1 && y1 >= part.y0 && y0 <= part.y1;
    this.shown?.boxes.forEach((b, i) => {
      if (isSeen(b.x, b.y, b.x + b.width, b.y + b.height)) nodes.push(this.boxNode(b, i, part.text));
    });
    this.shown?.edges.forEach((e, i) => {
      const [xs, ys] = [e.points.map((p) => p[0]), e.points.map((p) => p[1])];
      if (isSeen(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys))) nodes.push(edgeNode(e, i));
    });
    this.content.replaceChildren(...nodes);
  }

  private classOf(box: Box): string {
    return ["box", `box-${box.kind}`, box.open ? "open" : "", `tone-${box.tone}`, this.look.band(box), this.look.lit(box), box === this.at ? "at" : ""].filter((c) => c !== "").join(" ");
  }

  private boxNode(box: Box, i: number, withText: boolean): SVGElement {
    const { x, y, width, height } = box;
    const isRow = height < 30 || box.open;
    const left = box.open === null ? 10 : 24;
    const text: SVGElement[] = [];
    if (withText && isRow) {
      const [title, detail] = [svg("tspan", { class: "box-title" }, box.title), svg("tspan", { class: "box-detail", dx: box.title === "" ? 0 : 10 }, box.detail)];
      text.push(svg("text", { x: left, y: 15.5, "xml:space": "preserve" }, title, ...(this.shown?.edges.length === 0 || !box.open ? [detail] : [])));
    } else if (withText) text.push(svg("text", { class: "box-title", x: left, y: 17 }, box.title), svg("text", { class: "box-detail", x: left, y: 34 }, box.detail));
    if (withText && box.open !== null) text.push(svg("g", { "data-fold": "" }, svg("rect", { class: "fold-spot", x: 2, y: 1, width: 22, height: 22 }), svg("text", { class: "fold", x: 8, y: 16 }, box.open ? "▾" : "▸")));
    return svg(
      "g",
      { class: this.classOf(box), "data-box": i, transform: `translate(${x} ${y})` },
      svg("rect", { class: "frame", width, height, rx: box.kind === "parameter" ? 14 : 5 }),
      svg("path", { class: "strip", d: box.kind === "parameter" ? "" : `M2 ${Math.min(4, height / 2)}V${Math.max(height - 4, height / 2)}` }),
      ...text,
    );
  }

  /** All of the drawing as a file, with the colours that it has on the screen. */
  svg(): string {
    const { shown } = this;
    if (!shown) return "";
    const [width, height] = [Math.ceil(shown.width), Math.ceil(shown.height)];
    this.fill({ x0: -Infinity, y0: -Infinity, x1: Infinity, y1: Infinity, text: true });
    const back = svg("rect", { class: "sheet-back", width, height });
    this.content.prepend(back);
    this.content.removeAttribute("transform");
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) this.root.setAttribute(name, String(value));
    const text = svgText(this.root);
    this.root.removeAttribute("viewBox");
    this.drawn = null;
    this.draw();
    return text;
  }
}

/** Through the middles of the points, so that the line is smooth and still begins and ends where it should. */
function curve(points: Edge["points"]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let d = `M${first[0]} ${first[1]}`;
  rest.forEach(([x, y], i) => {
    const next = rest[i + 1];
    if (next) d += `Q${x} ${y} ${(x + next[0]) / 2} ${(y + next[1]) / 2}`;
    else d += `L${x} ${y}`;
  });
  return d;
}

function edgeNode(edge: Edge, i: number): SVGElement {
  const d = curve(edge.points);
  const [x, y] = edge.points.at(-1) ?? [0, 0];
  const [px, py] = edge.points.at(-2) ?? [x, y - 1];
  const turn = (Math.atan2(y - py, x - px) * 180) / Math.PI;
  return svg(
    "g",
    { class: "edge", "data-edge": i },
    svg("path", { class: "edge-hit", d }),
    svg("path", { class: "edge-line", d }),
    svg("path", { class: "edge-head", d: "M0 0L-7 -3.5V3.5Z", transform: `translate(${x} ${y}) rotate(${turn.toFixed(1)})` }),
  );
}
