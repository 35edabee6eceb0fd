// windows: panes in windows of their own.
//
// Such a window is this page again, with one pane and the state of the page that opened it: the selection, the stages and the
// text are the same objects, so that nothing has to be sent.  Its place here is a strip with its name until it is closed.
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import type { Pane } from "../state/room";
import { editorName } from "../state/scope";
import { byId } from "./dom";
import type { Room } from "./room";

/** What the page gives to the windows that it has opened. */
export interface Host {
  store: AppStore;
  compiler: Compiler;
  share(): void;
  /** A window shows the pane; null: not any more. */
  shows(pane: Pane, window: Window | null): void;
}

export type WithHost = Window & { nkx?: Host };

const SIZE_MIN = { width: 420, height: 320 };

export class Windows {
  private readonly open = new Map<Pane, Window>();

  constructor(
    page: { store: AppStore; compiler: Compiler; share(): void },
    private readonly room: Room,
    private readonly say: (text: string) => void,
  ) {
    (window as WithHost).nkx = { ...page, shows: (pane, w) => this.shows(pane, w) };
    // without its page, a window has nothing to show
    window.addEventListener("pagehide", () => this.open.forEach((w) => w.close()));
  }

  /** Opens a pane's window, or comes back to it. */
  pop(pane: Pane): void {
    const known = this.open.get(pane);
    if (known) {
      known.focus();
      return;
    }
    const { width, height } = byId(`${pane}-pane`).getBoundingClientRect();
    const [w, h] = [Math.max(Math.round(width), SIZE_MIN.width), Math.max(Math.round(height), SIZE_MIN.height)];
    const opened = window.open(`/?window=${pane}`, `nkx-${pane}-${editorName}`, `popup,width=${w},height=${h}`);
    if (!opened) this.say("The browser did not open a window: allow this page to open pop-up windows.");
  }

  /** Closes a pane's window: the pane is back in its place. */
  back(pane: Pane): void {
    this.open.get(pane)?.close();
    this.shows(pane, null);
  }

  private shows(pane: Pane, opened: Window | null): void {
    if (opened) this.open.set(pane, opened);
    else this.open.delete(pane);
    this.room.lend(pane, opened ? () => this.back(pane) : null);
  }
}
