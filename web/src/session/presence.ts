// presence: what a page of the session looks at: as the others are told, as a follower takes it over, and as marks in the texts.
//
// Another's program may have made a presence up: each member is checked where it is used.
import { EditorView } from "@codemirror/view";
import type { SessionState } from "../api/types";
import type { SessionPlace } from "../panes/share";
import { look, lookAtSelection } from "../panes/shared";
import { readViewJson, viewOf, viewToJson } from "../state/look";
import type { Document } from "./document";
import { type Peer, showPeers } from "./peers";

const PRESENCE_MAX = 4000;

/** The line that the leader points at. */
export interface Point {
  pane: "source" | "ir";
  stage: string | null;
  tab: string | null;
  line: number;
}

/** What others are told of a page. */
export interface Presence {
  tab: string | null;
  anchor: unknown;
  head: unknown;
  /** The stage's text that is shown, and the line at the caret. */
  stage: string | null;
  line: number;
  following: boolean;
  recording: boolean;
  /** Of the leader: what followers see. */
  view?: object;
  top?: { source: number; ir: number };
  room?: { hidden: string[]; maximised: string | null };
  inspect?: string | null;
  point?: Point | null;
}

export type Presences = ReadonlyMap<number, Partial<Presence>>;

export function isObject(v: unknown): v is Record<string, unknown> {
  return typeof v === "object" && v !== null;
}

/** The number of a line, or 1. */
const lineIn = (v: unknown) => (typeof v === "number" && Number.isInteger(v) && v > 0 ? v : 1);

export function shownStage({ ir }: SessionPlace): string | null {
  const { shown } = ir.text;
  return shown ? shown.row.key : null;
}

/** The line of the stage's text that the user is at. */
export function irLine({ ir }: SessionPlace): number {
  return ir.text.lookedAt()?.line ?? ir.text.viewer.caretLine();
}

/** What the others are told; of the leader also what followers see. */
export function presenceOf(place: SessionPlace, document: Document, is: { leader: boolean; following: boolean; point: Point | null }): Presence {
  const { store, source, ir, views } = place;
  const { tab } = store.state;
  const { main } = source.editor.view.state.selection;
  const { viewer } = ir.text;
  const presence: Presence = {
    tab,
    anchor: document.placeOf(tab, main.anchor),
    head: document.placeOf(tab, main.head),
    stage: shownStage(place),
    line: viewer.view.hasFocus || store.state.anchor ? irLine(place) : 0,
    following: is.following,
    recording: store.state.isRecording,
  };
  if (!is.leader) return presence;
  // notes are a part of the document; recordings are each page's own
  presence.view = viewToJson({ ...viewOf(store.state, {}), notes: [], recording: null, splits: null });
  presence.top = { source: topLine(source.editor.view), ir: viewer.shown ? viewer.visibleLines().first : 1 };
  presence.point = is.point;
  presence.inspect = store.state.inspect;
  if (views.room) presence.room = views.room.arrangement;
  if (JSON.stringify(presence).length > PRESENCE_MAX) delete presence.view; // a filter of thousands of characters
  return presence;
}

/** A follower's page shows what the leader's shows, except where they have scrolled to: see scrollAlong. */
export function lookAlong(place: SessionPlace, theirs: Partial<Presence>): void {
  const { store, views } = place;
  const { view } = readViewJson(theirs.view);
  const { splits, notes, recording } = store.state;
  look(store, { ...view, splits, notes, recording });
  lookAtSelection(store, view);
  if (view.selection === null && store.state.anchor) store.set({ anchor: null });
  const { room } = theirs;
  if (views.room && isObject(room) && Array.isArray(room.hidden)) {
    const hidden = (["source", "stages", "ir"] as const).filter((p) => room.hidden.includes(p));
    const maximised = (["source", "stages", "ir"] as const).find((p) => p === room.maximised) ?? null;
    const now = views.room.arrangement;
    if (JSON.stringify(now) !== JSON.stringify({ hidden, maximised })) views.room.arrangement = { hidden, maximised };
  }
  if (theirs.inspect === "values" || theirs.inspect === "tiles" || theirs.inspect === null) store.set({ inspect: theirs.inspect });
}

/** Once what lookAlong has set is shown. */
export function scrollAlong({ source, ir }: SessionPlace, theirs: Partial<Presence>): void {
  const { top } = theirs;
  if (!isObject(top)) return;
  scrollTo(source.editor.view, lineIn(top["source"]));
  const { viewer } = ir.text;
  if (viewer.shown) scrollTo(viewer.view, viewer.rowOf(lineIn(top["ir"])));
}

/** Marks the others' carets, selections and lines, and the line that is pointed at. */
export function drawPresences(place: SessionPlace, document: Document, session: SessionState, you: number, presences: Presences, point: unknown): void {
  const { source, ir, store } = place;
  const { tab } = store.state;
  const stage = shownStage(place);
  const { viewer } = ir.text;
  const lineStart = (view: EditorView, line: number) => view.state.doc.line(Math.max(1, Math.min(line, view.state.doc.lines))).from;
  const inSource: Peer[] = [];
  const inIr: Peer[] = [];
  for (const { person, name, here } of session.people) {
    const p = presences.get(person);
    if (person === you || !p) continue;
    const head = (p.tab ?? null) === tab ? document.find(tab, p.head) : null;
    const anchor = head === null ? null : (document.find(tab, p.anchor) ?? head);
    if (head !== null && anchor !== null) inSource.push({ person, name, here, from: anchor, to: head, head });
    if (p.following === true && person !== session.leader) continue; // their place in the stage is the leader's
    if (stage !== null && p.stage === stage && typeof p.line === "number" && p.line > 0) {
      const at = lineStart(viewer.view, viewer.rowOf(p.line));
      inIr.push({ person, name, here, from: at, to: at, head: null });
    }
  }
  const leader = session.people.find((p) => p.person === session.leader);
  const pointed = isObject(point) && leader ? { line: lineIn(point["line"]), pane: point["pane"], says: `${leader.person === you ? "you point" : `${leader.name} points`} here`, person: leader.person } : null;
  const mark = (view: EditorView, line: number) => pointed && { at: lineStart(view, line), says: pointed.says, person: pointed.person };
  const isHere = (pane: string) => isObject(point) && pointed?.pane === pane && (pane === "ir" ? point["stage"] === stage : (point["tab"] ?? null) === tab);
  showPeers(source.editor.view, { peers: inSource, pointed: pointed && isHere("source") ? mark(source.editor.view, pointed.line) : null });
  showPeers(viewer.view, { peers: inIr, pointed: pointed && isHere("ir") ? mark(viewer.view, viewer.rowOf(pointed.line)) : null });
}

function topLine(view: EditorView): number {
  return view.state.doc.lineAt(view.lineBlockAtHeight(view.scrollDOM.scrollTop).from).number;
}

function scrollTo(view: EditorView, line: number): void {
  if (Math.abs(topLine(view) - line) < 1) return;
  const { doc } = view.state;
  view.dispatch({ effects: EditorView.scrollIntoView(doc.line(Math.max(1, Math.min(line, doc.lines))).from, { y: "start" }) });
}
