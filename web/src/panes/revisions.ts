// revisions: the list of what a stored link has shown.  None of them changes; the owner, whose browser has the link's edit
// token, can add the kernel on the page as the newest.
import { getSnippet, reviseSnippet } from "../api/client";
import { Problem } from "../api/problem";
import type { Snippet } from "../api/types";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { viewOf, viewToJson } from "../state/look";
import { tokenOf } from "../state/mylinks";
import { settings } from "../state/settings";
import { sameNotes } from "../state/notes";
import { isAsShared, sharedOf } from "../state/shared";
import { button, el, fill } from "./dom";
import { compareWith } from "./shared";
import { when } from "./when";

export interface RevisionsContext {
  store: AppStore;
  compiler: Compiler;
  say(text: string): void;
  /** Closes the dialog that has the list. */
  close(): void;
}

export class Revisions {
  readonly node = el("div", { class: "revisions" });
  private readonly list = el("ol", {});
  private readonly told = el("p", { class: "share-failed", attrs: { role: "alert" } });

  constructor(
    private readonly at: RevisionsContext,
    private readonly id: string,
  ) {
    const token = tokenOf(id);
    const add = button("Add the present kernel", "Keeps what the page shows as the newest revision of this link", () => token !== null && void this.add(token, add), "plain");
    fill(this.node, this.list, token === null ? null : add, this.told);
    void this.read();
  }

  private async read(): Promise<Snippet | null> {
    try {
      const snippet = await getSnippet(this.id);
      this.draw(snippet);
      return snippet;
    } catch (e) {
      this.fail(e, "The revisions cannot be read");
      return null;
    }
  }

  private fail(e: unknown, what: string): void {
    if (!(e instanceof Problem)) throw e;
    this.told.textContent = `${what}: ${e.message}`;
  }

  private draw(snippet: Snippet): void {
    const { store, say, close } = this.at;
    const newest = snippet.revision;
    const item = (n: number, ms: number) => {
      const compare = button("Compare", `Revision ${n} as A, the present kernel as B`, () => {
        close();
        void compareWith(store, this.id, n, say);
      });
      compare.setAttribute("aria-label", `Compare with revision ${n}`);
      const name = el("a", { attrs: { href: `/z/${this.id}?revision=${n}` } }, `Revision ${n}`);
      return el("li", {}, name, el("span", { class: "note" }, `${when(ms)}${n === newest ? ", the newest" : ""}`), compare);
    };
    fill(this.list, ...snippet.revisions.map((r) => item(r.revision, r.created_ms)).reverse());
  }

  private async add(token: string, pressed: HTMLButtonElement): Promise<void> {
    const { store, compiler, say } = this.at;
    if (pressed.disabled) return;
    const { shared } = store.state;
    const own = shared?.id === this.id ? shared : null;
    this.told.textContent = own?.revision === null && isAsShared(store.state) && sameNotes(own.notes, store.state.notes) ? "The newest revision is this kernel already." : "";
    if (this.told.textContent !== "") return;
    pressed.disabled = true;
    const title = own?.title ?? "";
    try {
      const view = viewToJson(viewOf(store.state, settings.state.splits));
      const { revision } = await reviseSnippet(this.id, token, { ...compiler.request(), view, ...(title === "" ? {} : { title }) });
      const snippet = await this.read();
      // the page is no fork of the link any more: it shows the newest revision
      if (snippet && store.state.shared?.id === this.id) store.set({ shared: sharedOf(snippet) });
      say(`Stored as revision ${revision}`);
    } catch (e) {
      this.fail(e, "It was not stored");
    } finally {
      pressed.disabled = false;
    }
  }
}
