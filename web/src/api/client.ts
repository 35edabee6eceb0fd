// client: the server's routes as functions.  Every failure is a Problem; an abort stays an AbortError.
import { networkProblem, Problem, problemFrom } from "./problem";
import { type Base, wholeFrame, type WholeFrame } from "./delta";
import { readLines } from "./ndjson";
import type { Pipelines } from "../state/outcome";
import type { AccessChanged, AccessRequest, CompileRequest, CompilerVersion, Example, Frame, Instruction, Knob, Lesson, LessonAbout, Me, NkiCall, NotesRequest, Operation, OperationText, PartingRequest, PassDescription, PipelineDescription, Result, RevisionMade, Rule, ShrinkRequest, Snippet, SnippetMade, SnippetRequest, StageDiff, Target } from "./types";

const BASE = "/api/v1";

/** path: of any of the server's routes. */
export async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, credentials: "same-origin" });
  } catch (e) {
    if (isAbort(e)) throw e;
    throw networkProblem();
  }
  if (!response.ok) throw await problemFrom(response);
  return response;
}

function request(path: string, init: RequestInit): Promise<Response> {
  return send(BASE + path, init);
}

export function isAbort(e: unknown): boolean {
  return e instanceof DOMException && e.name === "AbortError";
}

async function getList<T>(path: string, key: string): Promise<T[]> {
  const response = await request(path, { headers: { accept: "application/json" } });
  const body = (await response.json()) as Record<string, unknown> | null;
  const list = body?.[key];
  if (!Array.isArray(list)) throw new Problem("ours", "bad-answer", `${BASE}${path} did not answer with a list.`);
  return list as T[];
}

export function getExamples(): Promise<Example[]> {
  return getList("/examples", "examples");
}

export function getLessons(): Promise<LessonAbout[]> {
  return getList("/lessons", "lessons");
}

export async function getLesson(name: string): Promise<Lesson> {
  return (await (await request(`/lessons/${encodeURIComponent(name)}`, { headers: { accept: "application/json" } })).json()) as Lesson;
}

/** Reads the text of a lesson; a Problem says on which line it is none. */
export async function readLesson(text: string): Promise<Lesson> {
  const response = await request("/lessons", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ text }) });
  return (await response.json()) as Lesson;
}

export function getNkiCalls(): Promise<NkiCall[]> {
  return getList("/nki", "calls");
}

/** Today's is the first. */
export function getVersions(): Promise<CompilerVersion[]> {
  return getList("/versions", "versions");
}

export function getTargets(): Promise<Target[]> {
  return getList("/targets", "targets");
}

export async function getOperations(): Promise<{ ops: Operation[]; knobs: Knob[] }> {
  const response = await request("/ops", { headers: { accept: "application/json" } });
  return (await response.json()) as { ops: Operation[]; knobs: Knob[] };
}

export async function getRules(): Promise<Rule[]> {
  const response = await request("/rules", { headers: { accept: "application/json" } });
  return ((await response.json()) as { rules: Rule[] }).rules;
}

export async function getInstructions(): Promise<{ instructions: Instruction[]; operations: OperationText[] }> {
  const response = await request("/instructions", { headers: { accept: "application/json" } });
  return (await response.json()) as { instructions: Instruction[]; operations: OperationText[] };
}

export async function getPipelines(): Promise<{ pipelines: Pipelines; passes: PassDescription[] }> {
  const response = await request("/pipeline", { headers: { accept: "application/json" } });
  const { stages, reference_stages, nki_stages, passes } = (await response.json()) as PipelineDescription;
  return { pipelines: { hlo: stages, reference: reference_stages, nki: nki_stages }, passes };
}

/** Where the server finds the stages of a result: under its key while it is cached, or in a snippet. */
export type Holder = { key: string } | { snippet: string; revision: number };

/** What changed between two stages, by their index; `to` may be of another result under a key. */
export async function getDiff(holder: Holder, kernel: number, from: number, to: number, other: string | null = null): Promise<StageDiff> {
  const base = "key" in holder ? `/results/${holder.key}/diff?` : `/snippets/${holder.snippet}/diff?revision=${holder.revision}&`;
  const response = await request(`${base}kernel=${kernel}&from=${from}&to=${to}${other === null ? "" : `&with=${other}`}`, {});
  return (await response.json()) as StageDiff;
}

/** Requests that change something need this header, which pages of other sites cannot send. */
const OURS = { "x-nkx-request": "1" };

/** Who the user is to the server. */
export async function getMe(): Promise<Me> {
  const response = await request("/me", { headers: { accept: "application/json" } });
  return (await response.json()) as Me;
}

/** revision: from 1; null is the newest. */
export async function getSnippet(id: string, revision: number | null = null): Promise<Snippet> {
  const response = await request(`/snippets/${id}${revision === null ? "" : `?revision=${revision}`}`, { headers: { accept: "application/json" } });
  return (await response.json()) as Snippet;
}

export async function createSnippet(body: SnippetRequest): Promise<SnippetMade> {
  const headers = { ...OURS, "content-type": "application/json" };
  const response = await request("/snippets", { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as SnippetMade;
}

/** Adds a revision to a link of the user's. */
export async function reviseSnippet(id: string, token: string, body: SnippetRequest): Promise<RevisionMade> {
  const headers = { ...OURS, "content-type": "application/json", "x-nkx-edit-token": token };
  const response = await request(`/snippets/${id}`, { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as RevisionMade;
}

/** Changes who may open a link. token: null where the user is its owner by sign-in. */
export async function shareSnippet(id: string, token: string | null, body: AccessRequest): Promise<AccessChanged> {
  const headers = { ...OURS, "content-type": "application/json", ...(token !== null ? { "x-nkx-edit-token": token } : {}) };
  const response = await request(`/snippets/${id}/access`, { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as AccessChanged;
}

/** Replaces the notes on a revision of a link of the user's; null: the newest. */
export async function noteSnippet(id: string, token: string, revision: number | null, notes: Readonly<NotesRequest["notes"]>): Promise<void> {
  const headers = { ...OURS, "content-type": "application/json", "x-nkx-edit-token": token };
  await request(`/snippets/${id}/notes${revision === null ? "" : `?revision=${revision}`}`, { method: "POST", headers, body: JSON.stringify({ notes }) });
}

export async function deleteSnippet(id: string, token: string): Promise<void> {
  await request(`/snippets/${id}`, { method: "DELETE", headers: { ...OURS, "x-nkx-edit-token": token } });
}

/** Compiles, and waits for the whole result. */
export async function compileWhole(req: CompileRequest, signal?: AbortSignal): Promise<Result> {
  const headers = { "content-type": "application/json", accept: "application/json" };
  const response = await request("/compile", { method: "POST", headers, body: JSON.stringify(req), ...(signal ? { signal } : {}) });
  return (await response.json()) as Result;
}

/** What a NEFF holds, as a result without kernels. */
export async function describeNeff(file: Blob, signal: AbortSignal): Promise<Result> {
  const headers = { "content-type": "application/octet-stream", accept: "application/json" };
  return (await (await request("/neff", { method: "POST", headers, body: file, signal })).json()) as Result;
}

/** Compiles and passes each frame to `sink` as it arrives; the server ends an older compile of the same editor.  With a
 * base, the server may send stages as their difference from that.  True if the server had the result already. */
export async function compile(
  req: CompileRequest,
  editor: string,
  signal: AbortSignal,
  sink: (f: WholeFrame) => void,
  base: Base | null = null,
): Promise<boolean> {
  const headers = { "content-type": "application/json", accept: "application/x-ndjson", "x-nkx-editor": editor };
  const response = await request("/compile", {
    method: "POST",
    headers: base ? { ...headers, "x-nkx-have": base.run } : headers,
    body: JSON.stringify(req),
    signal,
  });
  await eachFrame(response, (f) => sink(wholeFrame(f, base)));
  return response.headers.get("x-nkx-cached") === "1";
}

async function eachFrame(response: Response, sink: (f: Frame) => void): Promise<void> {
  if (!response.body) throw networkProblem();
  try {
    for await (const line of readLines(response.body)) sink(JSON.parse(line) as Frame);
  } catch (e) {
    if (isAbort(e) || e instanceof Problem) throw e;
    if (e instanceof SyntaxError) throw new Problem("ours", "bad-frame", "The server sent something that is not JSON.");
    throw networkProblem();
  }
}

/** Has the server search, and passes each frame to `sink` as it arrives.  An abort cancels the search. */
export async function searchFor(path: "/shrink" | "/parting", body: ShrinkRequest | PartingRequest, signal: AbortSignal, sink: (f: Frame) => void): Promise<void> {
  const headers = { "content-type": "application/json", accept: "application/x-ndjson" };
  await eachFrame(await request(path, { method: "POST", headers, body: JSON.stringify(body), signal }), sink);
}
