// lessonwriter: a lesson of one's own, written in the page: its text, what is wrong with it, and its link.
import { readLesson } from "../api/client";
import { Problem } from "../api/problem";
import type { Lesson } from "../api/types";
import { lessonHash, type ShownLesson } from "../state/lesson";
import { absolute, toClipboard } from "./clipboard";
import { button, el, fill, saveFile } from "./dom";
import { say } from "./notices";

const PAUSE_MS = 300;

/** The Markdown of a lesson that came from the server as JSON. */
function beginning({ lesson, step }: ShownLesson): string {
  const kernel = lesson.steps[step]?.kernel ?? "";
  return `# My lesson\n\nWhat it is about.\n\n## The first step\n\nText, with **bold** words, \`code\` and [a stage](stage:trace) that opens.\n\n\`\`\`python kernel\n${kernel}\`\`\`\n\n\`\`\`view\nstage: trace\n\`\`\`\n\n### Task\n\nHow many kernels are above?\n\n\`\`\`choose\n- one\n- two\nanswer: one\nproof: has kernel import\nsays: One.\n\`\`\`\n`;
}

export async function openWriter(shown: ShownLesson, open: (lesson: Lesson, text: string, step: number) => void): Promise<void> {
  const text = el("textarea", { class: "lesson-text", attrs: { spellcheck: false, rows: 24, "aria-label": "Text of the lesson", "aria-describedby": "lesson-fault" } });
  const fault = el("p", { id: "lesson-fault", attrs: { role: "status" } });
  let read: Lesson | null = null;
  let timer = 0;
  const look = async () => {
    try {
      read = await readLesson(text.value);
      fill(fault, `✓ ${read.title}: ${read.steps.length} steps`);
    } catch (e) {
      if (!(e instanceof Problem)) throw e;
      read = null;
      fill(fault, `✕ ${e.message}`);
    }
    attempt.disabled = share.disabled = read === null;
  };
  const asShown = (): ShownLesson | null => (read ? { lesson: read, name: null, text: text.value, step: 0 } : null);
  const attempt = button("Open it", "Show the lesson as a learner sees it", () => {
    if (!read) return;
    dialog.close();
    open(read, text.value, 0);
  }, "primary");
  const share = button("Copy its link", "A link that contains the lesson; nothing is stored", () => {
    const own = asShown();
    if (own) void lessonHash(own).then(async (hash) => say((await toClipboard(absolute("/") + hash)) ? "Link copied" : "The link could not be copied: open the lesson, and copy the address"));
  }, "plain");
  const save = button("Save as a file", "lesson.md, for nkx lesson check", () => saveFile("lesson.md", new Blob([text.value], { type: "text/markdown" })), "plain");
  const dialog = el("dialog", { id: "lesson-writer", attrs: { "aria-labelledby": "lesson-writer-title" } },
    el("h2", { id: "lesson-writer-title" }, "A lesson of your own"),
    el("p", { class: "note" }, "Markdown; docs/lessons.md describes the form. A file ending in .md that is dropped on the page is opened as a lesson."),
    text, fault,
    el("div", { class: "dialog-actions" }, attempt, share, save, el("span", { class: "spring" }), button("Close", "Close", () => dialog.close(), "plain")));
  text.value = shown.text ?? beginning(shown);
  text.addEventListener("input", () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void look(), PAUSE_MS);
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  await look();
}
