// icons: a few line drawings, 16 by 16, in the colour of the text.

const PATHS = {
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6ZM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.1 1.1M11.9 11.9 13 13M3 13l1.1-1.1M11.9 4.1 13 3",
  moon: "M13.5 9.6A5.8 5.8 0 0 1 6.4 2.5a5.8 5.8 0 1 0 7.1 7.1Z",
  half: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2ZM8 2v12M10 2.5v11M12 4v8",
  system: "M2 3h12v8H2zM5.5 13.5h5M8 11v2.5",
  sliders: "M2 4.5h7M12.5 4.5H14M2 11.5h1.5M7 11.5h7M9 4.5a1.75 1.75 0 1 0 3.5 0 1.75 1.75 0 0 0-3.5 0ZM3.5 11.5a1.75 1.75 0 1 0 3.5 0 1.75 1.75 0 0 0-3.5 0Z",
  find: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM10.4 10.4 14 14",
  wrap: "M2 4h12M2 8h9.5a2.2 2.2 0 0 1 0 4.4H8.5M10 10.6 8.2 12.4 10 14.2M2 12.4h3",
  copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1",
  download: "M8 2v8.5M4.5 7.5 8 11l3.5-3.5M2.5 13.5h11",
  close: "M4 4l8 8M12 4l-8 8",
  up: "M8 13V3.5M3.5 8 8 3.5 12.5 8",
  down: "M8 3v9.5M3.5 8 8 12.5 12.5 8",
  diff: "M8 2v6M5 5h6M5 11.5h6M2.5 14.5h11",
  open: "M9 2.5h4.5V7M13.5 2.5 7.5 8.5M6.5 3.5h-4v10h10v-4",
  maximise: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  hide: "M3.5 8h9",
  beside: "M2 3h12v10H2zM8 3v10",
  values: "M2.5 2.5h11v11h-11zM2.5 6.2h11M2.5 9.8h11M6.2 2.5v11M9.8 2.5v11",
  steps: "M2.5 13.5V10h4V6.5h4V3h3",
  graph: "M5.5 2h5v3h-5zM2 11h4.5v3H2zM9.5 11H14v3H9.5zM8 5v3M8 8H4.2v3M8 8h3.8v3",
  trash: "M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.6 9h5.8l.6-9",
  plus: "M8 3v10M3 8h10",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2ZM8 4.5V8l2.5 1.5",
  check: "M2.5 4.5h6M2.5 8h4M2.5 11.5h3M8 11l2.2 2.2L14 8.5",
  text: "M2.5 3.5h11M2.5 6.5h11M2.5 9.5h11M2.5 12.5h6",
  tag: "M8 2.5h5.5V8L7.5 14 2 8.5ZM10.9 4.9v.2",
  note: "M2.5 3h11v8h-6L4.5 13.5V11h-2zM5 5.7h6M5 8.3h4",
  pencil: "M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3 3 13ZM9 4.7 11.3 7",
} as const;

export type IconName = keyof typeof PATHS;

export function icon(name: IconName): SVGSVGElement {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "ico");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
