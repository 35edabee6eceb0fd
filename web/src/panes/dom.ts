// dom: makes elements.  Text is only ever set through textContent.

type Child = Node | string | null | false | undefined;
type Handlers = { [K in keyof HTMLElementEventMap]?: (e: HTMLElementEventMap[K]) => void };

export interface Props {
  class?: string;
  id?: string;
  title?: string;
  attrs?: Record<string, string | number | boolean | null | undefined>;
  on?: Handlers;
}

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  if (props.class) node.className = props.class;
  if (props.id) node.id = props.id;
  if (props.title) node.title = props.title;
  for (const [name, value] of Object.entries(props.attrs ?? {})) setAttr(node, name, value);
  for (const [name, handler] of Object.entries(props.on ?? {})) node.addEventListener(name, handler as EventListener);
  append(node, children);
  return node;
}

function append(node: Element, children: Child[]): void {
  for (const child of children) if (child !== null && child !== undefined && child !== false) node.append(child);
}

/** Sets or removes an attribute, if it is not so already. */
export function setAttr(node: Element, name: string, value: string | number | boolean | null | undefined): void {
  const text = value === null || value === undefined || value === false ? null : value === true ? "" : String(value);
  if (node.getAttribute(name) === text) return;
  if (text === null) node.removeAttribute(name);
  else node.setAttribute(name, text);
}

/** Sets the text of an element without other content, if it is not so already: what does not change is not laid out again. */
export function setText(node: Element, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

export function fill(node: Element, ...children: Child[]): void {
  node.replaceChildren();
  append(node, children);
}

/** As fill, but what is there stays if it is the same.  For content that has no handlers. */
export function refill(node: Element, ...children: Child[]): void {
  const wanted = node.cloneNode(false) as Element;
  append(wanted, children);
  wanted.normalize();
  if (!wanted.isEqualNode(node)) node.replaceChildren(...wanted.childNodes);
}

/** Makes the nodes the children from the index-th on; those that are there already stay.  Returns whether anything moved. */
export function arrange(parent: Element, index: number, nodes: readonly Node[]): boolean {
  const wanted = new Set(nodes);
  const gone = [...parent.childNodes].slice(index).filter((child) => !wanted.has(child as Node));
  for (const child of gone) child.remove();
  let isMoved = gone.length > 0;
  let at = parent.childNodes[index] ?? null;
  for (const node of nodes) {
    if (node === at) {
      at = at.nextSibling as ChildNode | null;
      continue;
    }
    parent.insertBefore(node, at);
    isMoved = true;
  }
  return isMoved;
}

export function button(label: string, title: string, run: () => void, cls = "quiet"): HTMLButtonElement {
  return el("button", { class: cls, title, attrs: { type: "button" }, on: { click: run } }, label);
}

/** A button that is on or off. */
export function toggle(label: string, title: string, run: () => void): HTMLButtonElement {
  const b = button(label, title, run, "quiet toggle");
  b.setAttribute("aria-pressed", "false");
  return b;
}

/** Hands a file to the browser's downloads. */
export function saveFile(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  el("a", { attrs: { href: url, download: name } }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000); // the download has its own reference by then
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const node = document.getElementById(id);
  if (!node) throw new Error(`index.html has no #${id}`);
  return node as T;
}

export function ms(us: number): string {
  const t = us / 1000;
  return t >= 100 ? t.toFixed(0) : t.toFixed(1);
}

const NUMBER = new Intl.NumberFormat("en"); // toLocaleString makes one at each call

/** "12,345" */
export function count(n: number): string {
  return NUMBER.format(n);
}

export function plural(n: number, one: string, many = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}
