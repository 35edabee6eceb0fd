// notes: threads of notes on lines of the source or of a stage.  They are a part of the view: a link holds them, a fork begins
// with them, and exported pages show them.
export interface Saying {
  by: string;
  text: string;
  /** Milliseconds since 1970. */
  at: number;
}

export interface NotePlace {
  /** The stage, by key; null: the source. */
  stage: string | null;
  /** Of a stage: the kernel's name; "" for the source. */
  kernel: string;
  /** Of the source: the file's name; "" for a stage. */
  file: string;
  first: number;
  last: number;
  /** The text of the first line when the note was written, by which the line is found again. */
  text: string;
}

export interface Thread extends NotePlace {
  sayings: readonly Saying[];
}

export const THREADS_MAX = 100;
export const SAYINGS_MAX = 50;
export const NOTE_MAX = 2000;
export const NAME_MAX = 60;
/** Of all notes of a link as JSON, in bytes: what the server keeps. */
export const NOTES_MAX = 256 << 10;
const LINE_MAX = 200;

/** What is kept of a line. */
export function lineText(text: string): string {
  return text.trim().slice(0, LINE_MAX);
}

export function bytesOfNotes(notes: readonly Thread[]): number {
  return new TextEncoder().encode(JSON.stringify(notes)).length;
}

export function sameNotes(a: readonly Thread[], b: readonly Thread[]): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

function isText(v: unknown, max: number): v is string {
  return typeof v === "string" && v.length <= max;
}

function sayingOf(v: unknown): Saying | null {
  const { by, text, at } = (v ?? {}) as Record<string, unknown>;
  return isText(by, NAME_MAX) && isText(text, NOTE_MAX) && typeof at === "number" && Number.isFinite(at) ? { by, text, at } : null;
}

function threadOf(v: unknown): Thread | null {
  const { stage, kernel, file, first, last, text, sayings } = (v ?? {}) as Record<string, unknown>;
  const isLine = (n: unknown): n is number => Number.isInteger(n) && (n as number) >= 1 && (n as number) < 1e7;
  if (!(stage === null || isText(stage, 200)) || !isText(kernel, 200) || !isText(file, 200) || !isLine(first) || !isLine(last) || last < first) return null;
  if (!isText(text, LINE_MAX) || !Array.isArray(sayings) || sayings.length === 0 || sayings.length > SAYINGS_MAX) return null;
  const read = sayings.map(sayingOf).filter((s) => s !== null);
  return read.length === sayings.length ? { stage, kernel, file, first, last, text, sayings: read } : null;
}

/** Of a link, which anyone may have written.  odd: something of it is left out. */
export function readNotes(v: unknown): { notes: Thread[]; odd: boolean } {
  if (v === undefined || v === null) return { notes: [], odd: false };
  if (!Array.isArray(v)) return { notes: [], odd: true };
  const notes = v.slice(0, THREADS_MAX).map(threadOf).filter((t) => t !== null);
  const fits = bytesOfNotes(notes) <= NOTES_MAX;
  return { notes: fits ? notes : [], odd: !fits || notes.length < v.length };
}

/** Each note by a name that says all of it, for people who write at the same time: adding and removing names merges.  Threads on
 * the same place become one. */
export function namesOfNotes(notes: readonly Thread[]): Set<string> {
  return new Set(notes.flatMap(({ stage, kernel, file, first, last, text, sayings }) => sayings.map((s) => JSON.stringify([s.at, stage, kernel, file, first, last, text, s.by, s.text]))));
}

/** The threads of such names, which anyone may have made up; what is beyond the limits is left out, the newest first. */
export function notesOfNames(names: Iterable<string>): Thread[] {
  const threads = new Map<string, Thread>();
  const parts = [...names].map(partsOfName).filter((p) => p !== null).sort((a, b) => a.saying.at - b.saying.at || (a.key < b.key ? -1 : 1));
  let bytes = 2;
  for (const { key, place, saying } of parts) {
    const old = threads.get(key);
    const sayings = old?.sayings ?? [];
    bytes += bytesOfNotes([{ ...place, sayings: [saying] }]);
    if ((!old && threads.size >= THREADS_MAX) || sayings.length >= SAYINGS_MAX || bytes > NOTES_MAX) continue;
    threads.set(key, { ...place, sayings: [...sayings, saying] });
  }
  return [...threads.values()];
}

function partsOfName(name: string): { key: string; place: NotePlace; saying: Saying } | null {
  let v: unknown;
  try {
    v = JSON.parse(name);
  } catch {
    return null;
  }
  if (!Array.isArray(v)) return null;
  const [at, stage, kernel, file, first, last, line, by, text] = v as unknown[];
  const thread = threadOf({ stage, kernel, file, first, last, text: line, sayings: [{ by, text, at }] });
  const saying = thread?.sayings[0];
  if (!thread || !saying) return null;
  const { sayings: _, ...place } = thread;
  return { key: JSON.stringify([stage, kernel, file, first, last, line]), place, saying };
}

/** The line, from 1, that a note is about in the text as it is now: where it was, or else the nearest line with the same words.
 * Null: there is none. */
export function lineOfNote(place: NotePlace, lines: readonly string[]): number | null {
  const isIt = (n: number) => lines[n - 1] !== undefined && lineText(lines[n - 1] ?? "") === place.text;
  for (let d = 0; d <= lines.length; d++) {
    if (isIt(place.first - d)) return place.first - d;
    if (isIt(place.first + d)) return place.first + d;
  }
  return null;
}

export interface NoteLink {
  text: string;
  stage: string | null;
  file: string;
  line: number | null;
}

const LINK = /\bstage:([\w.-]+(?::\d+)?)(?:@(\d+))?|\bline:(?:([\w./-]+\.py):)?(\d+)/g;

/** A note's text in parts: "stage:cse", "stage:cse:2@14", "line:3" and "line:helper.py:3" lead there. */
export function partsOfNote(text: string): (string | NoteLink)[] {
  const parts: (string | NoteLink)[] = [];
  let at = 0;
  for (const m of text.matchAll(LINK)) {
    if (m.index > at) parts.push(text.slice(at, m.index));
    const line = m[2] ?? m[4];
    parts.push({ text: m[0], stage: m[1] ?? null, file: m[3] ?? "", line: line === undefined ? null : Number(line) });
    at = m.index + m[0].length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}
