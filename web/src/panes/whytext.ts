// whytext: a dialog with the whole chain of decisions that led to the selected operation, to read, and to copy into a report.
import type { KernelOutcome } from "../state/outcome";
import { rules } from "../state/rules";
import { whyText } from "../state/whytext";
import { toClipboard } from "./clipboard";
import { button, el } from "./dom";
import { say } from "./notices";
import { adoptStyle } from "../style/late";
import css from "../style/whytext.late.css";

adoptStyle(css);

export async function openWhyText(kernel: KernelOutcome, stage: number, op: number): Promise<void> {
  const text = whyText(kernel, stage, op, await rules());
  if (text === null) return;
  const copy = async () => say((await toClipboard(text)) ? "Copied" : "The text could not be copied: select it");
  const dialog = el(
    "dialog",
    { id: "why-text", attrs: { "aria-labelledby": "why-text-title" } },
    el("h2", { id: "why-text-title", attrs: { tabindex: -1, autofocus: true } }, "Why it is so"),
    el("pre", { attrs: { tabindex: 0, "aria-label": "The chain of decisions" } }, text),
    el("div", { class: "dialog-actions" }, button("Copy", "Copy the text", () => void copy(), "plain"), button("Close", "Close", () => dialog.close(), "plain")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
