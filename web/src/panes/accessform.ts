// accessform: who may open a stored link, and the form by which who may change that does.
import { getSnippet, shareSnippet } from "../api/client";
import { Problem } from "../api/problem";
import type { Access, AccessRequest, Me } from "../api/types";
import { setVisibility, tokenOf } from "../state/mylinks";
import { el, fill } from "./dom";
import { namesOf } from "./whoami";

/** The two fields of names. `id` begins their ids; `own`: the user's groups, which are offered. */
export function nameFields(id: string, own: readonly string[]): { node: HTMLElement; people: HTMLInputElement; groups: HTMLInputElement } {
  const people = el("input", { id: `${id}-people`, attrs: { type: "text", placeholder: "names or addresses, separated by commas", autocomplete: "off" } });
  const groups = el("input", { id: `${id}-groups`, attrs: { type: "text", placeholder: "groups of the directory, separated by commas", autocomplete: "off" } });
  groups.setAttribute("list", `${id}-own-groups`);
  const node = el(
    "div",
    { class: "share-access" },
    el("label", { class: "share-field" }, el("span", {}, "People"), people),
    el("label", { class: "share-field" }, el("span", {}, "Groups"), groups),
    el("datalist", { id: `${id}-own-groups` }, ...own.map((g) => el("option", { attrs: { value: g } }))),
  );
  return { node, people, groups };
}

/** Whether the user may change who opens the link; the server decides. */
function mayChange(id: string, access: Access | undefined, me: Me | null): boolean {
  return tokenOf(id) !== null || me?.role === "operator" || (access !== undefined && me !== null && me.name === access.owner);
}

export class AccessForm {
  readonly node = el("div", { class: "access-form" });
  private readonly told = el("p", { class: "share-failed", attrs: { role: "alert" } });

  /** Reads the link; the node stays empty if it is public, or the user may not change it. */
  constructor(
    private readonly id: string,
    private readonly me: Me | null,
    private readonly say: (text: string) => void,
  ) {
    void this.read();
  }

  private async read(): Promise<void> {
    try {
      const { visibility, access } = await getSnippet(this.id);
      if (visibility !== "public" && mayChange(this.id, access, this.me)) this.draw(visibility === "private", access);
    } catch (e) {
      if (!(e instanceof Problem)) throw e;
      fill(this.node, el("p", { class: "share-failed", attrs: { role: "alert" } }, `It cannot be read: ${e.message}`));
    }
  }

  private draw(isPrivate: boolean, access: Access | undefined): void {
    const fields = nameFields(`access-${this.id}`, this.me?.groups ?? []);
    const only = el("input", { attrs: { type: "checkbox" }, on: { change: () => (fields.node.hidden = !only.checked) } });
    only.checked = isPrivate;
    fields.node.hidden = !isPrivate;
    fields.people.value = (access?.people ?? []).join(", ");
    fields.groups.value = (access?.groups ?? []).join(", ");
    // a link that nobody owns yet becomes the user's, who has to be somebody
    only.disabled = !isPrivate && (this.me === null || this.me.kind === "anonymous");
    const save = el("button", { class: "plain", attrs: { type: "submit" } }, "Save");
    const form = el(
      "form",
      { attrs: { "aria-label": "Who may open it" } },
      el("label", { class: "share-kind" }, only, el("span", {}, `Only ${access === undefined ? "I" : access.owner}, and these people and groups`)),
      fields.node,
      el("div", { class: "dialog-end" }, save),
      this.told,
    );
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      if (save.disabled) return;
      save.disabled = true;
      const wanted: AccessRequest = only.checked ? { visibility: "private", access: { people: namesOf(fields.people.value), groups: namesOf(fields.groups.value) } } : { visibility: "unlisted" };
      void this.change(wanted).finally(() => (save.disabled = false));
    });
    fill(this.node, form);
  }

  private async change(wanted: AccessRequest): Promise<void> {
    try {
      const now = await shareSnippet(this.id, tokenOf(this.id), wanted);
      this.told.textContent = "";
      setVisibility(this.id, now.visibility); // the list of links is drawn anew, without this form
      this.say(now.visibility === "private" ? "Saved: others cannot open the link any more" : "Saved: whoever has the link can open it");
    } catch (e) {
      if (!(e instanceof Problem)) throw e;
      this.told.textContent = `Not saved: ${e.message}`;
    }
  }
}
