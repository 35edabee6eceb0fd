// live: the page of one participant.
//
// The kernel is a document that all of them edit (document.ts).  What each of them looks at is their presence.  Who follows takes over
// the view of the leader whenever that changes, until they move on their own.  Each page compiles what it shows; all of them ask in
// the session's name, so that the server compiles a change once and the others get the same frames.
import { Compartment, EditorState } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import type { Problem } from "../api/problem";
import type { CompileRequest, SessionState } from "../api/types";
import { announce, say } from "../panes/notices";
import type { SessionPlace } from "../panes/share";
import { viewOf, viewToJson } from "../state/look";
import type { AppStore } from "../state/app";
import { noteDoer } from "../state/doers";
import { sameNotes } from "../state/notes";
import { shareScope } from "../state/scope";
import type { Ticket } from "../state/session";
import { Store } from "../state/store";
import { applyUpdate, Document, mergeUpdates, REMOTE, wholeOf } from "./document";
import { showPeers } from "./peers";
import { drawPresences, irLine, isObject, lookAlong, type Point, type Presence, type Presences, presenceOf, scrollAlong, shownStage } from "./presence";
import { toBase64, Wire } from "./wire";

/** How often the leader's page replaces the snapshot while the kernel changes. */
const COMPACT_MS = 8000;
/** What changes so soon after a key or a click changes because of it. */
const PRESSED_MS = 1000;

/** A request that says nothing of who sends it. */
export function plain(request: CompileRequest): CompileRequest {
  const { scope: _, ...rest } = request;
  return rest;
}

export interface LiveState {
  session: SessionState | null;
  isOnline: boolean;
  /** Everything that was there has come. */
  isReady: boolean;
  isFollowing: boolean;
  isPointing: boolean;
  presences: Presences;
  /** Why it is over; null: it is not. */
  over: { text: string; snippet: string | null } | null;
}

export class Live {
  readonly state = new Store<LiveState>({ session: null, isOnline: false, isReady: false, isFollowing: true, isPointing: false, presences: new Map(), over: null });
  private readonly lock = new Compartment();
  /** The page's state; watched no longer than the session. */
  readonly page: AppStore;
  private readonly wire: Wire;
  private isEnded = false;
  private isShowing = false;
  /** When the user did something last. */
  private pressedAt = -Infinity;
  private target = 0;
  private changed = false;
  /** Whose update is being applied. */
  private applied: number | null = null;
  private point: Point | null = null;
  /** The leader's presence that the page shows. */
  private followed: Partial<Presence> | null = null;
  /** Presences that have come in this turn of the event loop. */
  private readonly arrived = new Map<number, Partial<Presence>>();
  private timers: number[] = [];
  private readonly undo: (() => void)[] = [];

  constructor(
    readonly place: SessionPlace,
    readonly id: string,
    readonly ticket: Ticket,
    private document: Document,
  ) {
    const { store, end } = place.store.branch();
    this.undo.push(end);
    this.page = store;
    shareScope(`session-${id}`);
    store.set({ session: id, shared: null, lesson: null });
    this.listen(document);
    this.wire = new Wire(
      id,
      ticket,
      {
        state: (s) => this.takeState(s),
        update: (bytes, person) => {
          this.applied = person;
          applyUpdate(this.document.doc, bytes);
          this.applied = null;
          this.changed = true;
          this.ready();
        },
        presence: (person, presence) => this.takePresence(person, presence),
        online: (isOnline) => this.takeOnline(isOnline),
        refused: (problem) => this.refused(problem),
        lost: (problem) => this.over(problem.message, null),
      },
      mergeUpdates,
    );
    store.watch(["source", "files", "filename", "language", "target", "inputs", "check", "pipeline", "simulate", "byHand", "patterns", "notes"], () => this.fromPage());
    store.watch(["stageKey", "kernelName", "beside", "step", "picture", "diffFrom", "unified", "anchor", "filter", "hideUnchanged", "tab", "wrap", "pane", "mode", "comparedKey", "outcome", "inspect", "isRecording"], () => this.tell());
    store.watch(["outcome", "tab", "stageKey", "kernelName"], () => this.drawPeers());
    store.watch(["stageKey", "kernelName", "beside", "step", "picture", "diffFrom", "unified", "anchor", "filter", "hideUnchanged", "tab", "pane", "mode", "comparedKey", "inspect"], () => this.noteLook());
    store.watch(["compiling"], () => this.lookAgain());
    this.state.watch(["presences", "session"], () => {
      this.drawPeers();
      if (this.leaderPresence() !== this.followed) this.follow();
    });
    this.hear();
    this.timers.push(window.setInterval(() => void this.compact(), COMPACT_MS));
  }

  get you(): number {
    return this.ticket.person;
  }
  nameOf(person: number): string {
    return this.state.state.session?.people.find((p) => p.person === person)?.name ?? "somebody";
  }
  get leads(): boolean {
    return this.state.state.session?.leader === this.you;
  }
  get mayEdit(): boolean {
    const { session } = this.state.state;
    return session !== null && !session.ended && (!session.read_only || this.leads);
  }

  // ---- the kernel

  private listen(document: Document): void {
    document.doc.on("update", (update: Uint8Array, origin: unknown) => {
      if (origin === REMOTE || this.document !== document) return;
      noteDoer(this.nameOf(this.you));
      this.wire.send(update);
    });
    document.doc.on("afterTransaction", (tr: { origin: unknown; changed: ReadonlyMap<unknown, unknown> }) => {
      if (tr.origin !== REMOTE || this.document !== document || !this.state.state.isReady) return;
      if (this.applied !== null && tr.changed.size > 0) noteDoer(this.nameOf(this.applied));
      if (document.show(this.place.store)) this.place.compiler.soon();
    });
  }

  /** Once all updates that there were have come: shows the kernel, and binds the editor to it. */
  private ready(): void {
    const { session, isReady } = this.state.state;
    if (isReady || !session || (this.wire.last ?? -1) < session.seq || !this.document.textOf(null)) return;
    this.state.set({ isReady: true });
    this.bind();
    void this.place.compiler.now();
  }

  private bind(): void {
    const { store, source } = this.place;
    this.document.show(store);
    source.editor.show(store.state.tab, (store.state.tab === null ? store.state.source : store.state.files.find((f) => f.name === store.state.tab)?.source) ?? "", store.state.language);
    source.editor.add((tab) => [this.document.bind(tab), this.lock.of(EditorState.readOnly.of(!this.mayEdit))], store.state.language);
  }

  /** The page has changed the kernel, by an example, a renamed file, a setting. */
  private fromPage(): void {
    if (this.isEnded || !this.state.state.isReady) return;
    const { store } = this.place;
    if (!this.mayEdit) {
      if (this.document.show(store)) say("Only the leader may change the kernel and its notes.");
      return;
    }
    this.document.fromState(store.state);
    const notes = this.document.threads(); // those on one place are one thread
    if (!sameNotes(notes, store.state.notes)) store.set({ notes });
  }

  /** The server did not take a change: what it has counts. */
  private refused(problem: Problem): void {
    if (problem.code === "session-ended") return;
    say(problem.code === "session-read-only" ? "The leader has made the session read-only: your last change was not taken." : `Your last change was not taken: ${problem.message}`);
    const old = this.document;
    this.document = new Document();
    this.listen(this.document);
    this.state.set({ isReady: false });
    this.wire.again();
    this.place.source.editor.add(() => EditorState.readOnly.of(true), this.place.store.state.language);
    old.end();
  }

  /** Whether this page keeps the snapshot: the leader's, and while the leader is away that of the first person who is here. */
  private get keeps(): boolean {
    const { session } = this.state.state;
    if (!session || this.leads) return this.leads;
    const here = session.people.filter((p) => p.here);
    const isAway = !here.some((p) => p.person === session.leader);
    return isAway && !session.read_only && Math.min(...here.map((p) => p.person)) === this.you;
  }

  /** One page makes a snapshot of all updates.  With it goes the kernel, which is what a session becomes that nobody ends. */
  private async compact(isLast = false): Promise<void> {
    const { isOnline, isReady } = this.state.state;
    if (!this.keeps || !this.changed || !isOnline || !isReady || this.wire.last === null) return;
    this.changed = false;
    const { store, compiler } = this.place;
    try {
      await this.wire.compact({ seq: this.wire.last, data: toBase64(wholeOf(this.document.doc)), request: plain(compiler.request()), view: viewToJson({ ...viewOf(store.state, {}), recording: null }) }, isLast);
    } catch {
      this.changed = true; // tried again
    }
  }

  // ---- who is here

  private takeState(session: SessionState): void {
    const before = this.state.state.session;
    const presences = new Map([...this.state.state.presences].filter(([n]) => session.people.some((p) => p.person === n && p.here)));
    this.state.set({ session, presences });
    this.place.source.editor.change(this.lock.reconfigure(EditorState.readOnly.of(!this.mayEdit)));
    if (session.ended) {
      this.over("The session has ended.", session.snippet ?? null);
      return;
    }
    this.ready();
    if (before && before.leader !== session.leader) {
      say(this.leads ? "You lead the session now." : `${this.nameOf(session.leader)} leads the session now.`);
      if (this.leads) this.clearPoint();
    }
    if (before && before.read_only !== session.read_only && !this.leads) announce(session.read_only ? "The session is read-only now" : "Everyone may change the kernel again");
    this.tell();
  }

  private takeOnline(isOnline: boolean): void {
    const was = this.state.state.isOnline;
    this.state.set({ isOnline });
    if (isOnline && !was) this.tell();
    if (!isOnline) announce("The connection to the session is lost. You can go on: your changes are merged when it is back.");
  }

  /** Those of many people come together: they are shown once. */
  private takePresence(person: number, presence: unknown): void {
    if (!isObject(presence)) return;
    if (this.arrived.size === 0)
      window.setTimeout(() => {
        const presences = new Map([...this.state.state.presences, ...this.arrived]);
        this.arrived.clear();
        if (!this.isEnded) this.state.set({ presences });
      });
    this.arrived.set(person, presence);
  }

  // ---- what one looks at

  private tell(): void {
    if (this.target !== 0 || this.isEnded) return;
    this.target = window.setTimeout(() => {
      this.target = 0;
      this.tellNow();
    }, 60);
  }

  private tellNow(): void {
    const { isFollowing } = this.state.state;
    this.wire.show(presenceOf(this.place, this.document, { leader: this.leads, following: isFollowing, point: this.point }));
  }

  /** What the page shows has changed: by the user, if they have just pressed something. */
  private noteLook(): void {
    const isOwn = this.leads || !this.state.state.isFollowing;
    if (isOwn && performance.now() - this.pressedAt < PRESSED_MS) noteDoer(this.nameOf(this.you));
  }

  private hear(): void {
    const { source, ir } = this.place;
    const on = <K extends keyof DocumentEventMap>(target: EventTarget, type: K, run: (e: DocumentEventMap[K]) => void, capture = false) => {
      target.addEventListener(type, run as EventListener, { capture, passive: true });
      this.undo.push(() => target.removeEventListener(type, run as EventListener, { capture }));
    };
    for (const view of [source.editor.view, ir.text.viewer.view]) on(view.scrollDOM, "scroll", () => this.tell());
    on(document, "selectionchange", () => this.tell());
    const panes = document.getElementById("panes") as HTMLElement;
    on(panes, "wheel", () => this.detach(), true);
    on(panes, "touchmove", () => this.detach(), true);
    on(document, "pointerdown", () => (this.pressedAt = performance.now()), true);
    on(panes, "pointerdown", (e) => {
      if (this.state.state.isPointing) this.pointAt(e);
      else this.detach();
    }, true);
    on(document, "keydown", (e) => this.key(e), true);
    on(document, "visibilitychange", () => document.visibilityState === "hidden" && void this.compact(true));
  }

  // ---- following

  private key(e: KeyboardEvent): void {
    this.pressedAt = performance.now();
    const target = e.target instanceof Element ? e.target : document.body;
    const isText = target.matches("input, textarea, select") || (target instanceof HTMLElement && target.isContentEditable);
    if (e.ctrlKey || e.metaKey || e.altKey || target.closest("dialog, #session-bar, [popover]")) return;
    if (e.key === "Escape" && this.state.state.isPointing) this.state.set({ isPointing: false });
    else if (!isText && e.key === "l") this.setFollowing(!this.state.state.isFollowing);
    else if (!isText && e.key === "!" && this.leads) this.pointAtCaret();
    else if (!["Shift", "Control", "Alt", "Meta", "Tab", "Escape"].includes(e.key)) this.detach();
  }

  /** The user has moved on their own. */
  private detach(): void {
    if (this.leads || !this.state.state.isFollowing || !this.state.state.isReady) return;
    this.setFollowing(false);
  }

  setFollowing(isFollowing: boolean): void {
    if (this.leads || this.isEnded) return;
    this.state.set({ isFollowing });
    announce(isFollowing ? "You follow the leader" : "You look around by yourself; l follows again");
    if (isFollowing) this.follow();
    this.tell();
  }

  private leaderPresence(): Partial<Presence> | null {
    const { session, presences } = this.state.state;
    return (session && presences.get(session.leader)) ?? null;
  }

  private follow(): void {
    const { isFollowing, isReady } = this.state.state;
    const theirs = this.leaderPresence();
    if (this.leads || !isFollowing || !isReady || !theirs || !isObject(theirs.view)) return;
    noteDoer(this.nameOf(this.state.state.session?.leader ?? 0));
    this.followed = theirs;
    this.isShowing = true;
    lookAlong(this.place, theirs);
    this.isShowing = false;
    requestAnimationFrame(() => {
      if (this.state.state.isFollowing && !this.isEnded) scrollAlong(this.place, theirs);
    });
  }

  /** The stages have come that the leader's selection is in. */
  private lookAgain(): void {
    if (!this.place.store.state.compiling && !this.isShowing) this.follow();
    this.drawPeers();
  }

  // ---- pointing

  togglePointing(): void {
    if (!this.leads) return;
    if (this.point) this.clearPoint();
    else this.state.set({ isPointing: !this.state.state.isPointing });
  }

  get isPointed(): boolean {
    return this.point !== null;
  }

  private clearPoint(): void {
    this.point = null;
    this.state.set({ isPointing: false });
    this.drawPeers();
    this.tell();
  }

  private setPoint(pane: "source" | "ir", line: number): void {
    const { tab } = this.place.store.state;
    this.point = { pane, line, stage: shownStage(this.place), tab };
    this.state.set({ isPointing: false, presences: new Map(this.state.state.presences) });
    this.tell();
  }

  private pointAtCaret(): void {
    const { source, ir } = this.place;
    const { viewer } = ir.text;
    if (viewer.view.hasFocus || !source.editor.view.hasFocus) this.setPoint("ir", irLine(this.place));
    else this.setPoint("source", source.editor.view.state.doc.lineAt(source.editor.view.state.selection.main.head).number);
  }

  private pointAt(e: PointerEvent): void {
    const { source, ir } = this.place;
    const at = (view: EditorView) => view.state.doc.lineAt(view.lineBlockAtHeight(e.clientY - view.documentTop).from).number;
    const node = e.target instanceof Node ? e.target : null;
    const { viewer } = ir.text;
    if (viewer.view.dom.contains(node)) this.setPoint("ir", viewer.lineOf(at(viewer.view)));
    else if (source.editor.view.dom.contains(node)) this.setPoint("source", at(source.editor.view));
  }

  // ---- the others on the page

  private drawPeers(): void {
    const { session, presences } = this.state.state;
    if (!session || this.isEnded || !this.state.state.isReady) return;
    drawPresences(this.place, this.document, session, this.you, presences, this.leads ? this.point : this.leaderPresence()?.point);
  }

  // ---- leading

  lead(act: string, fields: object = {}): Promise<void> {
    return this.wire.lead(act, fields);
  }

  /** Ends it for everybody; `snippet`: the link that it becomes. */
  async endForAll(snippet: string | null): Promise<void> {
    await this.lead("end", snippet === null ? {} : { snippet });
  }

  /** It goes on without this page, which keeps the kernel. */
  leave(): void {
    this.over("You have left the session.", null);
  }

  private over(text: string, snippet: string | null): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.wire.end();
    for (const t of this.timers) window.clearInterval(t);
    window.clearTimeout(this.target);
    for (const run of this.undo) run();
    const { store, source, ir } = this.place;
    showPeers(source.editor.view, { peers: [], pointed: null });
    showPeers(ir.text.viewer.view, { peers: [], pointed: null });
    source.editor.add(() => [], store.state.language);
    this.document.end();
    shareScope(null);
    store.set({ session: null });
    this.state.set({ over: { text, snippet } });
  }
}
