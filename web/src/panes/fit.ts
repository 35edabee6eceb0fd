// fit: keeps a row of buttons, and the title beside it, in sight.  Where they do not fit, labels give way, from the last button
// on, to where only icons stand.

const SLACK = 8; // widths are rounded

/** Of buttons that have an icon and a label.  `title` is the text that must not be cut for the labels. */
export function fitRow(row: HTMLElement, title: HTMLElement): void {
  const head = row.parentElement ?? row;
  const cut = (e: HTMLElement): number => e.scrollWidth - e.clientWidth;
  const labels = (): HTMLElement[] => [...row.querySelectorAll<HTMLElement>(":scope > button.tool > .ico ~ span")];
  const fit = (): void => {
    const all = labels();
    for (const label of all) label.hidden = false;
    // everything is read before anything is changed, so that the page is laid out once
    const widths = all.map((label) => label.offsetWidth);
    let over = cut(row) + cut(title) + (head === row ? 0 : cut(head));
    if (over > 0) over += SLACK;
    for (let i = all.length - 1; i >= 0 && over > 0; i--) {
      over -= (widths[i] ?? 0) + 5;
      const label = all[i];
      if (label) label.hidden = true;
    }
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
