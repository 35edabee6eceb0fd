// picture: the shown stage as a picture: the data flow of HLO as a graph, the loops of MLIR as nested boxes.
//
// A box, a line of the stage and an expression of the source are one selection.  The worker reads the text and lays it out;
// until it answers, the last picture stays.
import type { Box, Drawing } from "../graph/drawing";
import { callsOfStage } from "../graph/calls";
import { BANDS } from "../highlight/bands";
import type { AppStore } from "../state/app";
import { lightOfOps, rangesOfOps, type Anchor, type Light } from "../state/selection";
import type { StageLinks } from "../state/sourcemap";
import { choose, selectedLight, shownStage, STAGE_KEYS, type Shown } from "../state/view";
import css from "../style/graph.late.css";
import { adoptStyle } from "../style/late";
import { byId, button, el, fill, saveFile, setAttr, toggle } from "./dom";
import { icon } from "./icons";
import { Layouter } from "./layouter";
import { pngOf } from "./pictures";
import { Sheet } from "./sheet";
import type { SplitSpec } from "./splitter";

adoptStyle(css);

/** Pixels; in a narrower pane the picture is below the text. */
const COLUMNS_MIN = 940;
/** An answer that takes longer is announced. */
const LATE_MS = 300;

export class PicturePane {
  private readonly pane = byId("ir-pane");
  private readonly sheet: Sheet;
  private readonly layouter = new Layouter((drawing, fault) => this.take(drawing, fault));
  private readonly title = el("b", {});
  private readonly summary = el("span", { class: "note" });
  private readonly note = el("p", { class: "picture-note", attrs: { role: "status", hidden: true } });
  private readonly now = el("p", { class: "picture-now", attrs: { role: "status" } });
  private readonly tip = el("div", { class: "picture-tip", attrs: { hidden: true } });
  private readonly table = el("div", { class: "picture-table", attrs: { hidden: true, tabindex: 0, role: "region", "aria-label": "The picture as a table" } });
  private readonly tableButton = toggle("table", "The same facts as a table (t)", () => this.showTable(this.table.hidden));
  private readonly allButton = toggle("", "", () => this.showAll(!this.isAll));
  private readonly textButton = toggle("text", "Show the stage's text beside the picture", () => this.setAlone(!this.isAlone));
  private readonly box: HTMLElement;
  private isAll = false;
  private isAlone = false;
  /** What the picture shows, and what it was asked for last. */
  private drawn: { drawing: Drawing; of: Shown } | null = null;
  private asked: { of: Shown; anchor: string | "keep" | null } | null = null;
  /** What the user has opened or closed, by the key of the stage. */
  private readonly opened = new Map<string, Map<string, boolean>>();
  private late = 0;
  /** The selection was made here: its box is in sight. */
  private own: Anchor | null = null;

  constructor(
    private readonly store: AppStore,
    private readonly say: (text: string) => void,
    private readonly find: () => void,
    splitter: (spec: SplitSpec) => void,
  ) {
    this.sheet = new Sheet(
      { picked: (box, add) => this.picked(box, add), toggled: (box) => this.toggled(box), pointed: (box) => this.pointed(box) },
      (text, x, y) => this.showTip(text, x, y),
    );
    const close = el("button", { class: "quiet tool", title: "Close the picture (v)", attrs: { type: "button", "aria-label": "Close the picture" }, on: { click: () => store.set({ picture: false }) } }, icon("close"));
    const zoom = (label: string, title: string, run: () => void) => button(label, title, run);
    const head = el(
      "div",
      { class: "picture-head" },
      this.title,
      this.summary,
      el("span", { class: "spring" }),
      el(
        "span",
        { class: "tools" },
        this.allButton,
        this.tableButton,
        this.textButton,
        zoom("−", "Smaller (−)", () => this.sheet.zoom(0.8)),
        zoom("fit", "All of the picture (0)", () => this.sheet.fit()),
        zoom("+", "Larger (+)", () => this.sheet.zoom(1.25)),
        button("SVG", "Save the picture as SVG", () => this.saveSvg()),
        button("PNG", "Save the picture as PNG", () => void this.savePng()),
      ),
      close,
    );
    const bar = el("div", { class: "splitter", id: "split-picture" });
    this.box = el("section", { id: "picture", attrs: { "aria-label": "Picture of the stage" } }, head, this.note, this.sheet.host, this.table, this.now, this.tip);
    byId("ir-viewer").after(bar, this.box);
    splitter({ id: bar.id, property: "--picture", container: "ir-pane", pane: "ir-viewer", label: "Width of the text beside the picture", initial: 0.42, min: 0.15, max: 0.75 });
    this.textButton.setAttribute("aria-pressed", "true");
    this.box.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => this.pane.classList.toggle("picture-below", this.pane.clientWidth < COLUMNS_MIN)).observe(this.pane);
    store.watch([...STAGE_KEYS, "picture"], () => this.draw());
    store.watch([...STAGE_KEYS, "anchor", "partner", "hover", "reveal", "picture"], () => this.light());
    store.watch(["reveal", "anchor"], () => this.revealSelection());
  }

  get isOpen(): boolean {
    return this.store.state.picture;
  }

  private draw(): void {
    const { isOpen } = this;
    const hadFocus = this.box.contains(document.activeElement);
    this.pane.classList.toggle("pictured", isOpen);
    this.pane.classList.toggle("picture-alone", isOpen && this.isAlone);
    this.box.hidden = byId("split-picture").hidden = !isOpen;
    if (!isOpen) {
      this.layouter.end();
      this.asked = this.drawn = null;
      if (hadFocus) byId("ir-viewer").querySelector<HTMLElement>(".cm-content")?.focus();
      return;
    }
    const shown = shownStage(this.store.state);
    if (!shown) {
      this.tell("There is no stage to draw yet.");
      return;
    }
    if (shown.stage === this.asked?.of.stage && shown.row.kernel.map === this.asked.of.row.kernel.map) return;
    const isSame = this.asked?.of.stage.name === shown.stage.name && this.asked.of.row.kernel.name === shown.row.kernel.name;
    this.ask(shown, isSame ? "keep" : null);
  }

  private ask(of: Shown, anchor: string | "keep" | null): void {
    const { stage, row } = of;
    const isFlow = stage.dialect === "hlo";
    this.asked = { of, anchor };
    this.title.textContent = isFlow ? "Data flow" : "Loops";
    this.allButton.textContent = isFlow ? "constants" : "all operations";
    this.allButton.title = isFlow ? "Show constants as operations of their own" : "Show buffers, views and index arithmetic, too";
    setAttr(this.allButton, "aria-label", this.allButton.title);
    this.layouter.ask({ dialect: stage.dialect, text: stage.text, calls: isFlow ? callsOfStage(row.kernel.map, stage) : [], opened: this.opened.get(row.key) ?? new Map<string, boolean>(), constants: this.isAll });
    window.clearTimeout(this.late);
    this.late = window.setTimeout(() => this.tell("Laying out…"), LATE_MS);
  }

  private take(drawing: Drawing | null, fault: string): void {
    window.clearTimeout(this.late);
    const { asked } = this;
    if (!asked) return;
    if (!drawing || drawing.boxes.length === 0) {
      this.tell(drawing ? "This stage has nothing to draw." : fault);
      this.drawn = null;
      return;
    }
    this.note.hidden = true;
    const isFirst = !this.drawn;
    this.drawn = { drawing, of: asked.of };
    this.summary.textContent = drawing.summary;
    const links = asked.of.row.kernel.map.linksOf(asked.of.stage);
    this.sheet.show(drawing, { lit: (box) => this.litClass(box, links), band: (box) => this.bandClass(box, links) }, isFirst ? null : asked.anchor);
    this.box.dataset["drawn"] = asked.of.row.key;
    if (!this.table.hidden) this.drawTable();
    this.light();
    if (asked.anchor === null) this.revealSelection();
  }

  private tell(text: string): void {
    this.note.textContent = text;
    this.note.hidden = false;
  }

  // ---- lights

  private bandClass(box: Box, links: StageLinks): string {
    const of = this.drawn?.of;
    const places = box.line > 0 && box.kind !== "group" ? links.places[box.line - 1] : null;
    const band = places && of ? of.row.kernel.map.bandOfPlaces(places) : null;
    return band === null || band === undefined ? "" : `band-${band % BANDS}`;
  }

  private lights: { selected: Light | null; hover: Light | null } = { selected: null, hover: null };

  private litClass(box: Box, links: StageLinks): string {
    const { selected, hover } = this.lights;
    const has = (light: Light | null) => light !== null && box.lines.some((line) => light.ops.has(links.lineOp[line - 1] ?? -1));
    const classes: string[] = [];
    // of an open frame, only what is said of its own line
    if (has(selected) && !(box.open && box.line === 0)) classes.push("lit-selected");
    if (selected && selected.best !== null && box.lines.some((line) => links.lineOp[line - 1] === selected.best) && !box.open) classes.push("lit-best");
    if (has(hover) && !box.open) classes.push("lit-hover");
    return classes.join(" ");
  }

  private light(): void {
    const { drawn } = this;
    if (!this.isOpen || !drawn) return;
    const shown = shownStage(this.store.state);
    const isCurrent = shown?.stage === drawn.of.stage;
    const { hover } = this.store.state;
    this.lights = { selected: isCurrent ? selectedLight(this.store.state) : null, hover: isCurrent ? (hover?.light ?? null) : null };
    this.sheet.relight();
    // what a search has found is shown; what the pointer passes is not
    if (hover?.origin === "ir" && document.activeElement?.closest(".search-pane, .cm-search")) this.revealLines(hover.light.ops);
  }

  private revealLines(ops: ReadonlySet<number>): void {
    const { drawn } = this;
    if (!drawn) return;
    const links = drawn.of.row.kernel.map.linksOf(drawn.of.stage);
    const box = drawn.drawing.boxes.filter((b) => !b.open && b.lines.some((line) => ops.has(links.lineOp[line - 1] ?? -1)))[0];
    if (box) this.sheet.reveal(box);
  }

  private revealSelection(): void {
    const { anchor } = this.store.state;
    if (!this.isOpen || !this.drawn || !anchor || anchor === this.own) return;
    const light = selectedLight(this.store.state);
    if (light && light.best !== null) this.revealLines(new Set([light.best]));
  }

  // ---- what the user does

  private opOf(box: Box): number | null {
    const { drawn } = this;
    const op = drawn && box.line > 0 ? (drawn.of.row.kernel.map.linksOf(drawn.of.stage).lineOp[box.line - 1] ?? -1) : -1;
    return op >= 0 ? op : null;
  }

  /** Of a call of a function, its expression in the source; of an operation, itself. */
  private anchorOf(box: Box): Anchor | null {
    const { drawn } = this;
    if (!drawn) return null;
    const { map, stages } = drawn.of.row.kernel;
    if (box.range >= 0) return { kind: "ranges", map, ranges: [box.range] };
    const op = this.opOf(box);
    if (op !== null) return { kind: "ops", map, stage: stages.indexOf(drawn.of.stage), ops: [op] };
    const links = map.linksOf(drawn.of.stage);
    const ops = box.lines.flatMap((line) => ((links.lineOp[line - 1] ?? -1) >= 0 ? [links.lineOp[line - 1] as number] : []));
    return ops.length > 0 ? { kind: "ops", map, stage: stages.indexOf(drawn.of.stage), ops } : null;
  }

  private picked(box: Box | null, add: boolean): void {
    if (!box) return;
    let anchor = this.anchorOf(box);
    const { anchor: now } = this.store.state;
    if (anchor && add && anchor.kind === "ops" && now?.kind === "ops" && now.map === anchor.map && now.stage === anchor.stage) anchor = { ...anchor, ops: [...new Set([...now.ops, ...anchor.ops])] };
    this.own = anchor;
    if (anchor) choose(this.store, anchor);
    this.describe(box);
  }

  private toggled(box: Box): void {
    const { drawn } = this;
    if (!drawn) return;
    const { key } = drawn.of.row;
    const own = this.opened.get(key) ?? new Map<string, boolean>();
    own.set(box.id, !box.open);
    this.opened.set(key, own);
    this.ask(drawn.of, box.id);
  }

  private pointed(box: Box | null): void {
    const { drawn } = this;
    const anchor = box && this.anchorOf(box);
    if (box) this.describe(box);
    if (!anchor || !drawn) {
      if (this.store.state.hover) this.store.set({ hover: null });
      return;
    }
    const links = anchor.map.linksOf(drawn.of.stage);
    const ops = anchor.kind === "ops" ? anchor.ops : box.lines.flatMap((line) => ((links.lineOp[line - 1] ?? -1) >= 0 ? [links.lineOp[line - 1] as number] : []));
    const light = lightOfOps(anchor.map, drawn.of.stage, ops);
    if (anchor.kind === "ranges") light.ranges = new Set(anchor.ranges);
    else light.ranges = rangesOfOps(links, ops);
    this.store.set({ hover: { origin: "ir", anchor, light } });
  }

  private describe(box: Box): void {
    const { now } = this;
    const fold = box.open === null ? "" : box.open ? ", open" : ", closed";
    const text = [box.title, box.detail].filter((t) => t !== "").join("  ");
    if (now.textContent !== text + fold) fill(now, el("span", {}, text), fold === "" ? null : el("span", { class: "sr" }, fold));
  }

  private showTip(text: string | null, x: number, y: number): void {
    this.tip.hidden = text === null;
    if (text === null) return;
    this.tip.textContent = text;
    const { offsetLeft, offsetTop, clientWidth } = this.sheet.host;
    this.tip.style.left = `${offsetLeft + Math.min(x + 12, Math.max(clientWidth - 220, 0))}px`;
    this.tip.style.top = `${offsetTop + y + 14}px`;
  }

  private key(e: KeyboardEvent): void {
    const mod = e.ctrlKey || e.metaKey;
    if (mod && !e.shiftKey && e.key.toLowerCase() === "f") {
      this.setAlone(false);
      this.find();
    } else if (e.key === "t" && !mod && !e.altKey) this.showTable(this.table.hidden);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  focus(): void {
    this.sheet.host.focus();
  }

  private showAll(on: boolean): void {
    this.isAll = on;
    this.allButton.setAttribute("aria-pressed", String(on));
    if (this.asked) this.ask(this.asked.of, null);
  }

  private setAlone(alone: boolean): void {
    this.isAlone = alone;
    this.textButton.setAttribute("aria-pressed", String(!alone));
    this.pane.classList.toggle("picture-alone", alone && this.isOpen);
    this.store.set({ reveal: this.store.state.reveal + 1 });
  }

  // ---- the table, and files

  private showTable(on: boolean): void {
    const hadFocus = this.table.contains(document.activeElement) || this.sheet.host.contains(document.activeElement);
    this.table.hidden = !on;
    this.sheet.host.hidden = on;
    this.tableButton.setAttribute("aria-pressed", String(on));
    if (on) this.drawTable();
    if (hadFocus) (on ? this.table : this.sheet.host).focus();
  }

  private drawTable(): void {
    const { drawn } = this;
    if (!drawn) return;
    const { heads, rows, more } = drawn.drawing.table;
    const kernel = drawn.of.row.kernel;
    const lineOp = kernel.map.linksOf(drawn.of.stage).lineOp;
    const line = (n: number) => {
      const op = lineOp[n - 1] ?? -1;
      if (n === 0 || op < 0) return n === 0 ? "" : String(n);
      return button(String(n), `Select line ${n}`, () => choose(this.store, { kind: "ops", map: kernel.map, stage: kernel.stages.indexOf(drawn.of.stage), ops: [op] }), "link");
    };
    const first = (row: (typeof rows)[number]) => {
      const cell = el("th", { attrs: { scope: "row" } }, row.cells[0] ?? "");
      cell.style.paddingLeft = `${row.depth * 14}px`;
      return cell;
    };
    fill(
      this.table,
      el(
        "table",
        { class: "facts" },
        el("thead", {}, el("tr", {}, el("th", { attrs: { scope: "col" } }, "line"), ...heads.map((h) => el("th", { attrs: { scope: "col" } }, h)))),
        el("tbody", {}, ...rows.map((r) => el("tr", {}, el("td", {}, line(r.line)), first(r), ...r.cells.slice(1).map((c) => el("td", {}, c))))),
      ),
      more > 0 && el("p", { class: "note" }, `and ${more.toLocaleString("en")} more, which the stage's text has`),
    );
  }

  private fileName(suffix: string): string {
    const row = this.drawn?.of.row;
    return `${row?.kernel.name ?? "kernel"}-${row?.key.replace(":", "-") ?? "stage"}.${suffix}`;
  }

  private saveSvg(): void {
    if (this.drawn) saveFile(this.fileName("svg"), new Blob([this.sheet.svg()], { type: "image/svg+xml" }));
  }

  private async savePng(): Promise<void> {
    const { drawn } = this;
    const blob = drawn && (await pngOf(this.sheet.svg(), drawn.drawing.width, drawn.drawing.height).catch(() => null));
    if (blob) saveFile(this.fileName("png"), blob);
    else this.say("The picture could not be made: it may be too large. SVG has no limit.");
  }
}
