// share: keeps the address up to date with what the page shows, and opens the dialog that makes links.
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { LONG_URL, writeFragment, writeView, writeViewWithNotes } from "../state/fragment";
import { lessonHash } from "../state/lesson";
import { viewOf } from "../state/look";
import { sameNotes } from "../state/notes";
import { packPin } from "../state/pin";
import { settings } from "../state/settings";
import { isAsShared, pathOf } from "../state/shared";
import { absolute, toClipboard } from "./clipboard";
import type { IrPane } from "./ir";
import type { SourcePane } from "./source";
import type { Views } from "./views";

/** The parts of the page that a session needs. */
export interface SessionPlace {
  store: AppStore;
  compiler: Compiler;
  source: SourcePane;
  ir: IrPane;
  views: Views;
}

export class Share {
  private timer = 0;
  /** The address that this page wrote or read last; any other address came from the user. */
  private known = location.href;

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
    private readonly say: (text: string) => void,
    private readonly announce: (text: string) => void,
    private readonly sessions: SessionPlace,
  ) {}

  /** From now on the address follows the page's state. */
  follow(): void {
    let first = true;
    this.store.watch(
      ["session", "lesson", "source", "filename", "files", "tab", "target", "language", "stageKey", "kernelName", "beside", "step", "picture", "diffFrom", "unified", "anchor", "marked", "notes", "inputs", "check", "pipeline", "version", "byHand", "patterns", "filter", "hideUnchanged", "simulate", "pinned", "mode", "comparedKey"],
      () => {
        // an unchanged page keeps its short address
        if (!first || this.store.state.touched) this.soon();
        first = false;
      },
    );
  }

  private soon(): void {
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.update(), 400);
  }

  private view() {
    return viewOf(this.store.state, settings.state.splits);
  }

  /** The link to what the page shows: a stored one while the kernel is the stored one. */
  private async link(): Promise<string> {
    const s = this.store.state;
    if (s.lesson) return absolute("/") + (await lessonHash(s.lesson));
    const { shared, source, filename, files, language, target, inputs, check, pipeline, version, byHand, patterns, simulate, parent, pinned } = s;
    const view = this.view();
    const pin = pinned ? await packPin(pinned) : null;
    if (shared && !pin && isAsShared(s)) return absolute(pathOf(shared)) + (sameNotes(shared.notes, s.notes) ? writeView(view) : await writeViewWithNotes(view));
    return absolute("/") + (await writeFragment({ source, filename, files, language, target, inputs, check, pipeline, version, byHand, patterns, simulate, pin, parent, view }));
  }

  /** Whether the user has given the page another address; it is known from then on. */
  takeAddress(): boolean {
    const isOther = location.href !== this.known;
    this.known = location.href;
    return isOther;
  }

  async update(): Promise<string> {
    window.clearTimeout(this.timer);
    const { session } = this.store.state;
    const url = session ? absolute(`/s/${session}`) : await this.link();
    // an address that the user has just given is about to be opened
    if (location.href !== this.known) return url;
    this.known = url;
    history.replaceState(history.state, "", url);
    return url;
  }

  /** Ctrl+S: copies the link at once, unless it is too long for some programs. */
  async copy(): Promise<void> {
    const url = await this.update();
    if (url.length > LONG_URL || !(await toClipboard(url))) await this.openWith(url);
    else this.say("Link copied");
  }

  async openDialog(): Promise<void> {
    const url = await this.update();
    await this.openWith(this.store.state.session ? await this.link() : url);
  }

  private async openWith(url: string): Promise<void> {
    try {
      const { ShareDialog } = await import("./dialogs");
      await new ShareDialog(this.store, this.compiler, this.say, this.announce, this.sessions).open(url);
    } catch (e) {
      console.error(e);
      this.say("The dialog could not be loaded: is the server reachable?");
    }
  }
}
