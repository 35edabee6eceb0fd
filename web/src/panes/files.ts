// files: opens a kernel from files of the user's machine.
//
// Of several Python files the one called main.py or kernel.py, or else the first, is the main file.  A NEFF is shown in a dialog, and leaves the kernel as it is.
// A serialized HloModuleProto is no text: the page shows the HLO text that the server's first stage prints.
import { compile } from "../api/client";
import { Problem } from "../api/problem";
import type { CompileRequest, SourceFile } from "../api/types";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { FILES_MAX, nameFault } from "../state/files";
import { fileOf, languageOf } from "../state/languages";
import { isNeff } from "../state/neff";
import { editorName, scope } from "../state/scope";
import { say } from "./notices";

const FILE_MAX = 512 * 1024;

/** What a kernel that is opened does not take over from the one before it. */
const FRESH = { touched: true, filename: null, files: [], tab: null, inputs: null, instance: null, edited: null, byHand: [], patterns: "", showInputs: false, kernelName: null, anchor: null, previous: null, shared: null, parent: null, lesson: null };

function base64(bytes: Uint8Array): string {
  let binary = "";
  for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(binary);
}

function textOf(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

/** The HLO text of a serialized module. */
async function textOfProto(bytes: Uint8Array): Promise<string> {
  let text: string | null = null;
  let why = "It is no HloModuleProto.";
  const request: CompileRequest = {
    source_base64: base64(bytes),
    filename: "kernel.pb",
    language: "hlo",
    scope: scope(),
    options: { stop_after: "trace" },
  };
  await compile(request, editorName, new AbortController().signal, (frame) => {
    if (frame.frame === "stage") text ??= frame.stage.text;
    if (frame.frame === "diagnostic" && frame.diagnostic.severity === "error") why = frame.diagnostic.message;
  });
  if (text === null) throw new Problem("request", "not-a-kernel", why);
  return text;
}

function byExtension(name: string): string {
  if (/\.(hlo|pb)$/.test(name)) return "hlo";
  return /\.mlir$/.test(name) ? "mlir" : "nkipy";
}

/** Opens HLO with the Python files that define the NKI kernels that it calls. */
async function openProgram(store: AppStore, compiler: Compiler, program: File, scripts: readonly File[]): Promise<void> {
  const files: SourceFile[] = [];
  for (const f of scripts) {
    const source = f.size > FILE_MAX ? null : textOf(new Uint8Array(await f.arrayBuffer()));
    if (source === null || nameFault({ filename: null, language: "hlo", source: "", files: [] }, f.name, f.name)) say(`${f.name} is left out.`);
    else files.push({ name: f.name, source });
  }
  await openFile(store, compiler, program);
  store.set({ files: files.slice(0, FILES_MAX) });
  await compiler.now();
}

/** Several Python files become one kernel, also beside HLO; otherwise the first file is opened. */
export async function openFiles(store: AppStore, compiler: Compiler, list: readonly File[]): Promise<void> {
  const scripts = list.filter((f) => f.name.endsWith(".py"));
  const program = list.find((f) => /\.(hlo|pb)$/.test(f.name));
  if (program && scripts.length > 0) return openProgram(store, compiler, program, scripts);
  if (scripts.length < 2) {
    if (list[0]) await openFile(store, compiler, list[0]);
    return;
  }
  const main = scripts.find((f) => f.name === "main.py" || f.name === "kernel.py") ?? scripts[0];
  const files: SourceFile[] = [];
  for (const f of scripts) {
    const source = f.size > FILE_MAX ? null : textOf(new Uint8Array(await f.arrayBuffer()));
    const fault = nameFault({ filename: null, language: "nkipy", source: "", files: [] }, f.name, f.name);
    if (source === null || (fault && f !== main)) say(`${f.name} is left out. ${fault ?? "It is no text, or is too large."}`);
    else files.push({ name: f.name, source });
  }
  const [own] = files.filter((f) => f.name === main?.name);
  if (!own) return;
  const filename = own.name === fileOf("nkipy") ? null : own.name;
  const rest = files.filter((f) => f !== own).slice(0, FILES_MAX);
  store.set({ ...FRESH, source: own.source, filename, files: rest, language: "nkipy" });
  await compiler.now();
}

async function openFile(store: AppStore, compiler: Compiler, file: File): Promise<void> {
  if (isNeff(file.name, new Uint8Array(await file.slice(0, 1024).arrayBuffer()))) {
    await (await import("./neff")).openNeff(file.name, file);
    return;
  }
  if (file.name.endsWith(".md")) {
    try {
      await (await import("./lesson")).openLessonText(store, compiler, await file.text());
    } catch (e) {
      say(`${file.name} is no lesson. ${e instanceof Problem ? e.message : String(e)}`);
    }
    return;
  }
  if (file.size > FILE_MAX) {
    say(`${file.name} is larger than a kernel may be (${FILE_MAX / 1024} KiB).`);
    return;
  }
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const isBinary = file.name.endsWith(".pb") || textOf(bytes) === null;
    const source = isBinary ? await textOfProto(bytes) : (textOf(bytes) as string);
    const language = isBinary ? "hlo" : (languageOf(source) ?? byExtension(file.name));
    store.set({ ...FRESH, source, language });
    if (isBinary) say(`${file.name} is a serialized module: this is its HLO text.`);
    await compiler.now();
  } catch (e) {
    say(`${file.name} cannot be opened. ${e instanceof Problem ? e.message : String(e)}`);
  }
}
