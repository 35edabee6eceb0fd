// fragment: what is seen, in the part of the address that never leaves the browser.
//
//   #stage=cse:2&kernel=main&target=trn2&sel=10:9-10:24&code=<base64url of zlib-compressed UTF-8>
//
// The readable parts come first.  Compression is the browser's own ("deflate" is the zlib format).
import type { InputSpec } from "../api/types";

export interface LinkState {
  source: string;
  language: string;
  target: string;
  kernelName: string | null;
  stageKey: string | null;
  /** "L:C-L:C" of a range, or "stage.op" of an operation. */
  selection: string | null;
  inputs: InputSpec[] | null;
  check: boolean;
  filter: string;
  hideUnchanged: boolean;
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

export async function writeFragment(link: LinkState): Promise<string> {
  const parts: [string, string][] = [];
  if (link.stageKey !== null) parts.push(["stage", link.stageKey]);
  if (link.kernelName !== null) parts.push(["kernel", link.kernelName]);
  parts.push(["target", link.target]);
  if (link.language !== "nkipy") parts.push(["lang", link.language]);
  if (link.selection !== null) parts.push(["sel", link.selection]);
  if (link.check) parts.push(["check", "1"]);
  if (link.hideUnchanged) parts.push(["hide", "unchanged"]);
  if (link.filter !== "") parts.push(["q", link.filter]);
  if (link.inputs) parts.push(["in", JSON.stringify(link.inputs)]);
  parts.push(["code", await pack(link.source)]);
  // ":" and "," are legal in a fragment and stay readable
  const quote = (s: string) => encodeURIComponent(s).replaceAll("%3A", ":").replaceAll("%2C", ",");
  return "#" + parts.map(([k, v]) => `${k}=${quote(v)}`).join("&");
}

function readInputs(text: string | null): InputSpec[] | null {
  if (text === null) return null;
  const list: unknown = JSON.parse(text);
  if (!Array.isArray(list)) throw new SyntaxError("inputs are no list");
  return list.map((x: unknown) => {
    const { name, shape, dtype } = x as Record<string, unknown>;
    if (!Array.isArray(shape) || typeof dtype !== "string") throw new SyntaxError("an input without shape or dtype");
    const spec: InputSpec = { shape: shape.map(Number), dtype };
    if (typeof name === "string") spec.name = name;
    return spec;
  });
}

/** Null when the fragment holds no kernel; throws when it is damaged. */
export async function readFragment(hash: string): Promise<LinkState | null> {
  const params = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B"));
  const code = params.get("code");
  if (code === null) return null;
  return {
    source: await unpack(code),
    language: params.get("lang") ?? "nkipy",
    target: params.get("target") ?? "trn2",
    kernelName: params.get("kernel"),
    stageKey: params.get("stage"),
    selection: params.get("sel"),
    inputs: readInputs(params.get("in")),
    check: params.get("check") === "1",
    filter: params.get("q") ?? "",
    hideUnchanged: params.get("hide") === "unchanged",
  };
}
