// versions: the dialog with the earlier versions of the user's kernels, to open or to compare with what is shown.
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { draftOf, type Draft, showDraft } from "../state/draft";
import { compilePin, jobOf } from "../state/pin";
import { forgetVersions, keepVersion, sameDraft, type Version, versions } from "../state/versions";
import { adoptStyle } from "../style/late";
import css from "../style/versions.late.css";
import { button, el, fill, plural } from "./dom";
import { when } from "./when";

const AGES: readonly [number, Intl.RelativeTimeFormatUnit][] = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
];

/** "5 min. ago". */
function ago(ms: number): string {
  const format = new Intl.RelativeTimeFormat("en", { style: "short" });
  for (const [size, unit] of AGES) if (ms >= size) return format.format(-Math.floor(ms / size), unit);
  return "just now";
}

/** What the kernel is called: its functions, or its first line. */
function nameOf({ source }: Draft): string {
  const functions = [...source.matchAll(/^(?:def|func\.func @|ENTRY %?)\s*([\w.]+)/gm)].map((m) => m[1] ?? "");
  return functions.slice(-2).join(", ") || (source.trim().split("\n")[0] ?? "").slice(0, 60);
}

/** How many lines each has that the other does not have, "" if none. */
function difference(version: Draft, shown: Draft): string {
  const [a, b] = [version.source.split("\n"), shown.source.split("\n")];
  const count = (list: string[], other: string[]) => {
    const rest = new Set(other);
    return list.filter((l) => !rest.has(l)).length;
  };
  const [more, fewer] = [count(b, a), count(a, b)];
  const parts = [more > 0 ? `${plural(more, "line")} added since` : "", fewer > 0 ? `${plural(fewer, "line")} removed since` : ""];
  if (version.target !== shown.target) parts.push(`for ${version.target}`);
  return parts.filter((p) => p !== "").join(", ");
}

class Versions {
  private readonly list = el("ul", { class: "versions" });
  private readonly forget = button("Forget all", "Delete all versions from this browser", () => this.forgetAll(), "plain");
  private readonly dialog = el(
    "dialog",
    { attrs: { "aria-labelledby": "versions-title" } },
    el("h2", { id: "versions-title" }, "Versions"),
    el("p", { class: "note" }, "Your kernels as they compiled, in this browser only."),
    this.list,
    el("div", { class: "versions-foot" }, this.forget, button("Close", "Close", () => this.dialog.close(), "plain")),
  );
  private isSure = false;

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
  ) {
    adoptStyle(css);
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", (e) => e.target === this.dialog && this.dialog.close());
  }

  open(): void {
    this.isSure = false;
    this.draw();
    if (!this.dialog.open) this.dialog.showModal();
  }

  private draw(): void {
    const shown = draftOf(this.store.state);
    const others = versions().filter((v) => !shown || !sameDraft(v.draft, shown));
    this.forget.hidden = others.length === 0;
    this.forget.textContent = this.isSure ? "Forget all for good?" : "Forget all";
    fill(this.list, ...others.map((v) => this.item(v, shown)));
    if (others.length === 0) fill(this.list, el("li", {}, el("span", { class: "note" }, "There are none yet: a version is kept when your own kernel has compiled.")));
  }

  private item(version: Version, shown: Draft | null): HTMLElement {
    const age = ago(Date.now() - version.atMs);
    const name = nameOf(version.draft);
    const open = button("Open", "Show it; what is shown now stays in this list", () => this.show(version.draft));
    const compare = button("Compare", "Pin it as A, and compare what is shown with it", () => this.compare(version.draft, `${name}, ${when(version.atMs)}`));
    for (const [b, what] of [[open, "Open"], [compare, "Compare"]] as const) b.setAttribute("aria-label", `${what} ${name}, ${age}`);
    const facts = [plural(version.draft.source.split("\n").length, "line"), shown ? difference(version.draft, shown) : ""];
    return el(
      "li",
      {},
      el("span", { class: "age", title: when(version.atMs) }, age),
      el("span", { class: "what" }, el("b", {}, name), el("span", { class: "note" }, facts.filter((f) => f !== "").join(" · "))),
      open,
      compare,
    );
  }

  private show(draft: Draft): void {
    const shown = draftOf(this.store.state);
    if (shown) keepVersion(shown, true);
    showDraft(this.store, draft);
    void this.compiler.now();
    this.dialog.close();
  }

  private compare(draft: Draft, name: string): void {
    this.store.set({ pinned: { job: jobOf({ ...draft, check: false, pipeline: this.store.state.pipeline, version: this.store.state.version, simulate: false, edited: null, byHand: [] }), outcome: null, problem: null, name }, mode: "compare", pane: "ir" });
    void compilePin(this.store);
    this.dialog.close();
  }

  private forgetAll(): void {
    if (this.isSure) forgetVersions();
    this.isSure = !this.isSure;
    this.draw();
  }
}

let dialog: Versions | null = null;

export function openVersions(store: AppStore, compiler: Compiler): void {
  dialog ??= new Versions(store, compiler);
  dialog.open();
}
