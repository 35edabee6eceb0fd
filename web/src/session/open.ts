// open: ways into a session.  Loaded with the first one.
import { Problem } from "../api/problem";
import type { Session as SessionInfo } from "../api/types";
import { byId, el } from "../panes/dom";
import { nameField, nameTyped } from "../panes/sessionsection";
import type { SessionPlace } from "../panes/share";
import { look, lookAtSelection } from "../panes/shared";
import { keepDraft } from "../state/draft";
import { fileOf } from "../state/languages";
import { readInputs } from "../state/inputs";
import { readViewJson, viewOf, viewToJson } from "../state/look";
import { keepTicket, keptTicket, type Ticket } from "../state/session";
import { mountBar } from "./bar";
import { Document, wholeOf } from "./document";
import { Live, plain } from "./live";
import { beginSession, joinSession, lookAtSession, toBase64 } from "./wire";

function start(place: SessionPlace, id: string, ticket: Ticket, document: Document): void {
  keepTicket(id, ticket);
  const live = new Live(place, id, ticket, document);
  mountBar(live);
}

/** What the page shows becomes a session that the user leads. */
export async function beginHere(place: SessionPlace, name: string): Promise<void> {
  const { store, compiler } = place;
  const document = new Document();
  document.fromState(store.state);
  const made = await beginSession({ name, snapshot: toBase64(wholeOf(document.doc)), request: plain(compiler.request()), view: viewToJson(viewOf(store.state, {})) });
  document.end();
  start(place, made.id, { person: made.person, token: made.token }, new Document());
  history.replaceState(history.state, "", made.url);
}

type Tell = (title: string, text: string) => void;

/** Asks for a name; null: the user goes elsewhere. */
function askName(info: SessionInfo): Promise<string> {
  return new Promise((done) => {
    const here = info.people.filter((p) => p.here).map((p) => p.name);
    const name = nameField();
    const join = el("button", { class: "primary", attrs: { type: "submit" } }, "Join");
    const form = el(
      "form",
      { class: "session-join" },
      el("h2", {}, "Join the session"),
      el("p", { class: "note" }, here.length === 0 ? "Nobody is there at the moment." : `There now: ${here.join(", ")}.`),
      el("p", { class: "note" }, "You edit one kernel together. Everyone who is there sees your name, your cursor and your changes."),
      el("label", { class: "share-field" }, el("span", {}, "Your name"), name),
      el("div", { class: "dialog-end" }, join),
    );
    const box = el("main", { class: "nowhere", attrs: { "aria-label": "Join the session" } }, form);
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      const typed = nameTyped(name);
      if (typed === null) return;
      box.remove();
      byId("panes").hidden = false;
      done(typed);
    });
    byId("panes").hidden = true;
    byId("panes").after(box);
    name.focus();
  });
}

/** What an ended session became: a link, or the kernel as it was last. */
function openEnded(place: SessionPlace, info: SessionInfo): void {
  if (info.snippet) {
    location.replace(`/z/${info.snippet}`);
    return;
  }
  const { store, compiler } = place;
  const { request } = info.kernel;
  const language = request.language ?? "nkipy";
  const { view } = readViewJson(info.kernel.view);
  store.set({ source: request.source ?? "", filename: request.filename === fileOf(language) ? null : (request.filename ?? null), files: request.files ?? [], language, ...(request.target ? { target: request.target } : {}), inputs: request.inputs ? readInputs(request.inputs) : null, touched: true, tab: null });
  look(store, view);
  void compiler.now().then(() => lookAtSelection(store, view));
}

async function join(id: string, info: SessionInfo): Promise<Ticket> {
  const kept = keptTicket(id);
  if (kept) {
    try {
      return await joinSession(id, "", kept);
    } catch (e) {
      if (!(e instanceof Problem) || e.code !== "session-token") throw e;
    }
  }
  return joinSession(id, await askName(info), null);
}

export async function openSession(place: SessionPlace, id: string, tell: Tell): Promise<void> {
  try {
    const info = await lookAtSession(id);
    if (info.ended) {
      openEnded(place, info);
      return;
    }
    keepDraft(place.store);
    start(place, id, await join(id, info), new Document());
  } catch (e) {
    if (!(e instanceof Problem)) throw e;
    if (e.code === "not-found") tell("This session does not exist.", "It ended long ago, or its address lost a character when it was copied.");
    else tell("The session cannot be joined now.", e.message);
  }
}
