// sessionsection: the part of the share dialog that begins a session.
import { Problem } from "../api/problem";
import type { Me } from "../api/types";
import { keepName, keptName } from "../state/session";
import { absolute } from "./clipboard";
import { el, fill } from "./dom";
import type { SessionPlace } from "./share";
import { mayStore } from "./whoami";

type CopyField = (label: string, value: string, say: (text: string) => void) => HTMLElement;

/** The field for one's name in a session. */
export function nameField(): HTMLInputElement {
  const input = el("input", { id: "session-name", attrs: { type: "text", maxlength: 40, required: true, autocomplete: "nickname", placeholder: "as the others see it" } });
  input.value = keptName();
  return input;
}

/** The name that was typed, which is kept; null: there is none. */
export function nameTyped(input: HTMLInputElement): string | null {
  const name = input.value.trim();
  if (name !== "") keepName(name);
  return name === "" ? null : name;
}

export function sessionSection(place: SessionPlace, me: Me | null, copyField: CopyField, say: (text: string) => void, close: () => void): HTMLElement | null {
  const { session } = place.store.state;
  const title = el("h3", {}, "Session");
  if (session !== null) {
    return el("section", { attrs: { "aria-label": "Session" } }, title, copyField("Session address", absolute(`/s/${session}`), say), el("p", { class: "note" }, "Whoever opens it is in the session, under a name of their choice."));
  }
  if (!mayStore(me)) return null;
  const name = nameField();
  const begin = el("button", { class: "plain", attrs: { type: "submit" } }, "Begin a session");
  const told = el("p", { class: "session-failed", attrs: { role: "alert", hidden: true } });
  const form = el("form", { class: "share-form" }, el("p", { class: "note" }, "Everyone with its address edits this kernel with you, sees what you point at, and follows where you look."), el("label", { class: "share-field" }, el("span", {}, "Your name"), name), el("div", { class: "dialog-end" }, begin), told);
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const typed = nameTyped(name);
    if (typed === null || begin.disabled) return;
    begin.disabled = true;
    void import("../session/open")
      .then((m) => m.beginHere(place, typed))
      .then(close)
      .catch((problem: unknown) => {
        if (!(problem instanceof Problem)) console.error(problem);
        told.hidden = false;
        fill(told, problem instanceof Problem ? `It has not begun: ${problem.message}` : "It could not be loaded: is the server reachable?");
      })
      .finally(() => (begin.disabled = false));
  });
  return el("section", { attrs: { "aria-label": "Session" } }, title, form);
}
