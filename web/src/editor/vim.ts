// vim: Vim's keys in the source editor.  Loaded when the user switches them on.
import type { Extension } from "@codemirror/state";
import { Vim, vim } from "@replit/codemirror-vim";

/** `compile`: what :w does. */
export function vimKeys(compile: () => void): Extension {
  Vim.defineEx("write", "w", compile);
  return vim({ status: true });
}
