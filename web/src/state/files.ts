// files: the Python files of the kernel: the main one, which is compiled, and those that it imports.
import type { SourceFile } from "../api/types";
import type { AppState } from "./app";
import { fileOf } from "./languages";

/** What a text is shown under; the main file's name is null, because it can change. */
export type Tab = string | null;

export const FILES_MAX = 64;
const NAME = /^([A-Za-z0-9_-][A-Za-z0-9_.-]*\/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*\.py$/;
const NAME_MAX = 200;

type Named = Pick<AppState, "filename" | "language">;
type Filed = Pick<AppState, "filename" | "language" | "source" | "files">;

export function mainName(s: Readonly<Named>): string {
  return s.filename ?? fileOf(s.language);
}

/** True if there may be more files than the main one: modules of a Python kernel, and the NKI kernels that HLO calls. */
export function hasFiles(language: string): boolean {
  return language === "nkipy" || language === "hlo";
}

/** The files that are compiled beside the main one. */
export function importable(s: Readonly<Pick<AppState, "language" | "files">>): readonly SourceFile[] {
  return hasFiles(s.language) ? s.files : [];
}

/** Every text by its name, the main file's first. */
export function textsOf(s: Readonly<Filed>): ReadonlyMap<string, string> {
  return new Map([[mainName(s), s.source], ...importable(s).map((f): [string, string] => [f.name, f.source])]);
}

export function nameOfTab(s: Readonly<Named>, tab: Tab): string {
  return tab ?? mainName(s);
}

/** The tab that shows a file; undefined if there is none. */
export function tabOf(s: Readonly<Filed>, name: string): Tab | undefined {
  if (name === mainName(s)) return null;
  return importable(s).some((f) => f.name === name) ? name : undefined;
}

export function textOfTab(s: Readonly<Filed>, tab: Tab): string {
  return tab === null ? s.source : (s.files.find((f) => f.name === tab)?.source ?? "");
}

/** The reason why a file cannot have the name; null if it can. */
export function nameFault(s: Readonly<Filed>, tab: Tab, name: string): string | null {
  if (name.length > NAME_MAX) return "The name is too long.";
  if (!NAME.test(name)) return "A name is like helper.py or pkg/util.py: letters, digits, _, - and dots.";
  const others = [...textsOf(s).keys()].filter((n) => n !== nameOfTab(s, tab));
  return others.includes(name) ? `There is a file called ${name} already.` : null;
}

/** A name that no file has: "helper.py", "helper2.py", … */
export function freeName(s: Readonly<Filed>): string {
  const names = textsOf(s);
  for (let n = 1; ; n++) {
    const name = n === 1 ? "helper.py" : `helper${n}.py`;
    if (!names.has(name)) return name;
  }
}

type FilesChange = Pick<AppState, "filename" | "files" | "tab">;

export function renamed(s: Readonly<AppState>, tab: Tab, name: string): FilesChange {
  const { filename, files } = s;
  if (tab === null) return { filename: name === fileOf(s.language) ? null : name, files, tab: s.tab };
  return { filename, files: files.map((f) => (f.name === tab ? { ...f, name } : f)), tab: s.tab === tab ? name : s.tab };
}

export function removed(s: Readonly<AppState>, tab: string): FilesChange {
  const at = s.files.findIndex((f) => f.name === tab);
  const files = s.files.filter((f) => f.name !== tab);
  return { filename: s.filename, files, tab: s.tab === tab ? (files[at - 1]?.name ?? null) : s.tab };
}

export function edited(s: Readonly<AppState>, tab: Tab, text: string): Partial<AppState> {
  if (tab === null) return { source: text };
  return { files: s.files.map((f) => (f.name === tab ? { ...f, source: text } : f)) };
}

function isFile(v: unknown): v is SourceFile {
  const f = (v ?? {}) as Record<string, unknown>;
  return typeof f["name"] === "string" && typeof f["source"] === "string" && NAME.test(f["name"]);
}

/** The files in a link; throws when they are none. */
export function readFiles(v: unknown): SourceFile[] {
  if (!Array.isArray(v) || !v.every(isFile) || v.length > FILES_MAX) throw new Error("no list of files");
  return v.map(({ name, source }) => ({ name, source }));
}

export function sameFiles(a: readonly SourceFile[], b: readonly SourceFile[]): boolean {
  return a.length === b.length && a.every((f, i) => f.name === b[i]?.name && f.source === b[i]?.source);
}
