// offers: the knobs that decisions offer, and how one of them is written into the source.
import type { KnobValue, Remark, RemarkKnob, SourceRange } from "../api/types";
import { literal, movedRange, spanIn, writeKnob, type Change } from "../editor/writeknob";
import type { AppStore } from "../state/app";
import type { KernelOutcome } from "../state/outcome";
import { aboutAnchor } from "../state/remarks";
import type { Anchor } from "../state/selection";
import { plural } from "./dom";

export { literal };

/** What knobs are written into. */
export interface KnobEditor {
  /** The text of a file; null if there is no such file, or if it cannot be changed. */
  textOf(file: string): string | null;
  /** Makes the changes as one step that can be undone. */
  write(file: string, changes: readonly Change[]): void;
}

export type Offering = Remark & { knob: RemarkKnob };

export interface Offer {
  store: AppStore;
  editor: KnobEditor;
  kernel: KernelOutcome;
  remark: Offering;
  value: KnobValue;
}

export function isOffering(remark: Remark): remark is Offering {
  return remark.knob !== undefined;
}

/** Every value that a knob of a decision about the selection is offered for, each once. */
export function offersAbout(kernel: KernelOutcome, anchor: Anchor): { remark: Offering; value: KnobValue }[] {
  const seen = new Set<string>();
  return aboutAnchor(kernel, anchor).flatMap(({ remark }) => {
    if (!isOffering(remark)) return [];
    return remark.knob.offers.flatMap((value) => {
      const key = `${remark.knob.call} ${remark.knob.argument} ${literal(value)} ${remark.src}`;
      if (seen.has(key)) return [];
      seen.add(key);
      return [{ remark, value }];
    });
  });
}

/** How many calls led to the expression: a knob there is for each of them. */
function callsOf(kernel: KernelOutcome, range: number): number {
  const calls = new Set<string>();
  for (const stage of kernel.stages)
    for (const { src } of stage.remarks ?? [])
      for (const place of src === undefined ? [] : kernel.map.placesOf(src)) if (place[0] === range) calls.add(place.slice(1).join());
  return calls.size;
}

/** Writes the knob, and says what happened: what was written, or why it could not be. */
export function writeOffer({ store, editor, kernel, remark, value }: Offer): string {
  const n = remark.src === undefined ? undefined : kernel.map.placesOf(remark.src)[0]?.[0];
  const range = n === undefined ? undefined : kernel.map.ranges[n];
  const { outcome, language } = store.state;
  if (language !== "nkipy") return "A knob belongs into a Python kernel; this one is not written in Python.";
  if (n === undefined || !range || !kernel.map.isShown(n)) return "The expression is in a file that cannot be changed here.";
  const text = editor.textOf(range.file);
  if (text === null) return "The kernel cannot be changed here.";
  const span = spanIn(text, range);
  if (!span || outcome?.texts.get(range.file) !== text) return "The text has changed since it was compiled: wait for the result.";
  const written = writeKnob(text, span.from, span.to, { ...remark.knob, value });
  if ("why" in written) return written.why;
  editor.write(range.file, written.changes);
  // operations of the old result are gone with it: what stays selected is the expression
  const { anchor } = store.state;
  const ranges = anchor?.kind === "ranges" && anchor.map === kernel.map ? anchor.ranges : [n];
  const moved = ranges.map((r) => kernel.map.ranges[r] as SourceRange).map((r) => (r.file === range.file ? movedRange(text, written.changes, r) : r));
  if (anchor) store.set({ anchor: { kind: "ranges", map: kernel.map, ranges, moved } });
  const calls = callsOf(kernel, n);
  const where = range.fn ? ` of ${range.fn}` : "";
  return `Written: ${written.what}${calls > 1 ? `. The expression is computed in ${plural(calls, "call")}${where}, and the knob is for all of them` : ""}. Ctrl+Z takes it back.`;
}
