// sharedialog: the dialog that makes links, loaded when it is first opened.
//
// A link either contains everything itself, and nothing is stored, or the server keeps the kernel with its result under an
// id.  Nothing is stored unless the user asks for it.
import { createSnippet, deleteSnippet } from "../api/client";
import { Problem } from "../api/problem";
import type { AccessAsked, Me, SnippetMade, Visibility } from "../api/types";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { LONG_URL } from "../state/fragment";
import { viewOf, viewToJson } from "../state/look";
import { forgetLink, myLinks, rememberLink, type MyLink } from "../state/mylinks";
import { settings } from "../state/settings";
import { isAsShared } from "../state/shared";
import { AccessForm, nameFields } from "./accessform";
import { absolute, toClipboard } from "./clipboard";
import { byId, button, el, fill } from "./dom";
import { icon } from "./icons";
import { startRecording } from "./recordbutton";
import { Revisions } from "./revisions";
import { sessionSection } from "./sessionsection";
import type { SessionPlace } from "./share";
import { when } from "./when";
import { askWhoAmI, isSomebody, mayStore, namesOf, whoText } from "./whoami";

const EXPIRY: [string, number | null][] = [
  ["never", null],
  ["in a day", 86_400],
  ["in a week", 7 * 86_400],
  ["in a month", 30 * 86_400],
  ["in a year", 365 * 86_400],
];

const TITLE_BYTES = 200;

/** A field with a text, and a button that copies it. */
function copyField(label: string, value: string, say: (text: string) => void): HTMLElement {
  const field = el("input", { attrs: { type: "text", readonly: true, value, "aria-label": label } });
  field.addEventListener("focus", () => field.select());
  const copy = button("Copy", `Copy: ${label}`, () => {
    void toClipboard(value).then((ok) => {
      if (!ok) field.focus();
      copy.textContent = ok ? "Copied" : "Press Ctrl+C";
      if (ok) say(`${label} copied`);
      window.setTimeout(() => (copy.textContent = "Copy"), 2500);
    });
  }, "plain");
  copy.setAttribute("aria-label", `Copy: ${label}`);
  // the system's own sheet, where there is one
  const send = "share" in navigator ? button("Send…", `Send: ${label}`, () => void navigator.share({ url: value }).catch(() => undefined), "plain") : null;
  send?.setAttribute("aria-label", `Send: ${label}`);
  return el("div", { class: "copy-field" }, field, copy, /^https?:/.test(value) ? send : null);
}

export class ShareDialog {
  private readonly dialog = byId<HTMLDialogElement>("share-dialog");

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
    private readonly say: (text: string) => void,
    private readonly announce: (text: string) => void,
    private readonly sessions: SessionPlace,
  ) {
    this.dialog.onclick = (e) => {
      if (e.target === this.dialog) this.dialog.close();
    };
  }

  /** url: of what the page shows. */
  async open(url: string): Promise<void> {
    const long = url.length > LONG_URL;
    const asked = askWhoAmI();
    const copied = !long && (await toClipboard(url));
    const me = await asked;
    if (copied) this.announce("Link copied");
    const stored = this.store.state.shared !== null && isAsShared(this.store.state);
    const made = el("div", { class: "share-made" });
    const size = `${url.length.toLocaleString("en")} characters`;
    const note = stored
      ? "What you see is stored under this link already."
      : long
        ? `This kernel is too large for a link that holds everything: it has ${size}, and many programs cut links behind ${LONG_URL.toLocaleString("en")}. A stored link stays short.`
        : "Everything is in the link itself, nothing is stored.";
    fill(
      this.dialog,
      el("h2", { id: "share-title" }, "Share what you see"),
      el("section", {}, el("h3", {}, stored ? "Link" : "Link that holds everything"), copyField("Link", url, this.say), el("p", { class: long ? "note long" : "note" }, copied ? `Copied. ${note}` : note)),
      el("section", {}, el("h3", {}, "Stored link"), this.whose(me), mayStore(me) ? this.form(made, me) : null, made),
      sessionSection(this.sessions, me, copyField, this.say, () => this.dialog.close()),
      this.recording(),
      this.revisions(me),
      this.list(me),
      el("div", { class: "dialog-end" }, button("Close", "Close", () => this.dialog.close(), "plain")),
    );
    if (!this.dialog.open) this.dialog.showModal();
    if (long) this.dialog.querySelector<HTMLElement>("#share-name")?.focus();
    else if (!copied) this.dialog.querySelector<HTMLInputElement>("input[readonly]")?.select();
    if (long) this.announce(note);
  }

  private recording(): HTMLElement {
    const has = this.store.state.recording !== null;
    const start = () => {
      this.dialog.close();
      void startRecording();
    };
    return el(
      "section",
      {},
      el("h3", {}, "Recording"),
      el("p", { class: "note" }, has ? "A stored link that you make now plays your recording." : "What you write, select and look at, played again by whoever opens the stored link. No voice, no video."),
      el("div", { class: "dialog-end" }, button(has ? "Record again" : "Start recording", "Closes this and records what you do", start, "plain")),
    );
  }

  private revisionsOf(id: string): HTMLElement {
    const { store, compiler, say } = this;
    return new Revisions({ store, compiler, say, close: () => this.dialog.close() }, id).node;
  }

  /** The revisions of the link that the page was opened on. */
  private revisions(me: Me | null): HTMLElement | null {
    const { shared } = this.store.state;
    const access = shared && isSomebody(me) ? new AccessForm(shared.id, me, this.say).node : null;
    return shared && el("section", { attrs: { "aria-label": "Revisions of this link" } }, el("h3", {}, "Revisions of this link"), this.revisionsOf(shared.id), access);
  }

  /** Who the user is to the server, where people sign in. */
  private whose(me: Me | null): HTMLElement | null {
    const text = whoText(me);
    return text === "" ? null : el("p", { class: "note" }, text);
  }

  private form(made: HTMLElement, me: Me | null): HTMLFormElement {
    const { shared, parent } = this.store.state;
    const title = el("input", { id: "share-name", attrs: { type: "text", maxlength: TITLE_BYTES, placeholder: "optional", autocomplete: "off" } });
    title.value = shared?.title ?? "";
    title.addEventListener("input", () => {
      const bytes = new TextEncoder().encode(title.value).length;
      title.setCustomValidity(bytes > TITLE_BYTES ? `At most ${TITLE_BYTES} bytes; this has ${bytes}` : "");
    });
    const expiry = el("select", { id: "share-expiry" }, ...EXPIRY.map(([label], i) => el("option", { attrs: { value: i } }, label)));
    let visibility: Visibility = "unlisted";
    const choose = (value: Visibility) => {
      visibility = value;
      shares.hidden = value !== "private";
    };
    const kind = (value: Visibility, label: string, what: string) => {
      const input = el("input", { attrs: { type: "radio", name: "share-visibility", value }, on: { change: () => choose(value) } });
      input.checked = value === "unlisted";
      return el("label", { class: "share-kind" }, input, el("span", {}, el("b", {}, label), el("span", { class: "note" }, what)));
    };
    const { node: shares, people, groups } = nameFields("share", me?.groups ?? []);
    shares.hidden = true;
    const create = el("button", { class: "primary", attrs: { type: "submit" } }, "Create link");
    const form = el(
      "form",
      { class: "share-form" },
      el("p", { class: "note" }, "The server keeps the kernel with all its stages, as they are now, also when the compiler changes."),
      parent !== null ? el("p", { class: "note" }, "It is kept as a fork of the link you started from.") : null,
      el("label", { class: "share-field" }, el("span", {}, "Title"), title),
      el("label", { class: "share-field" }, el("span", {}, "Expires"), expiry),
      el(
        "fieldset",
        { class: "share-kinds" },
        el("legend", {}, "Who finds it"),
        kind("unlisted", "Unlisted", "Only who has the link: its id cannot be guessed."),
        kind("public", "Short and public", "A short link for slides; others may come across it."),
        isSomebody(me) ? kind("private", "Private", "Only you, and the people and groups that you name. You can change them later.") : null,
        shares,
      ),
      el("div", { class: "dialog-end" }, create),
    );
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      if (create.disabled) return;
      create.disabled = true;
      fill(made, el("p", { class: "note" }, "Storing…"));
      const expires = EXPIRY[Number(expiry.value)]?.[1] ?? null;
      const access = visibility === "private" ? { people: namesOf(people.value), groups: namesOf(groups.value) } : null;
      void this.create(title.value.trim(), visibility, access, expires, made).finally(() => (create.disabled = false));
    });
    return form;
  }

  private async create(title: string, visibility: Visibility, access: AccessAsked | null, expires: number | null, box: HTMLElement): Promise<void> {
    const { parent, shared } = this.store.state;
    const from = shared?.id ?? parent;
    try {
      const made = await createSnippet({
        ...this.compiler.request(),
        view: viewToJson(viewOf(this.store.state, settings.state.splits)),
        visibility,
        ...(access !== null ? { access } : {}),
        ...(title !== "" ? { title } : {}),
        ...(from !== null ? { parent: from } : {}),
        ...(expires !== null ? { expires_in: expires } : {}),
      });
      await this.created(made, title, box);
    } catch (e) {
      if (!(e instanceof Problem)) throw e;
      const gone = e.code === "not-found" ? "The link this is a fork of was deleted. " : "";
      if (gone !== "") this.store.set({ parent: null });
      fill(box, el("p", { class: "share-failed", attrs: { role: "alert" } }, gone !== "" ? `${gone}Press Create again to store it on its own.` : `It was not stored: ${e.message}`));
    }
  }

  private async created(made: SnippetMade, title: string, box: HTMLElement): Promise<void> {
    const link = absolute(made.url);
    const kept = rememberLink(made, title);
    const copied = await toClipboard(link);
    const frame = `<iframe src="${absolute(made.embed_url)}" width="100%" height="480" loading="lazy" title="nkx"></iframe>`;
    fill(
      box,
      el("p", { class: "share-done", attrs: { role: "status" } }, copied ? "Stored, and copied." : "Stored."),
      copyField("Stored link", link, this.say),
      el("p", { class: "note" }, "To show it within another page:"),
      copyField("Embed code", frame, this.say),
      kept
        ? el("p", { class: "note" }, "It can be deleted under My links, in this browser only.")
        : el("div", {}, el("p", { class: "note" }, "This browser keeps nothing. To delete the link one day, keep its edit token:"), copyField("Edit token", made.edit_token, this.say)),
    );
    if (copied) this.announce("Stored link copied");
    box.scrollIntoView({ block: "nearest" });
  }

  private list(me: Me | null): HTMLElement {
    const items = el("ul", { class: "my-links" });
    const summary = el("summary", {}, "My links");
    const box = el("details", { class: "my-links-box" }, summary, el("p", { class: "note" }, "Stored links that were made in this browser."), items);
    const draw = () => {
      const { links } = myLinks.state;
      summary.textContent = `My links (${links.length})`;
      box.hidden = links.length === 0;
      fill(items, ...links.map((l) => this.item(l, me)));
    };
    draw();
    myLinks.watch(["links"], () => {
      if (box.isConnected) draw();
    });
    return box;
  }

  private item(link: MyLink, me: Me | null): HTMLElement {
    const name = link.title === "" ? `/z/${link.id}` : link.title;
    const facts = [link.visibility, when(link.createdMs), link.expiresMs === null ? "" : `expires ${when(link.expiresMs)}`];
    const remove = el("button", { class: "quiet tool", title: "Delete", attrs: { type: "button", "aria-label": `Delete ${name}` } }, icon("trash"), el("span", {}, "Delete"));
    const told = el("span", { class: "told" });
    const more = this.opener("Revisions", `Revisions of ${name}`, ".revisions", () => this.revisionsOf(link.id));
    const access = link.visibility !== "public" && isSomebody(me) ? this.opener("Readers", `Readers of ${name}`, ".access-form", () => new AccessForm(link.id, me, this.say).node) : null;
    let sure = false;
    remove.addEventListener("click", () => {
      if (!sure) {
        sure = true;
        fill(remove, el("b", {}, "Delete for everyone?"));
        window.setTimeout(() => {
          sure = false;
          fill(remove, icon("trash"), el("span", {}, "Delete"));
        }, 4000);
        return;
      }
      void this.remove(link, told);
    });
    return el(
      "li",
      access === null ? {} : { class: "has-readers" },
      el("a", { attrs: { href: `/z/${link.id}` } }, name),
      el("span", { class: "note" }, facts.filter((f) => f !== "").join(" · ")),
      told,
      access,
      more,
      remove,
    );
  }

  /** A button that shows what `make` gives below it, and takes that away again. */
  private opener(text: string, label: string, what: string, make: () => HTMLElement): HTMLButtonElement {
    const opener = button(text, label, () => {
      const isOpen = opener.getAttribute("aria-expanded") === "true";
      opener.setAttribute("aria-expanded", String(!isOpen));
      if (isOpen) opener.parentElement?.querySelector(what)?.remove();
      else opener.parentElement?.append(make());
    });
    opener.setAttribute("aria-label", label);
    opener.setAttribute("aria-expanded", "false");
    return opener;
  }

  private async remove(link: MyLink, told: HTMLElement): Promise<void> {
    try {
      await deleteSnippet(link.id, link.token);
    } catch (e) {
      if (!(e instanceof Problem)) throw e;
      if (e.code !== "not-found") {
        told.textContent = e.message;
        return;
      }
    }
    forgetLink(link.id);
    this.say("Deleted: the link leads nowhere now");
  }
}
