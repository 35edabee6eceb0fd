// pictures: drawings as SVG, and as files: of a simulated run the roofline, and the use of a memory over time.
import type { Histogram, Profile, ProfileMemory } from "../api/types";
import type { Rect } from "../nisa/tiles";
import { bytesText, numberText, time } from "../state/units";
import { adoptStyle } from "../style/late";
import css from "../style/picture.late.css";

adoptStyle(css);

const NS = "http://www.w3.org/2000/svg";

export function svg(tag: string, attrs: Record<string, string | number>, ...children: (Node | string)[]): SVGElement {
  const node = document.createElementNS(NS, tag);
  for (const [k, v] of Object.entries(attrs)) node.setAttribute(k, String(v));
  node.append(...children);
  return node;
}

/** `title` is what a screen reader says. */
export function drawing(width: number, height: number, title: string, ...children: SVGElement[]): SVGElement {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", class: "picture" }, svg("title", {}, title), ...children);
}

function amount(v: number): string {
  return v >= 1000 ? `${(v / 1000).toFixed(1)} T` : v >= 1 ? `${v.toFixed(0)} G` : `${v.toFixed(2)} G`;
}

/** Attained operations a second over operations per byte of HBM, below the two limits of the machine; both axes logarithmic. */
export function rooflinePicture(profile: Profile): SVGElement | null {
  const r = profile.roofline;
  const [intensity, attained, peak, bandwidth] = [r["intensity"], r["attained_gflops"], r["peak_gflops"], r["peak_gb_s"]];
  if (!intensity || !attained || !peak || !bandwidth) return null;
  const [W, H, L, B] = [300, 150, 44, 22];
  const knee = peak / bandwidth;
  const [x0, x1] = [Math.log10(Math.min(intensity, knee) / 8), Math.log10(Math.max(intensity, knee) * 8)];
  const top = Math.log10(peak * 2);
  const bottom = Math.min(Math.log10(attained / 4), Math.log10(bandwidth) + x0);
  const x = (v: number) => L + ((Math.log10(v) - x0) / (x1 - x0)) * (W - L - 8);
  const y = (v: number) => H - B - ((Math.log10(v) - bottom) / (top - bottom)) * (H - B - 8);
  const left = 10 ** x0;
  const limit = Math.min(peak, intensity * bandwidth);
  const share = (attained / limit) * 100;
  const facts = `${amount(attained)}FLOP/s at ${intensity.toFixed(1)} FLOP per byte: ${share.toFixed(share < 10 ? 1 : 0)} % of what the machine could do`;
  return drawing(
    W,
    H,
    facts,
    svg("path", { class: "axis", d: `M${L} 6V${H - B}H${W - 6}` }),
    svg("path", { class: "roof", d: `M${x(left)} ${y(left * bandwidth)}L${x(knee)} ${y(peak)}H${W - 8}` }),
    svg("path", { class: "drop", d: `M${x(intensity)} ${y(limit)}V${y(attained)}` }),
    svg("circle", { class: "point", cx: x(intensity), cy: y(attained), r: 4.5 }),
    svg("text", { x: W - 8, y: y(peak) - 5, "text-anchor": "end" }, `${amount(peak)}FLOP/s`),
    svg("text", { x: x(left) + 4, y: y(left * bandwidth) - 8 }, `${bandwidth.toFixed(0)} GB/s`),
    svg("text", { x: L, y: H - 6 }, (10 ** x0).toPrecision(1)),
    svg("text", { x: W - 8, y: H - 6, "text-anchor": "end" }, `${(10 ** x1).toFixed(0)} FLOP/byte`),
  );
}

/** How many elements are in each step of a value's range. */
export function histogramPicture(h: Histogram): SVGElement {
  const [W, H, B] = [300, 96, 18];
  const most = Math.max(...h.counts, 1);
  const w = W / h.counts.length;
  const bars = h.counts.flatMap((n, i) => {
    // a single element among thousands must be seen
    const height = n > 0 ? Math.max((n / most) * (H - B - 4), 1.5) : 0;
    const range = `${numberText(h.from + ((h.to - h.from) * i) / h.counts.length)} and on: ${n.toLocaleString("en")}`;
    return n > 0 ? [svg("rect", { class: "bar", x: i * w + 0.5, y: H - B - height, width: Math.max(w - 1, 1), height }, svg("title", {}, range))] : [];
  });
  const zero = h.from < 0 && h.to > 0 ? (W * -h.from) / (h.to - h.from) : null;
  return drawing(
    W,
    H,
    `Histogram from ${numberText(h.from)} to ${numberText(h.to)}, the fullest step has ${most.toLocaleString("en")} elements`,
    svg("path", { class: "axis", d: `M0 ${H - B}H${W}` }),
    ...bars,
    ...(zero === null ? [] : [svg("path", { class: "drop", d: `M${zero} 0V${H - B}` })]),
    svg("text", { x: 0, y: H - 5 }, numberText(h.from)),
    ...(zero === null || zero < 50 || zero > W - 50 ? [] : [svg("text", { x: zero, y: H - 5, "text-anchor": "middle" }, "0")]),
    svg("text", { x: W, y: H - 5, "text-anchor": "end" }, numberText(h.to)),
  );
}

/** Bytes of a partition over time, and the peak. */
export function memoryPicture(name: string, memory: ProfileMemory, range: { from: number; to: number }, width: number): SVGElement {
  const [H, L, B] = [84, 104, 16];
  const room = Math.max(width - L, 10);
  const most = Math.max(memory.peak, 1);
  const x = (us: number) => L + (Math.min(Math.max(us - range.from, 0), range.to - range.from) / Math.max(range.to - range.from, 1e-9)) * room;
  const y = (bytes: number) => H - B - (bytes / most) * (H - B - 16);
  let d = `M${L} ${y(0)}`;
  let last = 0;
  for (const [us, bytes] of memory.points) {
    d += `H${x(us).toFixed(1)}V${y(bytes).toFixed(1)}`;
    last = bytes;
  }
  d += `H${x(range.to)}`;
  const kib = (b: number) => `${(b / 1024).toLocaleString("en", { maximumFractionDigits: 1 })} KiB`;
  const facts = `${name}: at its peak ${kib(memory.peak)} of ${kib(memory.capacity)} in each partition, after ${time(memory.peak_us)}`;
  return drawing(
    width,
    H,
    facts,
    svg("path", { class: "axis", d: `M${L} 4V${H - B}H${width}` }),
    svg("path", { class: "fill", d: `${d}V${y(0)}Z` }),
    svg("path", { class: "curve", d: last > 0 ? d : `${d}V${y(0)}` }),
    ...(memory.peak_us >= range.from && memory.peak_us <= range.to && memory.peak > 0 ? [svg("path", { class: "drop", d: `M${x(memory.peak_us)} 12V${H - B}` })] : []),
    svg("text", { x: 10, y: 24, class: "strong" }, name),
    svg("text", { x: 10, y: 42 }, kib(memory.peak)),
    svg("text", { x: 10, y: 58 }, `of ${kib(memory.capacity)}`),
  );
}

/** What an instruction touches of one buffer, in elements. */
export interface TileFacts {
  title: string;
  kind: "read" | "write";
  extent: { rows: number; columns: number };
  elementBytes: number;
  isOnChip: boolean;
  here: readonly Rect[];
  everywhere: readonly Rect[];
}

/** Rectangles in two paths: those of all rounds faint, those of the present one solid.  Rows go down, bytes across. */
export function tilePicture(t: TileFacts, width: number): SVGElement {
  const { rows, columns } = t.extent;
  const [L, T, B] = [40, 20, 18];
  const room = width - L - 6;
  const height = Math.min(Math.max((rows / Math.max(columns, 1)) * room, rows > 1 ? 64 : 16), 132);
  const x = (c: number) => L + (c / Math.max(columns, 1)) * room;
  const y = (r: number) => T + (r / Math.max(rows, 1)) * height;
  const pathOf = (rects: readonly Rect[]) => {
    // those that are drawn alike at this size are drawn once
    const parts = new Set(rects.map((r) => `M${x(r.column).toFixed(1)} ${y(r.row).toFixed(1)}h${Math.max((r.columns / columns) * room, 1).toFixed(1)}v${Math.max((r.rows / rows) * height, 1).toFixed(1)}H${x(r.column).toFixed(1)}Z`));
    return [...parts].join("");
  };
  const bytes = (n: number) => bytesText(n * t.elementBytes);
  return drawing(
    width,
    T + height + B,
    `${t.title}: ${t.here.length === 0 ? "the place depends on data" : `${t.here.length} ${t.here.length === 1 ? "rectangle" : "rectangles"} in this round`}`,
    svg("text", { x: L, y: 13, class: "strong" }, t.title),
    svg("rect", { class: "tile-frame", x: L, y: T, width: room, height }),
    svg("path", { class: `tile-all ${t.kind}`, d: pathOf(t.everywhere) }),
    svg("path", { class: `tile-here ${t.kind}`, d: pathOf(t.here) }),
    svg("text", { x: L - 5, y: T + 9, "text-anchor": "end" }, "0"),
    ...(rows > 1 ? [svg("text", { x: L - 5, y: T + height, "text-anchor": "end" }, String(rows - 1))] : []),
    svg("text", { x: L, y: T + height + 13 }, t.isOnChip ? "0 B of a partition" : "0 B"),
    svg("text", { x: L + room, y: T + height + 13, "text-anchor": "end" }, bytes(columns)),
  );
}

const INKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight"];

/** The picture as a file, with the colours that it has on the screen.  They are attributes: the page's policy forbids inline
 * styles. */
export function svgText(picture: SVGElement): string {
  const copy = picture.cloneNode(true) as SVGElement;
  const from = [picture, ...picture.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, i) => {
    const style = getComputedStyle(from[i] as Element);
    // as attributes: the page's Content-Security-Policy forbids styles on elements
    for (const ink of INKS) node.setAttribute(ink, style.getPropertyValue(ink));
  });
  copy.setAttribute("xmlns", NS);
  return new XMLSerializer().serializeToString(copy);
}

/** Several pictures one below the other as one file. */
export function svgTexts(pictures: readonly SVGElement[]): string {
  let y = 0;
  const parts = pictures.map((p) => {
    const part = svgText(p).replace("<svg ", `<svg y="${y}" `);
    y += Number(p.getAttribute("height")) + 12;
    return part;
  });
  const width = Math.max(...pictures.map((p) => Number(p.getAttribute("width"))));
  return `<svg xmlns="${NS}" width="${width}" height="${y}">${parts.join("")}</svg>`;
}

/** The longest side of a picture in pixels. */
const PNG_MAX = 8000;

/** An SVG as PNG, at twice its size if it is not too large; null if the browser cannot draw it. */
export async function pngOf(text: string, width: number, height: number): Promise<Blob | null> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const scale = Math.min(2, PNG_MAX / Math.max(width, height, 1));
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done));
}
