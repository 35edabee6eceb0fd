// moretools: a menu of the buttons for which a row has no room.
import { el } from "./dom";
import { walkMenu } from "./menu";

/** Opens the menu below `opener`, the button that stands for `hidden`.  An entry does what its button does. */
export function openMoreTools(opener: HTMLButtonElement, hidden: readonly HTMLButtonElement[]): void {
  const entry = (b: HTMLButtonElement): HTMLElement => {
    const run = (): void => {
      menu.hidePopover();
      b.click();
    };
    const words = el("span", {}, b.title || b.getAttribute("aria-label"));
    return el("button", { class: "tool", attrs: { type: "button", role: "menuitem", tabindex: -1, "aria-current": b.getAttribute("aria-pressed") === "true" ? "true" : null }, on: { click: run } }, b.querySelector(".ico")?.cloneNode(true), words);
  };
  const menu = el("div", { class: "menu more-tools", attrs: { popover: "auto", role: "menu", "aria-label": "More tools" } });
  menu.append(...hidden.map(entry));
  menu.addEventListener("keydown", (e) => walkMenu(e, menu));
  menu.addEventListener("toggle", (e) => (e as ToggleEvent).newState === "closed" && menu.remove());
  opener.after(menu);
  const { bottom, right } = opener.getBoundingClientRect();
  menu.style.top = `${bottom + 4}px`;
  menu.style.right = `${Math.max(document.documentElement.clientWidth - right, 8)}px`;
  menu.showPopover();
  menu.querySelector<HTMLElement>('[role="menuitem"]')?.focus();
}
