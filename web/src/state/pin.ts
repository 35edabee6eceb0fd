// pin: result A of a comparison: a kernel as it was when the user pinned it.  What the page shows is B.
import { compile, isAbort } from "../api/client";
import { Problem } from "../api/problem";
import type { Snippet } from "../api/types";
import type { AppState, AppStore } from "./app";
import { requestOf, type Compiler } from "./compiler";
import { readFiles, textsOf } from "./files";
import { pack, pipelineOf, unpack } from "./fragment";
import { readInputs } from "./inputs";
import { TODAY, versionName } from "./compilers";
import { byHandOf } from "./byhand";
import { applyFrame, frozenOutcome, newOutcome, type Outcome } from "./outcome";
import { pinEditorName } from "./scope";
import { sharedOf } from "./shared";

/** What is compiled. */
export type Job = Pick<AppState, "source" | "filename" | "files" | "language" | "target" | "inputs" | "check" | "pipeline" | "version" | "simulate" | "edited" | "byHand">;

export interface Pin {
  job: Job;
  /** Null until it is compiled. */
  outcome: Outcome | null;
  problem: Problem | null;
  /** What the user calls it; "" without a name. */
  name: string;
}

export function jobOf(s: Readonly<Job>): Job {
  const { source, filename, files, language, target, inputs, check, pipeline, version, simulate, edited, byHand } = s;
  return { source, filename, files, language, target, inputs, check, pipeline, version, simulate, edited, byHand };
}

export function sameJob(a: Readonly<Job>, b: Readonly<Job>): boolean {
  return JSON.stringify(jobOf(a)) === JSON.stringify(jobOf(b));
}

/** The outcome of the kernel as it stands; null while it is not compiled. */
function ownOutcome(s: Readonly<AppState>): Outcome | null {
  const { outcome, pending, compiling } = s;
  return pending || compiling || outcome?.status === "cut" ? null : outcome;
}

/** Makes what the page shows A. */
export function pinCurrent(store: AppStore): void {
  store.set({ pinned: { job: jobOf(store.state), outcome: ownOutcome(store.state), problem: null, name: "" } });
  if (!store.state.pinned?.outcome) void compilePin(store);
}

/** Makes A what the other pipeline makes of the kernel that the page shows, and compares. */
export function pinOtherPipeline(store: AppStore): void {
  const pipeline = store.state.pipeline === "reference" ? "default" : "reference";
  store.set({ pinned: { job: { ...jobOf(store.state), pipeline, edited: null, byHand: [] }, outcome: null, problem: null, name: "" }, mode: "compare", pane: "ir" });
  void compilePin(store);
}

/** Makes what the page shows A, and compares it with what today's version makes of the kernel. */
export function compareWithToday(store: AppStore, compiler: Compiler): void {
  const name = versionName(store.state.versions, store.state.version);
  store.set({ pinned: { job: jobOf(store.state), outcome: ownOutcome(store.state), problem: null, name }, mode: "compare", pane: "ir" });
  if (!store.state.pinned?.outcome) void compilePin(store);
  store.set({ version: TODAY });
  void compiler.now();
}

/** Makes a stored link A, with its stages as they were stored. */
export function pinSnippet(store: AppStore, snippet: Snippet, revision: number | null): void {
  const shared = sharedOf(snippet, revision);
  const outcome = frozenOutcome(textsOf(shared), snippet.result, shared.id, snippet.revision);
  store.set({ pinned: { job: jobOf({ ...shared, simulate: false }), outcome, problem: null, name: `${shared.title || `/z/${shared.id}`}${revision === null ? "" : `, revision ${revision}`}` } });
}

let running: AbortController | null = null;

/** Compiles A, with the options that it has now. */
export async function compilePin(store: AppStore): Promise<void> {
  const { pinned } = store.state;
  if (!pinned) return;
  running?.abort();
  const mine = new AbortController();
  running = mine;
  const mayShow = () => running === mine && store.state.pinned?.job === pinned.job;
  let outcome = newOutcome(textsOf(pinned.job));
  try {
    await compile(requestOf(pinned.job), pinEditorName, mine.signal, (frame) => (outcome = applyFrame(outcome, frame)));
    if (mayShow()) store.set({ pinned: { ...pinned, outcome, problem: null } });
  } catch (e) {
    if (isAbort(e) || !mayShow()) return;
    if (!(e instanceof Problem)) throw e;
    store.set({ pinned: { ...pinned, problem: e } });
  } finally {
    if (running === mine) running = null;
  }
}

/** B becomes A, and A becomes what the page shows; its stages are shown at once. */
export function swapPin(store: AppStore, compiler: Compiler): void {
  const { pinned } = store.state;
  if (!pinned) return;
  const b: Pin = { job: jobOf(store.state), outcome: ownOutcome(store.state), problem: null, name: "" };
  compiler.cancel();
  store.set({ ...pinned.job, outcome: pinned.outcome, previous: null, tab: null, anchor: null, pending: false, pinned: b });
  if (!pinned.outcome) void compiler.now();
  if (!b.outcome) void compilePin(store);
}

/** A becomes what the page shows, and nothing is pinned. */
export function keepA(store: AppStore, compiler: Compiler): void {
  const { pinned } = store.state;
  if (!pinned) return;
  compiler.cancel();
  store.set({ ...pinned.job, outcome: pinned.outcome, previous: null, tab: null, anchor: null, pending: false, pinned: null, mode: "read" });
  if (!pinned.outcome) void compiler.now();
}

export async function packPin(pin: Pin): Promise<string> {
  return pack(JSON.stringify({ ...pin.job, name: pin.name }));
}

/** A from a link, not compiled yet.  Throws when it is damaged. */
export async function unpackPin(text: string): Promise<Pin> {
  const v = JSON.parse(await unpack(text)) as Record<string, unknown>;
  const word = (key: string, otherwise: string) => (typeof v[key] === "string" ? v[key] : otherwise);
  if (typeof v["source"] !== "string") throw new Error("no kernel");
  const job: Job = {
    source: v["source"],
    filename: typeof v["filename"] === "string" ? v["filename"] : null,
    files: readFiles(v["files"] ?? []),
    language: word("language", "nkipy"),
    target: word("target", "trn2"),
    inputs: v["inputs"] ? readInputs(v["inputs"]) : null,
    check: v["check"] === true,
    pipeline: pipelineOf(v["pipeline"]),
    version: word("version", TODAY),
    byHand: byHandOf(v["byHand"]),
    simulate: v["simulate"] === true,
    edited: null, // a change of a stage is too long for an address
  };
  return { job, outcome: null, problem: null, name: word("name", "") };
}

const KEY = "nkx.pin";

/** What was pinned in this tab before the page was loaded. */
export async function pinOfTab(): Promise<Pin | null> {
  try {
    const kept = sessionStorage.getItem(KEY);
    return kept === null ? null : await unpackPin(kept);
  } catch {
    return null; // storage is off, or it is another version's
  }
}

/** From now on the tab remembers what is pinned. */
export function followPin(store: AppStore): void {
  let job: Job | null = null;
  store.watch(["pinned"], () => {
    const { pinned } = store.state;
    if ((pinned?.job ?? null) === job) return;
    job = pinned?.job ?? null;
    void (pinned ? packPin(pinned) : Promise.resolve(null)).then((text) => {
      try {
        if (text === null) sessionStorage.removeItem(KEY);
        else sessionStorage.setItem(KEY, text);
      } catch {
        // the pin is kept for this page load only
      }
    });
  });
}
