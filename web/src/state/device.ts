// device: runs of the kernel on a Neuron host that is connected to the server, through the server's queue.
import { send } from "../api/client";
import { Problem } from "../api/problem";
import type { Run, RunRequest, Runners, RunStage } from "../api/types";
import type { AppState } from "./app";
import { requestOf } from "./compiler";

const API = "/api/v1";

export async function getRunners(signal: AbortSignal): Promise<Runners> {
  return (await (await send(`${API}/runners`, { signal })).json()) as Runners;
}

type CompilerOptions = NonNullable<RunRequest["compiler"]>;

/** The words of the field; the server says which are allowed. */
export function readCompilerOptions(text: string): CompilerOptions {
  const words = text.split(/\s+/).filter((w) => w !== "");
  const at = words.findIndex((w) => /^(--lnc|-lnc|--logical-nc-config)(=|$)/.test(w));
  const lnc = at < 0 ? [] : words.splice(at, words[at]?.includes("=") ? 1 : 2);
  const number = lnc.join("=").split("=")[1];
  const options = words.length > 0 ? { options: words } : {};
  return number === undefined ? options : { ...options, lnc: Number(number) as 1 | 2 };
}

/** Asks for a run of the shown kernel; returns its id. */
export async function askRun(state: Readonly<AppState>, what: Run["run"], compiler: CompilerOptions, signal: AbortSignal): Promise<string> {
  const { simulate: _simulate, options, ...request } = requestOf(state);
  const pipeline = options?.pipeline;
  const body = { ...request, ...(pipeline ? { options: { pipeline } } : {}), ...(state.kernelName === null ? {} : { kernel: state.kernelName }), run: what, ...(Object.keys(compiler).length > 0 ? { compiler } : {}) };
  const headers = { "content-type": "application/json", "x-nkx-request": "1" };
  const response = await send(`${API}/runs`, { method: "POST", headers, body: JSON.stringify(body), signal });
  return ((await response.json()) as { id: string }).id;
}

export function hasEnded(run: Run): boolean {
  return run.state !== "waiting" && run.state !== "running";
}

const AGAIN_MS = 1000;
const TRIES = 60;

/** Passes each new state of the run to `seen`, until it has ended.  A server that cannot be reached for a while is asked again. */
export async function followRun(id: string, seen: (run: Run) => void, signal: AbortSignal): Promise<Run> {
  let mark = "";
  for (let failures = 0; ; ) {
    try {
      const run = (await (await send(`${API}/runs/${id}?after=${encodeURIComponent(mark)}`, { signal })).json()) as Run;
      failures = 0;
      mark = run.mark;
      seen(run);
      if (hasEnded(run)) return run;
    } catch (e) {
      if (!(e instanceof Problem) || e.kind === "request" || ++failures > TRIES) throw e;
      await new Promise((done) => setTimeout(done, AGAIN_MS));
    }
  }
}

/** Nobody waits for the answer: a run that cannot be cancelled ends by itself. */
export async function cancelRun(id: string): Promise<void> {
  await send(`${API}/runs/${id}`, { method: "DELETE", headers: { "x-nkx-request": "1" } });
}

export function runFile(id: string, name: string): string {
  return `${API}/runs/${id}/files/${encodeURIComponent(name)}`;
}

/** The kernel as NKI as one more stage, with its own table of sources. */
export async function runStage(id: string, signal: AbortSignal): Promise<RunStage> {
  return (await (await send(`${API}/runs/${id}/stage`, { signal })).json()) as RunStage;
}
