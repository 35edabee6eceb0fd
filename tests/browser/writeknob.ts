// writeknob: writes knobs as the page does.  Reads a JSON list of {text, range, wanted} from a file, and prints a list of
// {text, what} or {why}.
import { readFileSync } from "node:fs";
import { apply, spanIn, writeKnob } from "../../web/src/editor/writeknob";

const requests = JSON.parse(readFileSync(process.argv[2] as string, "utf8"));
const results = requests.map(({ text, range, wanted }: any) => {
  const span = spanIn(text, range);
  if (!span) return { why: "no such range" };
  const written = writeKnob(text, span.from, span.to, wanted);
  return "why" in written ? written : { text: apply(text, written.changes), what: written.what };
});
console.log(JSON.stringify(results));
