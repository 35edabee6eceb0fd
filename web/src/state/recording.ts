// recording: what the page showed over time, as states: the first one whole, then what changed and when.  Edits of the main file
// are kept as splices.  A recording is a part of the view; anyone may have written one, so what is read is checked.
import type { AppState } from "./app";
import { pack, unpack } from "./fragment";
import { byHandOf } from "./byhand";
import { readFiles } from "./files";
import { markedFromText, markedText } from "./marked";
import { readNotes } from "./notes";
import { selectionText } from "./view";

/** A state without the source, as JSON. */
type Look = Record<string, unknown>;
type Splice = [from: number, removed: number, inserted: string];

export interface Moment {
  /** Milliseconds from the beginning. */
  at: number;
  look?: Look;
  edit?: Splice;
  /** Of a session: the names of those who did it. */
  by?: readonly string[];
}

export interface Recording {
  source: string;
  moments: readonly Moment[];
}

/** Longer ones are no walk through a kernel. */
export const LENGTH_MAX_MS = 60 * 60_000;
const MOMENTS_MAX = 20_000;
const SOURCE_MAX = 1 << 20;
const DOERS_MAX = 8;
const DOER_MAX = 64;

/** The parts of the state that a recording has.  The selection is a text, since what it names is made anew. */
export const RECORDED = ["source", "files", "tab", "target", "check", "pipeline", "byHand", "kernelName", "stageKey", "beside", "step", "picture", "diffFrom", "unified", "filter", "hideUnchanged", "mode", "comparedKey", "simulate", "pane", "inspect", "marked", "notes", "anchor"] as const satisfies readonly (keyof AppState)[];

export function lookOf(s: Readonly<AppState>): Look {
  const { files, tab, target, check, pipeline, byHand, kernelName, stageKey, beside, step, picture, diffFrom, unified, filter, hideUnchanged, mode, comparedKey, simulate, pane, inspect, notes } = s;
  return { files, tab, target, check, pipeline, byHand, kernelName, stageKey, beside, step, picture, diffFrom, unified, filter, hideUnchanged, mode: mode === "compare" ? "read" : mode, comparedKey, simulate, pane, inspect, notes, marked: markedText(s.marked), selection: selectionText(s) };
}

/** What makes `now` of `old`; null if they are equal. */
export function spliceOf(old: string, now: string): Splice | null {
  if (old === now) return null;
  let from = 0;
  const least = Math.min(old.length, now.length);
  while (from < least && old[from] === now[from]) from++;
  let end = 0;
  while (end < least - from && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  return [from, old.length - from - end, now.slice(from, now.length - end)];
}

function changed(old: Look, now: Look): Look | null {
  const keys = Object.keys(now).filter((k) => JSON.stringify(old[k]) !== JSON.stringify(now[k]));
  return keys.length > 0 ? Object.fromEntries(keys.map((k) => [k, now[k]])) : null;
}

/** Collects moments. */
export class Recorder {
  private readonly moments: Moment[] = [];
  private look: Look = {};
  private readonly first: string;
  private source: string;

  constructor(s: Readonly<AppState>) {
    this.first = this.source = s.source;
    this.take(s, 0);
  }

  /** by: who did what has changed; nobody: it is one person's walk. */
  take(s: Readonly<AppState>, at: number, by: readonly string[] = []): void {
    if (this.moments.length >= MOMENTS_MAX || at > LENGTH_MAX_MS) return;
    const now = lookOf(s);
    const look = changed(this.look, now);
    const edit = spliceOf(this.source, s.source);
    if (!look && !edit) return;
    this.moments.push({ at: Math.round(at), ...(look ? { look } : {}), ...(edit ? { edit } : {}), ...(by.length > 0 ? { by: by.slice(0, DOERS_MAX) } : {}) });
    this.look = now;
    this.source = s.source;
  }

  done(): Recording {
    return { source: this.first, moments: [...this.moments] };
  }
}

export function lengthOf(r: Recording): number {
  return r.moments.at(-1)?.at ?? 0;
}

/** The state at a time: the last of each part; and who was the last to do something. */
export function stateAt(r: Recording, at: number): { source: string; look: Look; by: readonly string[] } {
  let { source } = r;
  let by: readonly string[] = [];
  const look: Look = {};
  for (const m of r.moments) {
    if (m.at > at) break;
    if (m.look) Object.assign(look, m.look);
    if (m.edit) source = source.slice(0, m.edit[0]) + m.edit[2] + source.slice(m.edit[0] + m.edit[1]);
    by = m.by ?? by;
  }
  return { source, look, by };
}

/** What of a look the page can show. */
export function patchOf(look: Look): Partial<AppState> {
  const text = (k: string) => (typeof look[k] === "string" && look[k].length <= 2000 ? look[k] : null);
  const flag = (k: string) => look[k] === true;
  const { mode, pane, inspect, pipeline, files, byHand } = look;
  return {
    files: Array.isArray(files) ? readFiles(files) : [],
    tab: text("tab"),
    target: text("target") ?? "trn2",
    check: flag("check"),
    pipeline: pipeline === "reference" ? pipeline : "default",
    byHand: byHandOf(byHand),
    kernelName: text("kernelName"),
    stageKey: text("stageKey"),
    beside: text("beside"),
    step: typeof look.step === "number" && Number.isInteger(look.step) && look.step >= 0 ? look.step : null,
    picture: flag("picture"),
    diffFrom: text("diffFrom"),
    unified: flag("unified"),
    filter: text("filter") ?? "",
    hideUnchanged: flag("hideUnchanged"),
    mode: mode === "run" ? mode : "read",
    comparedKey: text("comparedKey"),
    simulate: flag("simulate"),
    pane: pane === "stages" || pane === "ir" ? pane : "source",
    inspect: inspect === "values" || inspect === "tiles" ? inspect : null,
    marked: markedFromText(text("marked")),
    notes: readNotes(look["notes"]).notes,
  };
}

export async function packRecording(r: Recording): Promise<string> {
  return pack(JSON.stringify(r));
}

function isSplice(v: unknown): v is Splice {
  return Array.isArray(v) && v.length === 3 && [v[0], v[1]].every((n) => Number.isInteger(n) && n >= 0 && n <= SOURCE_MAX) && typeof v[2] === "string";
}

function momentOf(v: unknown): Moment | null {
  const { at, look, edit, by } = (v ?? {}) as Record<string, unknown>;
  if (typeof at !== "number" || !(at >= 0) || at > LENGTH_MAX_MS) return null;
  if (look !== undefined && (typeof look !== "object" || look === null || Array.isArray(look))) return null;
  if (edit !== undefined && !isSplice(edit)) return null;
  if (by !== undefined && !(Array.isArray(by) && by.length <= DOERS_MAX && by.every((n) => typeof n === "string" && n.length <= DOER_MAX))) return null;
  return { at, ...(look ? { look: look as Look } : {}), ...(edit ? { edit } : {}), ...(by ? { by: by as string[] } : {}) };
}

/** Throws if it is damaged. */
export async function unpackRecording(packed: string): Promise<Recording> {
  const { source, moments } = JSON.parse(await unpack(packed)) as Record<string, unknown>;
  if (typeof source !== "string" || source.length > SOURCE_MAX || !Array.isArray(moments) || moments.length === 0 || moments.length > MOMENTS_MAX) throw new Error("no recording");
  const read = moments.map(momentOf);
  let before = 0;
  for (const m of read) {
    if (!m || m.at < before) throw new Error("a damaged moment");
    before = m.at;
  }
  return { source, moments: read as Moment[] };
}
