// menu: what the menus of the page have in common.

/** The arrow keys, Home and End go from entry to entry; Tab leaves the menu. */
export function walkMenu(e: KeyboardEvent, menu: HTMLElement): void {
  const items = [...menu.querySelectorAll<HTMLElement>('[role="menuitem"]')];
  const at = items.indexOf(menu.ownerDocument.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[e.key];
  if (e.key === "Tab") menu.hidePopover();
  if (to === undefined) return;
  e.preventDefault();
  items.at(to % items.length)?.focus();
}
