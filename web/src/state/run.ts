// run: the kernel on the simulated machine.  While the view of the run is open, each result is run as well, by a request of
// its own, so that stages never wait for it.
import { compile, isAbort } from "../api/client";
import { Problem } from "../api/problem";
import type { ArtifactInfo, Profile, Simulation } from "../api/types";
import type { AppStore } from "./app";
import { requestOf } from "./compiler";
import { kernelOf } from "./outcome";
import { runEditorName } from "./scope";
import { decodeTimeline, type Timeline } from "./timeline";

export interface KernelRun {
  name: string;
  simulation: Simulation | null;
  profile: Profile | null;
  timeline: Timeline | null;
  /** For ui.perfetto.dev. */
  perfetto: string | null;
}

export interface Run {
  /** The key of the outcome that was run. */
  of: string;
  kernels: KernelRun[];
  status: "running" | "done";
  problem: Problem | null;
}

function decode(artifact: ArtifactInfo, data: string, run: KernelRun): void {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const text = new TextDecoder().decode(bytes);
  if (artifact.name.endsWith("/executions.json")) run.timeline = decodeTimeline(JSON.parse(text));
  if (artifact.name.endsWith("/timeline.json")) run.perfetto = text;
}

export class Runner {
  private running: AbortController | null = null;

  constructor(private readonly store: AppStore) {
    store.watch(["mode", "outcome", "compiling"], () => this.follow());
  }

  private follow(): void {
    const { mode, outcome, compiling, run } = this.store.state;
    const isReady = !compiling && outcome !== null && outcome.status === "ok" && outcome.key !== "";
    if (mode === "run" && isReady && run?.of !== outcome.key) void this.now(outcome.key);
  }

  private async now(key: string): Promise<void> {
    this.running?.abort();
    const mine = new AbortController();
    this.running = mine;
    const kernels: KernelRun[] = [];
    const show = (status: Run["status"], problem: Problem | null) => {
      if (this.running === mine) this.store.set({ run: { of: key, kernels: kernels.slice(), status, problem } });
    };
    show("running", null);
    const req = requestOf(this.store.state);
    req.options = { ...req.options, simulate: true, artifacts: true };
    try {
      await compile(req, runEditorName, mine.signal, (frame) => {
        if (frame.frame === "kernel") kernels[frame.kernel] = { name: frame.name, simulation: null, profile: null, timeline: null, perfetto: null };
        if (frame.frame !== "simulation" && frame.frame !== "profile" && frame.frame !== "artifact") return;
        const run = kernels[frame.frame === "artifact" ? (frame.artifact.kernel ?? 0) : frame.kernel];
        if (!run) return;
        if (frame.frame === "simulation") run.simulation = frame.simulation;
        else if (frame.frame === "profile") run.profile = frame.profile;
        else if (frame.data !== undefined) decode(frame.artifact, frame.data, run);
      });
      show("done", null);
    } catch (e) {
      if (isAbort(e)) return;
      if (!(e instanceof Problem)) throw e;
      show("done", e);
    }
  }
}

/** The run of the kernel that is shown; null before there is one. */
export function shownRun(store: AppStore): KernelRun | null {
  const { run, outcome, kernelName } = store.state;
  const name = kernelOf(outcome, kernelName)?.name;
  return run?.kernels.find((k) => k.name === name) ?? run?.kernels[0] ?? null;
}
