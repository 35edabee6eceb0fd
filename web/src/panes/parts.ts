// parts: what the shown stage has of the selection, counted: "1 matmul · 2 dma_copy", each with the pass that introduced it.
import type { AppStore } from "../state/app";
import { sharedBy, type Part } from "../state/lineage";
import type { KernelOutcome } from "../state/outcome";
import type { Kind } from "../state/ranking";
import { selectedLight } from "../state/view";
import { el, fill, plural } from "./dom";
import { placeList } from "./places";

/** "nisa.matmul" as "matmul": the stage has one dialect of work, and the chip shows the full name. */
function shortLabel(label: string): string {
  return label.replace(/^(nisa|linalg|memref|arith|scf|tensor|bufferization)\./, "");
}

/** The kinds that are listed at once; the rest holds the work together, and is listed on demand. */
const WORK: ReadonlySet<Kind> = new Set(["matmul", "reduce", "compute", "move", "fill"]);

export class Parts {
  readonly box = el("div", { class: "parts", attrs: { role: "group", "aria-label": "Operations of the selection in this stage" } });

  private isWide = false;
  private redraw = () => {};

  constructor(private readonly store: AppStore) {}

  /** The best first. */
  show(kernel: KernelOutcome, stage: number, parts: readonly Part[], texts: ReadonlyMap<string, string>): void {
    this.redraw = () => this.show(kernel, stage, parts, texts);
    const best = selectedLight(this.store.state)?.best ?? null;
    const focused = this.box.contains(document.activeElement) ? document.activeElement?.getAttribute("data-part") : null;
    const work = parts.filter((p) => WORK.has(p.kind));
    const rest = work.length > 0 ? parts.filter((p) => !WORK.has(p.kind)) : [];
    const listed = work.length > 0 && !this.isWide ? work : parts;
    fill(this.box, ...listed.map((part) => this.entry(kernel, stage, part, best, texts)), rest.length > 0 ? this.restButton(rest) : null);
    this.box.hidden = parts.length === 0;
    if (focused) this.box.querySelector<HTMLElement>(`[data-part="${CSS.escape(focused)}"]`)?.focus();
  }

  private restButton(rest: readonly Part[]): HTMLElement {
    const count = rest.reduce((n, p) => n + p.ops.length, 0);
    return el(
      "button",
      {
        class: "quiet part-rest",
        title: "Loops, buffers, constants and what else holds the work together",
        attrs: { type: "button", "aria-expanded": String(this.isWide), "data-part": "rest" },
        on: {
          click: () => {
            this.isWide = !this.isWide;
            this.redraw();
          },
        },
      },
      this.isWide ? "fewer" : `+ ${plural(count, "loop, buffer or constant", "loops, buffers, constants")}`,
    );
  }

  private entry(kernel: KernelOutcome, stage: number, part: Part, best: number | null, texts: ReadonlyMap<string, string>): HTMLElement {
    const pass = kernel.stages[part.introduced];
    const from = part.introduced === 0 ? "from the source" : `${pass?.name ?? ""} ${part.introduced}`;
    const chain = part.names.map((n) => `${n.label}, ${n.stage} ${kernel.stages[n.stage]?.name ?? ""}`).join("\n→ ");
    const isHere = best !== null && part.ops.includes(best);
    const next = isHere ? part.ops[(part.ops.indexOf(best) + 1) % part.ops.length] : part.ops[0];
    const shared = sharedBy(kernel, stage, part);
    const many = part.ops.length > 1 && isHere ? `, ${part.ops.indexOf(best as number) + 1} of ${part.ops.length}` : "";
    const chip = el(
      "button",
      {
        class: `part part-${part.kind}`,
        title: `${chain}\nClick to show${part.ops.length > 1 ? " one after the other" : ""}`,
        attrs: {
          type: "button",
          "data-part": `${part.label} ${part.introduced}`,
          "aria-pressed": String(isHere),
          "aria-label": `${plural(part.ops.length, part.label, part.label)}, introduced by ${from}${many}`,
        },
        on: { click: () => this.store.set({ partner: next ?? null, reveal: this.store.state.reveal + 1 }) },
      },
      el("b", {}, String(part.ops.length)),
      el("span", { class: "op" }, shortLabel(part.label)),
      el("span", { class: "by" }, from),
    );
    if (!shared) return chip;
    const summary = el("summary", {}, `shared by ${shared.places.length + shared.more} expressions`);
    return el("span", { class: "part-shared" }, chip, el("details", { class: "shared-places" }, summary, placeList(shared.places, shared.more, kernel.map, texts, true)));
  }
}
