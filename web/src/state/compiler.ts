// compiler: compiles the source and shows the result.
//
// One compilation at a time: a newer one cancels the running one, and frames of a cancelled one are dropped.
import { compile, isAbort } from "../api/client";
import { type Base, NO_BASE } from "../api/delta";
import { Problem } from "../api/problem";
import type { CompileRequest, LanguageName, TargetName } from "../api/types";
import type { AppState, AppStore } from "./app";
import { TODAY } from "./compilers";
import { importable, mainName, textsOf } from "./files";
import { applyFrame, baseOf, kernelOf, newOutcome, type Outcome } from "./outcome";
import { resumeOf } from "./resume";
import { rebind } from "./selection";
import { editorName, scope } from "./scope";
import { settings } from "./settings";

/** Frames that arrive within this time are shown together, because each rendering lays out the whole page. */
const PACE_MS = 40;

/** While a result is shown, the first frames of the next one wait so long: most compiles end within it, and then the page is drawn
 * once.  What is old looks old only later than this, too (.stage.stale). */
const FIRST_MS = 120;

/** At most this share of the time is spent on drawing what comes: one part in so many. */
const DRAWING = 4;

/** Milliseconds after the last key until the source is compiled: as long as the last compile took, within these bounds.  What
 * takes long is not begun at every key, and what is quick follows typing. */
const PAUSE_MS = { least: 60, most: 150 };

/** The request for a kernel.  Names may come from a link; the server refuses those it does not know. */
export function requestOf(s: Readonly<Pick<AppState, "source" | "filename" | "files" | "language" | "target" | "inputs" | "check" | "pipeline" | "version" | "simulate"> & { instance?: number | null; edited?: AppState["edited"]; byHand?: readonly string[]; patterns?: string }>): CompileRequest {
  const { source, language, target, inputs, check, pipeline, simulate, instance = null, edited = null, byHand = [], patterns = "" } = s;
  const req: CompileRequest = {
    source,
    filename: mainName(s),
    language: language as LanguageName,
    target: target as TargetName,
    scope: scope(),
  };
  const files = importable(s);
  if (files.length > 0) req.files = [...files];
  if (inputs) req.inputs = inputs;
  if (s.version !== TODAY) req.version = s.version;
  const options = { ...(check ? { check } : {}), ...(simulate ? { simulate } : {}), ...(pipeline === "default" ? {} : { pipeline }), ...(byHand.length > 0 ? { by_hand: [...byHand] } : {}), ...(patterns === "" ? {} : { patterns }), ...(instance === null ? {} : { instance }), ...(edited ? { resume: resumeOf(edited) } : {}) };
  if (Object.keys(options).length > 0) req.options = options;
  return req;
}

function stageCount(outcome: Outcome | null): number {
  return outcome?.kernels.reduce((n, kernel) => n + kernel.stages.length, 0) ?? 0;
}

export class Compiler {
  private timer = 0;
  private running: AbortController | null = null;

  constructor(private readonly store: AppStore) {}

  /** The source has changed: compiles when the user stops typing. */
  soon(): void {
    window.clearTimeout(this.timer);
    this.store.set({ pending: true });
    if (settings.state.autoCompile) this.timer = window.setTimeout(() => void this.now(), this.pause());
  }

  private pause(): number {
    return Math.min(Math.max(this.store.state.outcome?.roundTripMs ?? 0, PAUSE_MS.least), PAUSE_MS.most);
  }

  cancel(): void {
    window.clearTimeout(this.timer);
    this.running?.abort();
  }

  /** The request for what the page shows. */
  request(): CompileRequest {
    return requestOf(this.store.state);
  }

  /** The outcome to show for unfinished parts: the last complete one, if there was one; never an empty one. */
  private keepPrevious(): Outcome | null {
    const { outcome, previous } = this.store.state;
    const hasStages = outcome?.kernels.some((k) => k.stages.length > 0) === true;
    if (hasStages && outcome.status === "ok") return outcome;
    return previous ?? (hasStages ? outcome : null);
  }

  private show(outcome: Outcome): void {
    const { anchor, previous, kernelName, outcome: shown } = this.store.state;
    const now = kernelOf(outcome, kernelName);
    // the selection is carried over as soon as the new outcome has its operations or ranges
    if (anchor && now && anchor.map !== now.map) {
      const old = [...(shown?.kernels ?? []), ...(previous?.kernels ?? [])].find((k) => k.map === anchor.map);
      const again = old ? rebind(anchor, old, now) : null;
      if (again) this.store.set({ anchor: again });
      else if (outcome.status === "ok") this.store.set({ anchor: null });
    }
    this.store.set({ outcome });
  }

  /** The result that a compile refers to: the one on the page, unless it ended early and the one before it did not. */
  private base(): Base | null {
    const { outcome, previous } = this.store.state;
    return baseOf(previous && stageCount(previous) > stageCount(outcome) ? previous : outcome);
  }

  /** again: if the server says that a newer compile has taken the place of this one, although there is none, it is sent once
   * more: requests of one page may overtake each other. */
  async now(base: Base | null = this.base(), again = true): Promise<void> {
    this.cancel();
    const mine = new AbortController();
    this.running = mine;
    const started = performance.now();
    const req = this.request();
    this.store.set({ compiling: true, pending: false, problem: null, previous: this.keepPrevious() });
    let outcome = newOutcome(textsOf(this.store.state));
    let next = this.store.state.previous ? started + FIRST_MS : 0;
    let soon = 0;
    const show = () => {
      soon = 0;
      if (this.running !== mine) return;
      const from = performance.now();
      this.show(outcome);
      // after those that draw it
      queueMicrotask(() => (next = from + Math.max(PACE_MS, DRAWING * (performance.now() - from))));
    };
    try {
      const isCached = await compile(req, editorName, mine.signal, (frame) => {
        if (this.running !== mine) return;
        outcome = applyFrame(outcome, frame);
        if (!soon) soon = window.setTimeout(show, Math.max(0, next - performance.now()));
      }, base);
      window.clearTimeout(soon);
      if (this.running !== mine) return;
      if (outcome.status === "running") {
        throw new Problem("ours", "cut-short", "The answer ended before its last frame.", null, "Try again.");
      }
      if (again && outcome.diagnostics.some((d) => d.code === "superseded")) return this.now(this.base(), false);
      this.show({ ...outcome, isCached, roundTripMs: performance.now() - started });
    } catch (e) {
      window.clearTimeout(soon);
      if (this.running !== mine) return;
      if (base && e instanceof Problem && e.code === NO_BASE) return this.now(null);
      this.show({ ...outcome, status: "cut" });
      if (!isAbort(e)) {
        const problem = e instanceof Problem ? e : new Problem("ours", "page", `This page failed: ${String(e)}`);
        this.store.set({ problem });
        if (!(e instanceof Problem)) console.error(e);
      }
    }
    this.running = null;
    this.store.set({ compiling: false });
  }
}
