// fit: keeps a row of buttons, and the title beside it, in sight.  Where they do not fit, labels give way, from the last button
// on, to where only icons stand; then whole buttons, which a menu at the end of the row has.
import { button } from "./dom";
import { say } from "./notices";

const SLACK = 8; // widths are rounded
const MORE = 28; // the button that opens the menu
const TITLE = 72; // as much of the title stays when buttons give way
const SMALL = 440; // a narrower pane is used by a finger: it has few buttons

/** The buttons in the order in which they give way. */
function giving(buttons: readonly HTMLButtonElement[]): HTMLButtonElement[] {
  const of = (name: string): HTMLButtonElement[] => buttons.filter((b) => b.classList.contains(name));
  return [...of("spare"), ...of("look"), ...buttons.filter((b) => !b.matches(".spare, .look")).reverse()];
}

/** Of buttons that have an icon and a label.  `title` is the text that must not be cut for the labels. */
export function fitRow(row: HTMLElement, title: HTMLElement): void {
  const head = row.parentElement ?? row;
  const cut = (e: HTMLElement): number => e.scrollWidth - e.clientWidth;
  const labels = (): HTMLElement[] => [...row.querySelectorAll<HTMLElement>(":scope > button.tool > .ico ~ span")];
  const buttons = (): HTMLButtonElement[] => [...row.querySelectorAll<HTMLButtonElement>(":scope > button")];
  const out = (): HTMLButtonElement[] => buttons().filter((b) => b.classList.contains("no-room"));
  const more = button("⋯", "More tools of this pane", () => void open(), "quiet more");
  more.setAttribute("aria-label", more.title);
  more.setAttribute("aria-haspopup", "menu");
  const open = async (): Promise<void> => {
    try {
      (await import("./moretools")).openMoreTools(more, out());
    } catch {
      say("The menu could not be loaded: is the server reachable?");
    }
  };
  row.after(more);
  const fit = (): void => {
    const all = labels();
    for (const label of all) label.hidden = false;
    for (const b of out()) b.classList.remove("no-room");
    head.classList.remove("short");
    // everything is read before anything is changed, so that the page is laid out once
    const widths = all.map((label) => label.offsetWidth);
    const order = giving(buttons());
    const labelled = new Map(all.map((label, i) => [label.parentElement, (widths[i] ?? 0) + 5]));
    const sizes = order.map((b) => b.offsetWidth - (labelled.get(b) ?? 0));
    const isSmall = head.clientWidth < SMALL;
    let over = cut(row) + cut(title) + (head === row ? 0 : cut(head));
    const ofTitle = Math.max(Math.min(title.scrollWidth - TITLE, cut(title)), 0);
    if (over > 0) over += SLACK;
    for (let i = all.length - 1; i >= 0 && over > 0; i--) {
      over -= (widths[i] ?? 0) + 5;
      const label = all[i];
      if (label) label.hidden = true;
    }
    over -= ofTitle;
    let gone = 0;
    order.forEach((b, i) => {
      const size = sizes[i] ?? 0;
      if (size <= 0 || (over <= 0 && !(isSmall && b.matches(".spare")))) return;
      if (gone++ === 0) over += MORE;
      over -= size + 2;
      b.classList.add("no-room");
    });
    head.classList.toggle("short", gone > 0);
  };
  let isAsked = false;
  const soon = (): void => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      fit();
    });
  };
  new ResizeObserver(soon).observe(head);
  new MutationObserver(soon).observe(title, { childList: true, characterData: true, subtree: true });
  new MutationObserver((changes) => {
    // what is hidden again has not changed
    const isOther = (c: MutationRecord): boolean => c.target instanceof HTMLElement && !c.target.matches("span") && (c.type !== "attributes" || c.oldValue !== c.target.getAttribute("hidden"));
    if (changes.some(isOther)) soon();
  }).observe(row, { childList: true, attributes: true, attributeFilter: ["hidden"], attributeOldValue: true, subtree: true });
}
