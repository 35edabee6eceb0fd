// firstline: what the page is for, until the first edit, selection or link: one line above the panes.
import type { AppStore } from "../state/app";
import { byId, button, el, fill } from "./dom";

const KEY = "nkx.greeted";

function wasGreeted(): boolean {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return false;
  }
}

export function mountFirstLine(store: AppStore): void {
  const box = byId("first-line");
  if (wasGreeted()) return;
  const close = () => {
    box.hidden = true;
    try {
      localStorage.setItem(KEY, "1");
    } catch {
      // no storage: the line is there again next time
    }
  };
  fill(box, el("b", {}, "NumPy in, Trainium instructions out."), " Edit the kernel, or paste yours; click any expression to follow it. New to compilers? ", el("a", { attrs: { href: "#lesson=tracing" } }, "Take the first lesson"), el("span", { class: "spring" }), button("×", "Close", close));
  store.watch(["touched", "anchor", "shared", "lesson", "session"], () => {
    const { touched, anchor, shared, lesson, session } = store.state;
    if (shared || lesson || session !== null) box.hidden = true;
    else if (touched || anchor) {
      if (!box.hidden) close();
    } else box.hidden = wasGreeted();
  });
}
