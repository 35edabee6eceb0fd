// fragment: the page's state in the part of the address that browsers do not send.
//
//   #stage=cse:2&kernel=main&target=trn2&sel=10:9-10:24&code=<base64url of zlib-compressed UTF-8>
//   …&file=main.py&files=<the same of [{"name","source"}…]>&code=…     a kernel of several files
//
// The readable parts come first.  The browser compresses ("deflate" is the zlib format).  After a stored link there are only
// the parts of the view.
import type { InputSpec, PipelineChoice, SourceFile } from "../api/types";
import { byHandOf } from "./byhand";
import { TODAY } from "./compilers";
import { readFiles } from "./files";
import { readInputs } from "./inputs";
import { NO_VIEW, type View } from "./look";
import { readNotes, type Thread } from "./notes";

export interface LinkState {
  source: string;
  filename: string | null;
  files: readonly SourceFile[];
  language: string;
  target: string;
  inputs: InputSpec[] | null;
  check: boolean;
  pipeline: PipelineChoice;
  version: string;
  byHand: readonly string[];
  patterns: string;
  /** The snippet it is a fork of. */
  parent: string | null;
  simulate: boolean;
  /** Result A of a comparison, packed. */
  pin: string | null;
  view: View;
}

/** Longer addresses are cut by some chat and mail programs. */
export const LONG_URL = 2000;

async function pump(data: Uint8Array<ArrayBuffer>, through: CompressionStream | DecompressionStream) {
  const stream = new Blob([data]).stream().pipeThrough(through);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function toBase64Url(bytes: Uint8Array): string {
  let binary = "";
  for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (c) => c.charCodeAt(0));
}

export async function pack(text: string): Promise<string> {
  return toBase64Url(await pump(new TextEncoder().encode(text), new CompressionStream("deflate")));
}

export async function unpack(packed: string): Promise<string> {
  const bytes = await pump(fromBase64Url(packed), new DecompressionStream("deflate"));
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

type Part = [string, string];

function viewParts(view: View): Part[] {
  const parts: Part[] = [];
  if (view.stageKey !== null) parts.push(["stage", view.stageKey]);
  if (view.kernelName !== null) parts.push(["kernel", view.kernelName]);
  if (view.beside !== null) parts.push(["beside", view.beside]);
  if (view.step !== null) parts.push(["step", String(view.step + 1)]);
  if (view.picture) parts.push(["picture", "1"]);
  if (view.diffFrom !== null) parts.push(["diff", view.diffFrom]);
  if (view.unified) parts.push(["unified", "1"]);
  if (view.selection !== null) parts.push(["sel", view.selection]);
  if (view.marked !== null) parts.push(["line", view.marked]);
  if (view.hideUnchanged) parts.push(["hide", "unchanged"]);
  if (view.filter !== "") parts.push(["q", view.filter]);
  if (view.tab !== null) parts.push(["tab", view.tab]);
  if (view.mode !== "read") parts.push(["view", view.mode]);
  if (view.comparedKey !== null) parts.push(["compare", view.comparedKey]);
  return parts;
}

function join(parts: Part[]): string {
  // ":" and "," are legal in a fragment and remain readable
  const quote = (s: string) => encodeURIComponent(s).replaceAll("%3A", ":").replaceAll("%2C", ",");
  return parts.length > 0 ? "#" + parts.map(([k, v]) => `${k}=${quote(v)}`).join("&") : "";
}

/** Without the notes, which the stored link has. */
export function writeView(view: View): string {
  return join(viewParts(view));
}

/** For a stored link with other notes than it has. */
export async function writeViewWithNotes(view: View): Promise<string> {
  return join([...viewParts(view), ["notes", await pack(JSON.stringify(view.notes))]]);
}

/** The notes in an address; null: it has none, or a damaged list. */
export async function notesInHash(hash: string): Promise<readonly Thread[] | null> {
  const packed = paramsOf(hash).get("notes");
  try {
    return packed === null ? null : readNotes(JSON.parse(await unpack(packed))).notes;
  } catch {
    return null;
  }
}

export async function writeFragment(link: LinkState): Promise<string> {
  const parts: Part[] = [...viewParts(link.view), ["target", link.target]];
  if (link.language !== "nkipy") parts.push(["lang", link.language]);
  if (link.check) parts.push(["check", "1"]);
  if (link.pipeline !== "default") parts.push(["pipeline", link.pipeline]);
  if (link.version !== TODAY) parts.push(["version", link.version]);
  if (link.byHand.length > 0) parts.push(["hand", link.byHand.join("; ")]);
  if (link.patterns !== "") parts.push(["find", await pack(link.patterns)]);
  if (link.simulate) parts.push(["run", "1"]);
  if (link.pin !== null) parts.push(["pin", link.pin]);
  if (link.parent !== null) parts.push(["from", link.parent]);
  if (link.view.notes.length > 0) parts.push(["notes", await pack(JSON.stringify(link.view.notes))]);
  if (link.inputs) parts.push(["in", JSON.stringify(link.inputs)]);
  if (link.filename !== null) parts.push(["file", link.filename]);
  if (link.files.length > 0) parts.push(["files", await pack(JSON.stringify(link.files))]);
  parts.push(["code", await pack(link.source)]);
  return join(parts);
}

function paramsOf(hash: string): URLSearchParams {
  return new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
}

/** Of a link or a stored pin; any other value is the default. */
export function pipelineOf(value: unknown): PipelineChoice {
  return value === "reference" ? value : "default";
}

function modeOf(text: string | null): View["mode"] {
  return text === "compare" || text === "run" ? text : "read";
}

/** Links count steps from 1. */
function stepOf(text: string | null): number | null {
  return text !== null && /^[1-9]\d{0,8}$/.test(text) ? Number(text) - 1 : null;
}

function viewOf(params: URLSearchParams): View {
  return {
    ...NO_VIEW,
    kernelName: params.get("kernel"),
    stageKey: params.get("stage"),
    beside: params.get("beside"),
    step: stepOf(params.get("step")),
    picture: params.get("picture") === "1",
    diffFrom: params.get("diff"),
    unified: params.get("unified") === "1",
    selection: params.get("sel"),
    marked: params.get("line"),
    filter: params.get("q") ?? "",
    hideUnchanged: params.get("hide") === "unchanged",
    tab: params.get("tab"),
    mode: modeOf(params.get("view")),
    comparedKey: params.get("compare"),
  };
}

/** The view after a stored link; null if there is none: the page shows the stored view. */
export function readView(hash: string): View | null {
  const params = paramsOf(hash);
  return ["stage", "kernel", "beside", "step", "picture", "diff", "sel", "line", "q", "hide", "unified", "tab"].some((k) => params.has(k)) ? viewOf(params) : null;
}

/** Null when the fragment has no kernel; throws when it is damaged. */
export async function readFragment(hash: string): Promise<LinkState | null> {
  const params = paramsOf(hash);
  const code = params.get("code");
  if (code === null) return null;
  const inputs = params.get("in");
  const parent = params.get("from");
  const files = params.get("files");
  const patterns = params.get("find");
  return {
    source: await unpack(code),
    filename: params.get("file"),
    files: files === null ? [] : readFiles(JSON.parse(await unpack(files))),
    language: params.get("lang") ?? "nkipy",
    target: params.get("target") ?? "trn2",
    inputs: inputs === null ? null : readInputs(JSON.parse(inputs)),
    check: params.get("check") === "1",
    pipeline: pipelineOf(params.get("pipeline")),
    version: params.get("version") ?? TODAY,
    patterns: patterns === null ? "" : await unpack(patterns),
    byHand: byHandOf((params.get("hand") ?? "").split("; ").filter((c) => c !== "")),
    simulate: params.get("run") === "1",
    pin: params.get("pin"),
    parent: parent !== null && /^[\w-]{8,22}$/.test(parent) ? parent : null,
    view: { ...viewOf(params), notes: (await notesInHash(hash)) ?? [] },
  };
}
