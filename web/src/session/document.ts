// document: the kernel as a document of Yjs: a text for each file, a map of how it is compiled, and the notes on it, a set.
//
// The page's state and the document follow each other.  The open file's editor is bound to its text by itself; the other texts, and
// changes that the page makes (an example, a renamed file), go through the state.
import { type Extension, Prec } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import { ySync, ySyncFacet, YSyncConfig } from "y-codemirror.next";
import * as Y from "yjs";
import type { SourceFile } from "../api/types";
import type { AppState, AppStore } from "../state/app";
import { namesOfNotes, notesOfNames, type Thread } from "../state/notes";

/** The name of the main file's text: no file has it. */
const MAIN = "";
const KEYS = ["filename", "language", "target", "inputs", "check", "pipeline", "simulate", "byHand", "patterns"] as const;
type Key = (typeof KEYS)[number];

/** Marks transactions that came from the server. */
export const REMOTE = "remote";
const FROM_STATE = "state";

const IS: Record<Key, (v: unknown) => boolean> = {
  filename: (v) => v === null || typeof v === "string",
  language: (v) => typeof v === "string",
  target: (v) => typeof v === "string",
  inputs: (v) => v === null || Array.isArray(v),
  check: (v) => typeof v === "boolean",
  pipeline: (v) => v === "default" || v === "reference",
  simulate: (v) => typeof v === "boolean",
  byHand: (v) => Array.isArray(v) && v.every((x) => typeof x === "string"),
  patterns: (v) => typeof v === "string",
};

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** Changes a text into another by its middle part, so that others' carets outside of it stay. */
function writeText(text: Y.Text, now: string): void {
  const old = text.toString();
  if (old === now) return;
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail++;
  text.delete(head, old.length - head - tail);
  text.insert(head, now.slice(head, now.length - tail));
}

export class Document {
  readonly doc = new Y.Doc();
  private readonly files = this.doc.getMap<Y.Text>("files");
  private readonly kernel = this.doc.getMap<unknown>("kernel");
  /** By name (notes.ts): a note is written or deleted, never changed. */
  private readonly notes = this.doc.getMap<boolean>("notes");
  private readonly undos = new Map<string, Y.UndoManager>();

  textOf(tab: string | null): Y.Text | null {
    return this.files.get(tab ?? MAIN) ?? null;
  }

  /** What the page shows becomes the document, as far as it differs. */
  fromState(s: Readonly<AppState>): void {
    this.doc.transact(() => {
      this.write(MAIN, s.source);
      const names = new Set(s.files.map((f) => f.name));
      for (const f of s.files) this.write(f.name, f.source);
      for (const name of [...this.files.keys()]) if (name !== MAIN && !names.has(name)) this.files.delete(name);
      if (!same(this.kernel.get("order"), [...names])) this.kernel.set("order", [...names]);
      for (const key of KEYS) if (!same(this.kernel.get(key), s[key])) this.kernel.set(key, s[key]);
      const notes = namesOfNotes(s.notes);
      for (const name of notes) if (!this.notes.has(name)) this.notes.set(name, true);
      for (const name of [...this.notes.keys()]) if (!notes.has(name)) this.notes.delete(name);
    }, FROM_STATE);
  }

  private write(name: string, now: string): void {
    let text = this.files.get(name);
    if (!text) {
      text = new Y.Text();
      this.files.set(name, text);
    }
    writeText(text, now.replaceAll("\r\n", "\n"));
  }

  /** The document as the page's state.  Anyone may have written it: what has a wrong form is left out. */
  toState(): Partial<AppState> {
    const patch: Partial<AppState> = {};
    const main = this.files.get(MAIN);
    if (!(main instanceof Y.Text)) return patch;
    patch.source = main.toString();
    const order = this.kernel.get("order");
    const wanted = Array.isArray(order) ? order.filter((n): n is string => typeof n === "string") : [];
    const names = [...new Set([...wanted, ...[...this.files.keys()].sort()])].filter((n) => n !== MAIN && this.files.get(n) instanceof Y.Text);
    patch.files = names.map((name): SourceFile => ({ name, source: this.files.get(name)?.toString() ?? "" }));
    for (const key of KEYS) {
      const value = this.kernel.get(key);
      if (value !== undefined && IS[key](value)) (patch as Record<string, unknown>)[key] = value;
    }
    patch.notes = this.threads();
    return patch;
  }

  threads(): Thread[] {
    return notesOfNames(this.notes.keys());
  }

  /** Shows it on the page; true if something was different. */
  show(store: AppStore): boolean {
    const patch = this.toState();
    for (const key of Object.keys(patch) as (keyof AppState)[]) if (same(patch[key], store.state[key])) delete patch[key];
    store.set(patch);
    return Object.keys(patch).length > 0;
  }

  /** Binds an editor to the text of a file.  Undo takes back one's own changes only. */
  bind(tab: string | null): Extension {
    const text = this.textOf(tab);
    if (!text) return [];
    const config = new YSyncConfig(text, null);
    const undo = new Y.UndoManager(text, { trackedOrigins: new Set([config]) });
    this.undos.get(tab ?? MAIN)?.destroy();
    this.undos.set(tab ?? MAIN, undo);
    const back = () => (undo.undo(), true);
    const again = () => (undo.redo(), true);
    return [
      ySyncFacet.of(config),
      ySync,
      Prec.highest(keymap.of([{ key: "Mod-z", run: back, preventDefault: true }, { key: "Mod-y", mac: "Mod-Shift-z", run: again, preventDefault: true }, { key: "Mod-Shift-z", run: again, preventDefault: true }])),
    ];
  }

  /** A place in a file that stays where it is while others write before it. */
  placeOf(tab: string | null, at: number): unknown {
    const text = this.textOf(tab);
    return text && Y.relativePositionToJSON(Y.createRelativePositionFromTypeIndex(text, at));
  }

  /** Where such a place is now; null if it is not in this file. */
  find(tab: string | null, place: unknown): number | null {
    const text = this.textOf(tab);
    if (!text || typeof place !== "object" || place === null) return null;
    try {
      const found = Y.createAbsolutePositionFromRelativePosition(Y.createRelativePositionFromJSON(place), this.doc);
      return found && found.type === text ? found.index : null;
    } catch {
      return null; // another's program has made it up
    }
  }

  end(): void {
    for (const undo of this.undos.values()) undo.destroy();
    this.doc.destroy();
  }
}

export const mergeUpdates = Y.mergeUpdates;
export const applyUpdate = (doc: Y.Doc, bytes: Uint8Array) => Y.applyUpdate(doc, bytes, REMOTE);
export const wholeOf = (doc: Y.Doc) => Y.encodeStateAsUpdate(doc);
