// valueparting: whether the results of A and B differ, and the first operation whose values do; the server looks for it.
import { isAbort } from "../api/client";
import { Problem } from "../api/problem";
import type { CompileRequest, Parting } from "../api/types";
import { describeResults, describeValues, findParting } from "../state/parting";
import { button, el, fill, plural } from "./dom";

export class ValueParting {
  readonly bar = el("div", { class: "compare-values", attrs: { role: "status", hidden: true } });
  private asked: AbortController | null = null;
  private of = ""; // the two requests that it is about

  /** go: shows a line of a stage. */
  constructor(private readonly go: (stage: string, lineB: number) => void) {}

  /** Forgets what is not about these two. */
  keepFor(a: CompileRequest, b: CompileRequest): void {
    if (this.of !== "" && JSON.stringify([a, b]) !== this.of) this.forget();
  }

  forget(): void {
    this.asked?.abort();
    this.asked = null;
    this.of = "";
    this.bar.hidden = true;
  }

  async find(a: CompileRequest, b: CompileRequest): Promise<void> {
    this.forget();
    this.of = JSON.stringify([a, b]);
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

  /** The results come first: with equal results, what differs between is another way to the same. */
  private show(p: Parting): void {
    if (!p.text) return this.tell("A and B are the same in every stage that both have: so are their values.", false);
    const said = [describeResults(p.results)];
    if (p.values) {
      const { stage, a, b } = p.values;
      const where = b ? `line ${b.line} of ${stage}` : `line ${a?.line ?? 0} of A's ${stage}`;
      said.push(`The first values that differ: ${where}, ${describeValues(p.values)}.`);
    } else said.push(`No values differ: ${plural(p.compared ?? 0, "pair")} compared.`);
    const alone = p.no_counterpart;
    if (alone && alone.a + alone.b > 0) said.push(`In ${alone.stage}, ${plural(alone.a, "line")} of A and ${alone.b} of B have no counterpart.`);
    if (p.note !== undefined) said.push(`Note: ${p.note}.`);
    this.tell(said.join(" "), false);
    if (p.values?.b) this.go(p.values.stage, p.values.b.line);
  }
}
