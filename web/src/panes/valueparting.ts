// valueparting: the first operation whose values differ between A and B, which the server looks for.
import { isAbort } from "../api/client";
import { Problem } from "../api/problem";
import type { CompileRequest, Parting } from "../api/types";
import { describeValues, findParting } from "../state/parting";
import { button, el, fill, plural } from "./dom";

export class ValueParting {
  readonly bar = el("div", { class: "compare-values", attrs: { role: "status", hidden: true } });
  private asked: AbortController | null = null;

  /** go: shows a line of a stage. */
  constructor(private readonly go: (stage: string, lineB: number) => void) {}

  /** Another comparison is shown: what was found is not about it. */
  forget(): void {
    this.asked?.abort();
    this.asked = null;
    this.bar.hidden = true;
  }

  async find(a: CompileRequest, b: CompileRequest): Promise<void> {
    this.forget();
    const asked = (this.asked = new AbortController());
    const isMine = () => this.asked === asked;
    this.tell("Comparing values…", true);
    try {
      const found = await findParting(a, b, asked.signal, (p) => isMine() && this.tell(`Comparing values… ${plural(p.compared ?? 0, "value")}, now in ${p.stage ?? ""}.`, true));
      if (isMine()) this.show(found);
    } catch (e) {
      if (isAbort(e)) return;
      if (!(e instanceof Problem)) throw e;
      if (isMine()) this.tell(`The values could not be compared. ${e.message}`, false);
    }
  }

  private tell(text: string, runs: boolean): void {
    this.bar.hidden = false;
    fill(this.bar, el("span", {}, text), button(runs ? "stop" : "close", runs ? "Compare no further" : "Hide this", () => this.forget(), "plain"));
  }

  private show(p: Parting): void {
    const note = p.note === undefined ? "" : ` (${p.note})`;
    if (!p.text) return this.tell("A and B are the same in every stage that both have: so are their values.", false);
    if (!p.values) return this.tell(`No values differ: ${plural(p.compared ?? 0, "pair")} compared${note}.`, false);
    const { stage, b } = p.values;
    this.tell(`The first values that differ: line ${b?.line ?? 0} of ${stage}, ${describeValues(p.values)}${note}.`, false);
    if (b) this.go(stage, b.line);
  }
}
