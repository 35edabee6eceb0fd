// notes: the pane of notes, to the right of the kernel: threads on lines of the source and of stages.
//
// Notes are text only.  They belong to the page until a link keeps them: a new one, or, for who made it, the link that the page
// shows.  In a session everybody has them at once.
import { StateEffect } from "@codemirror/state";
import { noteSnippet } from "../api/client";
import { Problem } from "../api/problem";
import type { Stage } from "../api/types";
import { notedRows, showNoted } from "../editor/noted";
import { tokenOf } from "../state/mylinks";
import { bytesOfNotes, lineOfNote, lineText, NAME_MAX, NOTE_MAX, NOTES_MAX, partsOfNote, sameNotes, SAYINGS_MAX, THREADS_MAX, type NotePlace, type Saying, type Thread } from "../state/notes";
import { nameOfTab } from "../state/files";
import { keepName, keptName } from "../state/session";
import { settings } from "../state/settings";
import { isAsShared } from "../state/shared";
import { allRows, shownStage, showStage, STAGE_KEYS } from "../state/view";
import { adoptStyle } from "../style/late";
import css from "../style/notes.late.css";
import { button, byId, el, fill, plural, setAttr } from "./dom";
import type { KeyTargets } from "./keys";
import { say } from "./notices";
import { putBeside } from "./sidepane";
import { when } from "./when";

const split = new WeakMap<Stage, readonly string[]>();

function linesOfStage(stage: Stage): readonly string[] {
  const lines = split.get(stage) ?? stage.text.split("\n");
  split.set(stage, lines);
  return lines;
}

class NotesPane {
  private readonly list = el("ol", { class: "notes-list", attrs: { "aria-label": "Threads" } });
  private readonly about = el("p", { class: "note", id: "notes-about" });
  private readonly kept = el("div", { class: "notes-kept", attrs: { "aria-live": "polite" } });
  private readonly name = el("input", { id: "notes-name", attrs: { type: "text", maxlength: NAME_MAX, autocomplete: "nickname", placeholder: "your name" } });
  private readonly text = el("textarea", { attrs: { "aria-label": "New note", "aria-describedby": "notes-about", rows: 3, maxlength: NOTE_MAX } });
  private readonly pane = el(
    "section",
    { id: "notes-pane", class: "pane", attrs: { "aria-labelledby": "notes-title" } },
    el("div", { class: "pane-head" }, el("h2", { id: "notes-title" }, "Notes"), el("span", { class: "spring" }), this.closer()),
    this.list,
    el(
      "form",
      { class: "notes-new", on: { submit: (e) => (e.preventDefault(), this.write()) } },
      this.about,
      this.text,
      el("p", { class: "note" }, "stage:cse, stage:cse@14 and line:3 become links."),
      el("label", { class: "notes-who" }, "Name", this.name),
      el("button", { class: "primary", attrs: { type: "submit" } }, "Add note"),
    ),
    this.kept,
  );
  /** The pane that a new note is about. */
  private side: "source" | "ir" = "source";

  constructor(private readonly t: KeyTargets) {
    adoptStyle(css);
    putBeside(this.pane, "right");
    this.name.value = keptName().slice(0, NAME_MAX);
    this.name.addEventListener("change", () => keepName(this.name.value.trim()));
    const { store, source, ir } = t;
    source.editor.view.dispatch({ effects: StateEffect.appendConfig.of(notedRows((row) => this.focus(null, row))) });
    ir.text.viewer.view.dispatch({ effects: StateEffect.appendConfig.of(notedRows((row) => this.focus(shownStage(store.state)?.row.key ?? "", ir.text.viewer.lineOf(row)))) });
    for (const side of ["source", "ir"] as const) byId(`${side}-pane`).addEventListener("focusin", () => this.use(side));
    document.addEventListener("selectionchange", () => this.pane.hidden || this.drawAbout());
    store.watch(["notes", "shared", "session", "source", "files", "tab", ...STAGE_KEYS, "marked"], () => this.draw());
    settings.watch(["fullText", "attributes"], () => this.drawMarks());
  }

  open(isAsked: boolean): void {
    if (isAsked) this.side = document.activeElement?.closest("#ir-pane, #stages-pane") ? "ir" : this.side;
    this.pane.hidden = false;
    setAttr(document.body, "data-notes", "");
    this.draw();
    if (isAsked) this.text.focus();
  }

  private closer(): HTMLButtonElement {
    const b = button("×", "Close the notes; they stay", () => {
      this.pane.hidden = true;
      setAttr(document.body, "data-notes", null);
    });
    b.setAttribute("aria-label", "Close the notes");
    return b;
  }

  private use(side: "source" | "ir"): void {
    this.side = side;
    this.drawAbout();
  }

  // ---- the place of a new note

  private linesOf({ stage, kernel, file }: NotePlace): readonly string[] | null {
    const { state } = this.t.store;
    if (stage !== null) {
      const found = allRows(state).find((r) => r.key === stage && r.kernel.name === kernel)?.stage;
      return found ? linesOfStage(found) : null;
    }
    if (file === nameOfTab(state, null)) return state.source.split("\n");
    return state.files.find((f) => f.name === file)?.source.split("\n") ?? null;
  }

  /** The lines that are marked, else the selected ones, or that of the caret, in the pane that was used last. */
  private place(): NotePlace {
    const { store, source, ir } = this.t;
    const { state } = store;
    const { marked } = state;
    const shown = shownStage(state);
    const side = marked ? (marked.pane === "ir" ? "ir" : "source") : this.side;
    if (side === "ir" && shown) {
      const line = ir.text.viewer.caretLine();
      const [first, last] = marked ? [marked.first, marked.last] : [line, line];
      return { stage: shown.row.key, kernel: shown.row.kernel.name, file: "", first, last, text: lineText(linesOfStage(shown.stage)[first - 1] ?? "") };
    }
    const { doc, selection } = source.editor.view.state;
    const { from, to } = selection.main;
    const [first, last] = marked ? [marked.first, marked.last] : [doc.lineAt(from).number, doc.lineAt(to).number];
    return { stage: null, kernel: "", file: nameOfTab(state, state.tab), first, last, text: first <= doc.lines ? lineText(doc.line(first).text) : "" };
  }

  private nameOf(place: NotePlace, line: number | null): string {
    const lines = line === null ? "a line that is gone" : place.last > place.first ? `lines ${line}–${line + place.last - place.first}` : `line ${line}`;
    return place.stage === null ? `${lines} of ${place.file}` : `${lines} of ${place.stage}`;
  }

  // ---- changes

  private change(notes: readonly Thread[]): boolean {
    if (bytesOfNotes(notes) > NOTES_MAX) {
      say(`The notes of a link have at most ${NOTES_MAX >> 10} KiB`);
      return false;
    }
    this.t.store.set({ notes });
    return true;
  }

  private saying(text: string): Saying {
    keepName(this.name.value.trim());
    return { by: this.name.value.trim(), text, at: Date.now() };
  }

  private write(): void {
    const text = this.text.value.trim();
    const { notes } = this.t.store.state;
    if (text === "") return;
    if (notes.length >= THREADS_MAX) {
      say(`A link has at most ${THREADS_MAX} threads of notes`);
      return;
    }
    const place = this.place();
    if (this.change([...notes, { ...place, sayings: [this.saying(text)] }])) this.text.value = "";
  }

  private answer(n: number, text: string): boolean {
    const { notes } = this.t.store.state;
    const thread = notes[n];
    if (!thread || text === "") return false;
    if (thread.sayings.length >= SAYINGS_MAX) {
      say(`A thread has at most ${SAYINGS_MAX} notes`);
      return false;
    }
    return this.change(notes.with(n, { ...thread, sayings: [...thread.sayings, this.saying(text)] }));
  }

  private remove(n: number, k: number): void {
    const { notes } = this.t.store.state;
    const thread = notes[n];
    if (!thread) return;
    const sayings = thread.sayings.toSpliced(k, 1);
    this.change(sayings.length > 0 ? notes.with(n, { ...thread, sayings }) : notes.toSpliced(n, 1));
  }

  // ---- the way to a place

  private go(stage: string | null, file: string, line: number | null, last = line): void {
    const { store } = this.t;
    if (stage !== null) {
      const row = allRows(store.state).find((r) => r.key === stage);
      if (!row) {
        say(`There is no stage ${stage} here`);
        return;
      }
      showStage(store, row);
      store.set({ pane: "ir" });
    } else {
      const main = nameOfTab(store.state, null);
      store.set({ tab: file === "" || file === main ? null : file, pane: "source" });
    }
    if (line !== null) store.set({ marked: { pane: stage === null ? "source" : "ir", first: line, last: last ?? line } });
  }

  private goTo(thread: Thread): void {
    const { store } = this.t;
    if (thread.kernel !== "" && store.state.outcome?.kernels.some((k) => k.name === thread.kernel)) store.set({ kernelName: thread.kernel });
    const line = lineOfNote(thread, this.linesOf(thread) ?? []);
    this.go(thread.stage, thread.file, line, line === null ? null : line + thread.last - thread.first);
  }

  private focus(stage: string | null, line: number): void {
    this.open(false);
    const { notes, tab } = this.t.store.state;
    const file = nameOfTab(this.t.store.state, tab);
    const n = notes.findIndex((t) => t.stage === stage && (stage !== null || t.file === file) && lineOfNote(t, this.linesOf(t) ?? []) === line);
    const item = this.list.children[n];
    item?.scrollIntoView({ block: "nearest" });
    item?.querySelector<HTMLElement>("button")?.focus();
  }

  // ---- drawing

  private words(text: string): Node[] {
    return partsOfNote(text).map((part) => {
      if (typeof part === "string") return document.createTextNode(part);
      return button(part.text, "Go there", () => this.go(part.stage, part.file, part.line), "stage-link");
    });
  }

  private item(thread: Thread, n: number): HTMLElement {
    const lines = this.linesOf(thread);
    const line = lineOfNote(thread, lines ?? []);
    const where = lines ? this.nameOf(thread, line) : `${thread.stage === null ? thread.file : `${thread.stage} of ${thread.kernel}`}, which is not shown`;
    const sayings = thread.sayings.map(({ by, text, at }, k) => {
      const remove = button("×", "Delete this note", () => this.remove(n, k));
      remove.setAttribute("aria-label", `Delete the note of ${by || "someone"}`);
      return el("li", {}, el("div", { class: "by" }, el("b", {}, by || "someone"), el("span", { class: "note" }, when(at)), el("span", { class: "spring" }), remove), el("p", {}, ...this.words(text)));
    });
    const field = el("input", { attrs: { type: "text", maxlength: NOTE_MAX, "aria-label": `Answer in the thread on ${where}`, placeholder: "Answer" } });
    field.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || e.isComposing) return;
      e.preventDefault();
      const text = field.value;
      field.value = ""; // or it would be kept as what is being typed
      if (!this.answer(n, text.trim())) {
        field.value = text;
        return;
      }
      this.list.children[n]?.querySelector<HTMLElement>("input")?.focus();
    });
    return el(
      "li",
      { class: "notes-thread" },
      button(where, "Show what the notes are about", () => this.goTo(thread), "stage-link"),
      line === null && thread.text !== "" ? el("code", { class: "gone" }, thread.text) : null,
      el("ol", {}, ...sayings),
      field,
    );
  }

  private draw(): void {
    const { notes } = this.t.store.state;
    this.drawMarks();
    if (this.pane.hidden) return;
    // what is being typed into an answer stays
    const at = document.activeElement?.closest(".notes-thread");
    const typing = at ? [...this.list.children].indexOf(at) : -1;
    const typed = typing >= 0 && document.activeElement instanceof HTMLInputElement ? document.activeElement.value : "";
    fill(this.list, ...notes.map((t, n) => this.item(t, n)));
    const field = this.list.children[typing]?.querySelector("input");
    if (field && typed !== "") {
      field.value = typed;
      field.focus();
    }
    this.drawAbout();
    this.drawKept();
  }

  private drawAbout(): void {
    const place = this.place();
    this.about.textContent = `On ${this.nameOf(place, place.first)}`;
  }

  private drawKept(): void {
    const { notes, shared, session } = this.t.store.state;
    if (session !== null) {
      fill(this.kept, el("p", { class: "note" }, "Everyone in the session has them, and the link that it becomes."));
      return;
    }
    const stored = shared?.notes ?? [];
    if (sameNotes(notes, stored)) {
      fill(this.kept, notes.length > 0 ? el("p", { class: "note" }, "They are kept in this link.") : null);
      return;
    }
    const token = shared && isAsShared(this.t.store.state) ? tokenOf(shared.id) : null;
    const keep = token === null || !shared ? null : button("Keep in this link", "Stores the notes with the link", () => void this.keep(shared.id, token, keep), "plain");
    fill(this.kept, el("p", { class: "note" }, keep ? "Not stored yet." : "Not stored yet: Share makes a link that keeps them."), keep);
  }

  private async keep(id: string, token: string, pressed: HTMLButtonElement | null): Promise<void> {
    const { store } = this.t;
    const { shared, notes } = store.state;
    if (!shared || pressed?.disabled) return;
    if (pressed) pressed.disabled = true;
    try {
      await noteSnippet(id, token, shared.revision, notes);
      store.set({ shared: { ...shared, notes } });
      say("The link has these notes now");
    } catch (e) {
      if (!(e instanceof Problem)) throw e;
      say(`The notes were not stored: ${e.message}`);
      if (pressed) pressed.disabled = false;
    }
  }

  private drawMarks(): void {
    const { store, source, ir } = this.t;
    const { notes, tab } = store.state;
    const shown = shownStage(store.state);
    const file = nameOfTab(store.state, tab);
    const here = new Map<number, number>();
    const there = new Map<number, number>();
    const add = (to: Map<number, number>, row: number, t: Thread) => to.set(row, (to.get(row) ?? 0) + t.sayings.length);
    for (const t of notes) {
      const line = lineOfNote(t, this.linesOf(t) ?? []);
      if (line === null) continue;
      if (t.stage === null && t.file === file) add(here, line, t);
      if (t.stage !== null && t.stage === shown?.row.key) add(there, ir.text.viewer.rowOf(line), t);
    }
    showNoted(source.editor.view, here);
    showNoted(ir.text.viewer.view, there);
    setAttr(byId("notes-open"), "data-count", notes.length > 0 ? plural(notes.length, "thread") : null);
  }
}

let pane: NotesPane | null = null;

/** isAsked: by the user, who writes then. */
export function openNotes(targets: KeyTargets, isAsked: boolean): void {
  pane ??= new NotesPane(targets);
  pane.open(isAsked);
}
