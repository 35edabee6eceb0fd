// share: the address of what is seen, kept up to date while browsing and copied on request.
import type { AppStore } from "../state/app";
import { LONG_URL, writeFragment, type LinkState } from "../state/fragment";
import { currentRow, selectionText } from "../state/view";
import { byId, button, el, fill } from "./dom";

function linkState(store: AppStore): LinkState {
  const s = store.state;
  return {
    source: s.source,
    language: s.language,
    target: s.target,
    kernelName: (s.outcome ?? s.previous)?.kernels.length === 1 ? null : s.kernelName,
    stageKey: s.stageKey ?? currentRow(s)?.key ?? null,
    selection: selectionText(s),
    inputs: s.inputs,
    check: s.check,
    filter: s.filter,
    hideUnchanged: s.hideUnchanged,
  };
}

async function currentUrl(store: AppStore): Promise<string> {
  const base = location.href.replace(/#.*$/, "");
  return base + (await writeFragment(linkState(store)));
}

export class Share {
  private timer = 0;
  /** What this page wrote itself: a change to anything else came from the user. */
  written = location.hash;

  constructor(
    private readonly store: AppStore,
    private readonly say: (text: string) => void,
  ) {}

  /** From now on the address bar follows. */
  follow(): void {
    let first = true;
    this.store.watch(
      ["source", "target", "language", "stageKey", "kernelName", "anchor", "inputs", "check", "filter", "hideUnchanged"],
      () => {
        // an untouched page keeps its short address
        if (first) first = false;
        else this.soon();
      },
    );
  }

  private soon(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.update(), 400);
  }

  async update(): Promise<string> {
    window.clearTimeout(this.timer);
    const url = await currentUrl(this.store);
    this.written = new URL(url).hash;
    history.replaceState(history.state, "", url);
    return url;
  }

  async copy(): Promise<void> {
    const url = await this.update();
    const long = url.length > LONG_URL;
    const size = `${url.length.toLocaleString("en")} characters`;
    const warning = long ? `It has ${size}; some chat and mail programs cut links that long.` : "";
    try {
      await navigator.clipboard.writeText(url);
      this.say(long ? `Link copied. ${warning}` : "Link copied");
    } catch {
      this.offer(url, warning);
    }
  }

  /** For browsers that do not let the page copy (plain HTTP): the link, selected, ready for Ctrl+C. */
  private offer(url: string, warning: string): void {
    const dialog = byId<HTMLDialogElement>("share-dialog");
    const field = el("input", { attrs: { type: "text", readonly: true, value: url, "aria-label": "Link" } });
    fill(
      dialog,
      el("h2", { id: "share-title" }, "Link to what you see"),
      field,
      el("p", { class: "note" }, `Everything is in the link, nothing is stored. ${warning}`),
      button("Close", "Close", () => dialog.close(), "plain"),
    );
    dialog.showModal();
    field.select();
  }
}
