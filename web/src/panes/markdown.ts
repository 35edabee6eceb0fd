// markdown: the part of Markdown that lessons use, as elements: paragraphs, lists, fenced code; code, bold, emphasis and links in
// them.  Anything else is shown as it is written.  [text](stage:NAME) is a button that opens a stage.
import { button, el } from "./dom";

type OpenStage = (key: string) => void;

const INLINE = /`([^`]+)`|\*\*(.+?)\*\*|\*([^*\s](?:[^*]*[^*\s])?)\*|\[([^\]]+)\]\(([^()\s]+)\)/g;

function link(text: string, to: string, open: OpenStage): Node {
  if (to.startsWith("stage:")) return button(text, `Open the stage ${to.slice(6)}`, () => open(to.slice(6)), "stage-link");
  if (/^(https?:\/\/|\/|#)/.test(to)) return el("a", { attrs: { href: to, ...(to.startsWith("#") ? {} : { target: "_blank", rel: "noopener noreferrer" }) } }, text);
  return document.createTextNode(text); // no other schemes
}

function inline(text: string, open: OpenStage): (Node | string)[] {
  const out: (Node | string)[] = [];
  let at = 0;
  for (const m of text.matchAll(INLINE)) {
    if (m.index > at) out.push(text.slice(at, m.index));
    at = m.index + m[0].length;
    if (m[1] !== undefined) out.push(el("code", {}, m[1]));
    else if (m[2] !== undefined) out.push(el("b", {}, ...inline(m[2], open)));
    else if (m[3] !== undefined) out.push(el("em", {}, m[3]));
    else out.push(link(m[4] ?? "", m[5] ?? "", open));
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

const ITEM = /^(?:[-*]|\d+\.) +/;

/** The lines of a list, each with the lines that go on with it. */
function listOf(lines: string[], open: OpenStage): HTMLElement {
  const items: string[] = [];
  for (const line of lines) {
    if (ITEM.test(line)) items.push(line.replace(ITEM, ""));
    else items.push(`${items.pop() ?? ""} ${line.trim()}`);
  }
  const children = items.map((text) => el("li", {}, ...inline(text, open)));
  return /^\d/.test(lines[0] ?? "") ? el("ol", {}, ...children) : el("ul", {}, ...children);
}

export function markdown(text: string, open: OpenStage): HTMLElement[] {
  const out: HTMLElement[] = [];
  let block: string[] = [];
  let code: string[] | null = null;
  const end = () => {
    if (block.length > 0) out.push(ITEM.test(block[0] ?? "") ? listOf(block, open) : el("p", {}, ...inline(block.join(" "), open)));
    block = [];
  };
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) {
      if (code) out.push(el("pre", {}, code.join("\n")));
      else end();
      code = code ? null : [];
    } else if (code) code.push(line);
    else if (line.trim() === "") end();
    else if (/^#{2,4} /.test(line)) {
      end();
      out.push(el("h4", {}, ...inline(line.replace(/^#+ /, ""), open)));
    } else block.push(line);
  }
  end();
  return out;
}
