// client: the server's routes as functions.  Every failure is a Problem; an abort stays an AbortError.
import { networkProblem, Problem, problemFrom } from "./problem";
import { readLines } from "./ndjson";
import type { CompileRequest, Example, Frame, StageDescription, Target } from "./types";

const BASE = "/api/v1";

async function request(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(BASE + path, { ...init, credentials: "same-origin" });
  } catch (e) {
    if (isAbort(e)) throw e;
    throw networkProblem();
  }
  if (!response.ok) throw await problemFrom(response);
  return response;
}

export function isAbort(e: unknown): boolean {
  return e instanceof DOMException && e.name === "AbortError";
}

/** A list that stands alone or under `key`. */
async function getList(path: string, key: string): Promise<Record<string, unknown>[]> {
  const response = await request(path, { headers: { accept: "application/json" } });
  const body: unknown = await response.json();
  const list = Array.isArray(body) ? body : (body as Record<string, unknown> | null)?.[key];
  if (!Array.isArray(list)) throw new Problem("ours", "bad-answer", `${BASE}${path} did not answer with a list.`);
  return list.map((x) => (typeof x === "string" ? { id: x } : (x as Record<string, unknown>)));
}

function text(v: unknown, fallback = ""): string {
  return typeof v === "string" ? v : fallback;
}

export async function getExamples(): Promise<Example[]> {
  return (await getList("/examples", "examples")).map((e) => {
    const id = text(e["id"]) || text(e["name"]);
    return {
      id,
      title: text(e["title"]) || text(e["name"]) || id,
      summary: text(e["summary"]) || text(e["description"]),
      source: text(e["source"]),
      language: text(e["language"], "nkipy"),
    };
  });
}

export async function getTargets(): Promise<Target[]> {
  return (await getList("/targets", "targets")).map((t) => {
    const id = text(t["id"]) || text(t["name"]);
    return { id, title: text(t["title"]) || text(t["summary"]) || text(t["description"]) };
  });
}

export async function getPipeline(): Promise<StageDescription[]> {
  return (await getList("/pipeline", "stages")) as unknown as StageDescription[];
}

/** Compiles, handing on each frame as it arrives. */
export async function compile(req: CompileRequest, signal: AbortSignal, sink: (f: Frame) => void): Promise<void> {
  const response = await request("/compile", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/x-ndjson" },
    body: JSON.stringify(req),
    signal,
  });
  if (!response.body) throw networkProblem();
  try {
    for await (const line of readLines(response.body)) sink(JSON.parse(line) as Frame);
  } catch (e) {
    if (isAbort(e)) throw e;
    if (e instanceof SyntaxError) throw new Problem("ours", "bad-frame", "The server sent something that is not JSON.");
    throw networkProblem();
  }
}
