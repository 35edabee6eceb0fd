// shared: the stored link that the page was opened on, and whether the page still shows its kernel.
import type { Ancestor, PipelineChoice, Snippet, SourceFile } from "../api/types";
import type { AppState } from "./app";
import { sameFiles } from "./files";
import { readInputs } from "./inputs";
import { fileOf } from "./languages";
import { readViewJson } from "./look";
import type { Thread } from "./notes";
import { editedFrom } from "./resume";

/** A stored link without its result, which is an outcome like any other. */
export interface Shared {
  id: string;
  /** The revision that the address names; null: the newest, whichever that is. */
  revision: number | null;
  title: string;
  createdMs: number;
  expiresMs: number | null;
  isCurrent: boolean;
  ancestry: Ancestor[];
  /** Where the link can be reported; null: nowhere. */
  reportUrl: string | null;
  // what was compiled
  source: string;
  filename: string | null;
  files: readonly SourceFile[];
  language: string;
  target: string;
  inputs: AppState["inputs"];
  check: boolean;
  pipeline: PipelineChoice;
  edited: AppState["edited"];
  byHand: readonly string[];
  patterns: string;
  // what it is looked at with
  notes: readonly Thread[];
}

export function sharedOf(snippet: Snippet, revision: number | null = null): Shared {
  const { request, ancestry } = snippet;
  const language = request.language ?? "nkipy";
  return {
    id: snippet.id,
    revision,
    title: snippet.title ?? "",
    createdMs: snippet.created_ms,
    expiresMs: snippet.expires_ms,
    isCurrent: snippet.is_current,
    ancestry,
    reportUrl: snippet.report_url ?? null,
    source: request.source ?? "",
    filename: request.filename === undefined || request.filename === fileOf(language) ? null : request.filename,
    files: request.files ?? [],
    language,
    target: request.target ?? snippet.result.target,
    inputs: request.inputs ? readInputs(request.inputs) : null,
    check: request.options?.check === true,
    pipeline: request.options?.pipeline ?? "default",
    byHand: request.options?.by_hand ?? [],
    patterns: request.options?.patterns ?? "",
    notes: readViewJson(snippet.view).view.notes,
    edited: editedFrom(request.options?.resume, snippet.result.kernels[request.options?.resume?.kernel ?? 0]?.stages ?? []),
  };
}

/** Whether the page's kernel is exactly the stored one; otherwise it is a fork. */
export function isAsShared(s: Readonly<AppState>): boolean {
  const { shared } = s;
  return (
    shared !== null &&
    shared.source === s.source &&
    shared.filename === s.filename &&
    sameFiles(shared.files, s.files) &&
    shared.language === s.language &&
    shared.target === s.target &&
    shared.check === s.check &&
    shared.pipeline === s.pipeline &&
    shared.patterns === s.patterns &&
    shared.byHand.join("\n") === s.byHand.join("\n") &&
    shared.edited?.index === s.edited?.index &&
    shared.edited?.text === s.edited?.text &&
    JSON.stringify(shared.inputs) === JSON.stringify(s.inputs)
  );
}

/** The address of a link, or of what the server makes of it: "/raw" and so on. */
export function pathOf(shared: Pick<Shared, "id" | "revision">, part = ""): string {
  return `/z/${shared.id}${part}${shared.revision === null ? "" : `?revision=${shared.revision}`}`;
}

/** The revision that the address names; null: the newest. */
export function revisionIn(search: string): number | null {
  const n = Number(new URLSearchParams(search).get("revision"));
  return Number.isInteger(n) && n > 0 ? n : null;
}

/** The id in "/z/ID" and "/e/ID". */
export function idInPath(path: string): { id: string; embed: boolean } | null {
  const m = /^\/([ze])\/([^/]*)$/.exec(path);
  return m ? { id: m[2] ?? "", embed: m[1] === "e" } : null;
}
