// neff: the dialog that shows what a NEFF holds: header, tensors, engines, queues, variables, files.
import { isAbort } from "../api/client";
import { Problem } from "../api/problem";
import type { Neff, NeffSubgraph } from "../api/types";
import { askNeff, total } from "../state/neff";
import { adoptStyle } from "../style/late";
import css from "../style/neff.late.css";
import { button, el, fill, plural } from "./dom";

/** Rows of a table that are shown at first. */
const ROWS_MAX = 200;

type Cell = string | number | null;

function text(cell: Cell): string {
  return cell === null ? "?" : typeof cell === "number" ? cell.toLocaleString("en") : cell;
}

function row(cells: readonly Cell[]): HTMLElement {
  const [first, ...rest] = cells.map((c) => [text(c), typeof c === "string" ? "" : "number"] as const);
  return el("tr", {}, el("th", { attrs: { scope: "row" } }, first?.[0] ?? ""), ...rest.map(([t, cls]) => el("td", { class: cls }, t)));
}

/** The heads of numbers stand over them, at the right. */
function isNumber(rows: readonly (readonly Cell[])[], column: number): boolean {
  return column > 0 && rows.length > 0 && rows.every((r) => typeof r[column] !== "string");
}

/** A part that can be folded, with a table; long tables begin with their first rows, and columns without any text are left out. */
function section(title: string, allHeads: readonly string[], allRows: readonly (readonly Cell[])[], open: boolean): HTMLElement {
  const isUsed = allHeads.map((_, i) => allRows.some((r) => r[i] !== ""));
  const heads = allHeads.filter((_, i) => isUsed[i]);
  const rows = allRows.map((r) => r.filter((_, i) => isUsed[i]));
  const body = el("tbody", {}, ...rows.slice(0, ROWS_MAX).map(row));
  const more = button(`Show all ${rows.length.toLocaleString("en")}`, "Show the rest of the table", () => {
    fill(body, ...rows.map(row));
    more.remove();
  });
  const table = el("table", { attrs: { "aria-label": title } }, el("thead", {}, el("tr", {}, ...heads.map((h, i) => el("th", { class: isNumber(rows, i) ? "number" : "", attrs: { scope: "col" } }, h)))), body);
  const node = el(
    "details",
    { attrs: { open } },
    el("summary", {}, `${title} (${rows.length.toLocaleString("en")})`),
    rows.length > 0 ? el("div", { class: "neff-table", attrs: { tabindex: 0, role: "region", "aria-label": `${title}, table` } }, table) : el("p", { class: "note" }, "There are none."),
    rows.length > ROWS_MAX && more,
  );
  return node;
}

/** What info.json of a simulation package says of its simulated run. */
function simulatedRows({ kind, info }: Neff): [string, string][] {
  const us: unknown = kind === "simulation" && info !== null && "simulated_time_us" in info ? info.simulated_time_us : null;
  return typeof us === "number" ? [["simulated time", `${us.toFixed(2)} µs`]] : [];
}

/** The bit of a simulation package (NEFF_FEATURE_SIMULATION); the vendor publishes no numbers of bits. */
const SIMULATION_BIT = 63;

function features({ kind, header }: Neff): string {
  const bits = header.features.map((b) => (kind === "simulation" && b === SIMULATION_BIT ? `bit ${b}: no device executes it` : `bit ${b}`));
  return bits.join(", ") || "none";
}

/** What the keys of def.json call the engines. */
const ENGINES: Record<string, string> = { pe: "Tensor", act: "Scalar", dve: "Vector", pool: "GpSimd", sp: "Sync" };

function engine(key: string): string {
  const name = ENGINES[key];
  return name ? `${name} (${key})` : key;
}

/** Pairs of names in info.json of a simulation package: the output is in the memory of the input. */
function aliases({ info }: Neff): Map<unknown, unknown> {
  const list: unknown = info !== null && "aliases" in info ? info.aliases : null;
  const pairs = (Array.isArray(list) ? list : []).filter((a: unknown): a is { output: unknown; input: unknown } => typeof a === "object" && a !== null && "output" in a && "input" in a);
  return new Map(pairs.map((a) => [a.output, a.input]));
}

function tensorRows(neff: Neff): Cell[][] {
  const shape = (s: number[] | null) => (s === null ? "?" : `[${s.join(", ")}]`);
  const inputs = aliases(neff);
  return neff.tensors.map((t) => {
    const input = t.usage === "output" ? inputs.get(t.name) : undefined;
    return [t.name, typeof input === "string" ? `output, in place of ${input}` : t.usage, t.dtype || "?", shape(t.shape), t.size];
  });
}

function headerRows(neff: Neff): [string, string][] {
  const { header: h, compressed } = neff;
  const matches = h.hash_matches === null ? "of a kind that is not known" : h.hash_matches ? "matches the data" : "differs from the data";
  return [
    ["name", h.name || "none"],
    ["built by", h.build || "not said"],
    ["format", `${h.format}, package version ${h.package_version}`],
    ["cores", `${h.cores}, requested ${h.requested_cores}, LNC ${h.lnc}`],
    ["features", features(neff)],
    ["archive", `${plural(h.data_size, "byte")}, ${compressed ? "gzip" : "not compressed"}`],
    ["hash", `${h.hash}: it ${matches}`],
    ["uuid", h.uuid],
    ...simulatedRows(neff),
  ];
}

/** Fields as words: "alignment 64, list 2 3"; of files: "dve_tables opcode_table dve_op.bin". */
function fieldText(fields: object | undefined): string {
  const list: [string, unknown][] = Object.entries(fields ?? {});
  const text = (v: unknown): string => (Array.isArray(v) ? v.map(text).join(" ") : v && typeof v === "object" ? Object.entries(v).flat().join(" ") : String(v));
  return list.map(([k, v]) => `${k} ${text(v)}`).join(", ");
}

/** "272 copy, 8 transpose" */
function opText(ops: Record<string, number>): string {
  return Object.entries(ops)
    .map(([op, n]) => `${n.toLocaleString("en")} ${op}`)
    .join(", ");
}

function subgraphParts(s: NeffSubgraph, prefix: string): HTMLElement[] {
  return [
    section(`${prefix}Engines`, ["engine", "instructions", "bytes of code", "transfers", "descriptors", "which do", "bytes moved", "code in", "besides"], s.engines.map((e) => [engine(e.key), e.instructions, e.instr_size, e.transfers, e.descriptors, opText(e.ops), e.bytes, e.instr ?? "no file", fieldText(e.fields)]), true),
    section(`${prefix}DMA queues`, ["queue", "type", "triggered by", "rings", "transfers", "descriptors", "bytes moved", "besides"], s.queues.map((q) => [q.name, q.type, engine(q.owner) || "not said", q.rings, q.transfers, q.descriptors, q.bytes, fieldText(q.fields)]), true),
    section(`${prefix}Variables`, ["variable", "type", "place", "bytes", "number", "file", "besides"], s.variables.map((v) => [v.name, v.type, v.place, v.size, v.id, v.file ?? "", fieldText(v.fields)]), false),
  ];
}

function parts(neff: Neff): HTMLElement[] {
  const many = neff.subgraphs.length > 1;
  return [
    el("dl", { class: "neff-header" }, ...headerRows(neff).flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
    section("Tensors", ["tensor", "use", "type", "shape", "bytes"], tensorRows(neff), true),
    ...neff.subgraphs.flatMap((s) => subgraphParts(s, many ? `${s.name}: ` : "")),
    section("Files", ["file", "bytes"], neff.members.map((m) => [m.name, m.size]), false),
    ...(neff.info ? [el("details", {}, el("summary", {}, "info.json"), el("pre", { attrs: { tabindex: 0, role: "region", "aria-label": "info.json" } }, JSON.stringify(neff.info, null, 1)))] : []),
  ];
}

/** Engines of all subgraphs, and what they do together. */
function summary(neff: Neff): string {
  const engines = neff.subgraphs.flatMap((s) => s.engines);
  const instructions = total(engines.map((e) => e.instructions));
  const code = total(engines.map((e) => e.instr_size)) ?? 0;
  const count = instructions === null ? "instructions that are not counted" : plural(instructions, "instruction");
  return `${plural(neff.tensors.length, "tensor")}, ${count}, ${plural(code, "byte")} of code, ${plural(neff.members.length, "file")}.`;
}

class NeffDialog {
  private readonly title = el("h2", { id: "neff-title" });
  private readonly said = el("p", { class: "note", attrs: { role: "status" } });
  private readonly body = el("div", { class: "neff-body" });
  private readonly dialog = el(
    "dialog",
    { class: "neff", attrs: { "aria-labelledby": "neff-title" } },
    this.title,
    this.said,
    this.body,
    el("div", { class: "neff-foot" }, button("Close", "Back to the kernel (Esc)", () => this.dialog.close(), "primary")),
  );
  private asked: AbortController | null = null;

  constructor() {
    adoptStyle(css);
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", (e) => e.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => this.asked?.abort());
  }

  async open(name: string, file: Blob): Promise<void> {
    this.asked?.abort();
    const asked = (this.asked = new AbortController());
    this.title.textContent = name;
    this.said.textContent = "Reading…";
    fill(this.body);
    if (!this.dialog.open) this.dialog.showModal();
    try {
      const neff = await askNeff(file, asked.signal);
      if (asked !== this.asked || !this.dialog.open) return;
      this.said.textContent = `${neff.what} ${summary(neff)}`;
      fill(this.body, ...parts(neff));
    } catch (e) {
      if (isAbort(e)) return;
      if (!(e instanceof Problem)) throw e;
      if (asked === this.asked) this.said.textContent = `The file cannot be shown: ${e.message} (${e.code})`;
    }
  }
}

let dialog: NeffDialog | null = null;

export async function openNeff(name: string, file: Blob): Promise<void> {
  dialog ??= new NeffDialog();
  await dialog.open(name, file);
}
