// keycaps: keys as the help and the palette show them.
import { el } from "./dom";

const isMac = /Mac|iP(hone|ad)/.test(navigator.platform);

/** "j k · ↓ ↑": keys with a space between them, alternatives with a dot. */
export function keyCaps(text: string): Node[] {
  const spelled = isMac ? text.replaceAll("Ctrl+", "⌘") : text;
  return spelled.split(" · ").flatMap((alternative, i) => [
    ...(i > 0 ? [document.createTextNode(" or ")] : []),
    ...(/^(hover|click|double click|←)/.test(alternative)
      ? [document.createTextNode(alternative)]
      : alternative.split(" ").map((k) => (/^(then|\.\.\.)$/.test(k) ? document.createTextNode(` ${k} `) : el("kbd", {}, k)))),
  ]);
}
