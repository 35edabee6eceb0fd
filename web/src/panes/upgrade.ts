// upgrade: the dialog that shows what an upgrade of NKI kernels changes, before it replaces the text.
import { isAbort } from "../api/client";
import { Problem } from "../api/problem";
import { DiffColumns } from "../editor/diffcolumns";
import type { DiffSide } from "../editor/diffview";
import type { AppStore } from "../state/app";
import { linesOfText } from "../state/beta1";
import { tabOf, textOfTab } from "../state/files";
import { localDiff } from "../state/pairs";
import { askUpgrade, changesBetween, type UpgradedFile } from "../state/upgrade";
import { adoptStyle } from "../style/late";
import css from "../style/upgrade.late.css";
import { button, el, fill, plural } from "./dom";
import type { KnobEditor } from "./offers";
import { say } from "./notices";

/** Pixels; in a narrower window two columns show too little of each line. */
const SPLIT_MIN = 900;

interface Changed {
  file: UpgradedFile;
  from: string[];
  to: string[];
}

function side(lines: readonly string[]): DiffSide {
  return { language: "python", origin: null, lines, short: null };
}

class UpgradeDialog {
  private readonly said = el("p", { class: "note", attrs: { role: "status" } });
  private readonly pick = el("select", { attrs: { "aria-label": "File" } });
  private readonly host = el("div", { class: "editor columns", id: "upgrade-diff" });
  private readonly marks = el("ul", { class: "upgrade-marks", attrs: { "aria-label": "To be done by hand" } });
  private readonly replace = button("Replace the text", "Write the new text into the editor; Ctrl+Z takes it back", () => this.apply(), "primary");
  private readonly dialog = el(
    "dialog",
    { class: "upgrade", attrs: { "aria-labelledby": "upgrade-title" } },
    el("h2", { id: "upgrade-title" }, "Upgrade from NKI beta 1"),
    this.said,
    this.pick,
    this.host,
    this.marks,
    el("div", { class: "upgrade-foot" }, button("Cancel", "Leave the text as it is", () => this.dialog.close(), "plain"), this.replace),
  );
  private readonly columns = new DiffColumns(this.host, { picked: () => undefined, moved: () => undefined });
  private asked: AbortController | null = null;
  private changed: Changed[] = [];

  constructor(
    private readonly store: AppStore,
    private readonly editor: KnobEditor,
    private readonly goToMark: () => void,
  ) {
    adoptStyle(css);
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", (e) => e.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => this.asked?.abort());
    this.pick.addEventListener("change", () => this.draw());
  }

  async open(): Promise<void> {
    if (this.dialog.open) return;
    this.tell("Rewriting…");
    this.dialog.showModal();
    const asked = (this.asked = new AbortController());
    try {
      const files = await askUpgrade(this.store.state, asked.signal);
      if (asked === this.asked && this.dialog.open) this.show(files);
    } catch (e) {
      if (isAbort(e)) return;
      if (!(e instanceof Problem)) throw e;
      if (asked === this.asked) this.tell(`The kernels could not be rewritten. ${e.message}`);
    }
  }

  private tell(text: string): void {
    this.said.textContent = text;
    this.changed = [];
    this.pick.hidden = this.host.hidden = this.marks.hidden = this.replace.hidden = true;
  }

  private show(files: readonly UpgradedFile[]): void {
    const { state } = this.store;
    this.changed = files.flatMap((file) => {
      const tab = tabOf(state, file.name);
      const [from, to] = [linesOfText(tab === undefined ? "" : textOfTab(state, tab)), linesOfText(file.source)];
      return tab === undefined || from.join("\n") === to.join("\n") ? [] : [{ file, from, to }];
    });
    const n = this.changed.reduce((sum, c) => sum + c.file.marks.length, 0);
    if (this.changed.length === 0) {
      this.tell("There is nothing to rewrite.");
      return;
    }
    const left = n === 1 ? "1 place is left to be done by hand, below a comment." : `${n} places are left to be done by hand, each below a comment.`;
    this.said.textContent = n === 0 ? "Everything is rewritten." : left;
    this.pick.hidden = this.changed.length < 2;
    fill(this.pick, ...this.changed.map((c, i) => el("option", { attrs: { value: String(i) } }, c.file.name)));
    this.host.hidden = this.marks.hidden = this.replace.hidden = false;
    this.draw();
    this.replace.focus();
  }

  /** Shows the chosen file. */
  private draw(): void {
    const now = this.changed[Number(this.pick.value) || 0];
    if (!now) return;
    const { file, from, to } = now;
    const labels = { both: `Changes of ${file.name}`, from: `${file.name} now`, to: `${file.name}, rewritten` };
    this.columns.show({ from: side(from), to: side(to), labels }, localDiff(from, to), window.innerWidth < SPLIT_MIN);
    const item = (line: number, reason: string) => el("li", {}, button(`line ${line}: ${reason}`, "Show it above", () => this.columns.goToLine(line), "quiet"));
    fill(this.marks, ...file.marks.map((m) => item(m.line, m.reason)));
    this.marks.hidden = file.marks.length === 0;
  }

  private apply(): void {
    const n = this.changed.reduce((sum, c) => sum + c.file.marks.length, 0);
    // the main file is written last, so that it is the one that is shown
    for (const { file, from, to } of [...this.changed].reverse()) this.editor.write(file.name, changesBetween(from, to));
    this.dialog.close();
    if (n > 0) this.goToMark();
    const files = this.changed.length > 1 ? ` in ${plural(this.changed.length, "file")}` : "";
    say(`Upgraded${files}. ${n > 0 ? `${plural(n, "place")} to be done by hand: the button "by hand" goes to the next one. ` : ""}Ctrl+Z takes it back${files ? ", in each file" : ""}.`);
  }
}

let dialog: UpgradeDialog | null = null;

export async function openUpgrade(store: AppStore, editor: KnobEditor, goToMark: () => void): Promise<void> {
  dialog ??= new UpgradeDialog(store, editor, goToMark);
  await dialog.open();
}
