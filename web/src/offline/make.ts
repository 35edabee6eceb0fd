// make: one HTML file with a result, which needs no server: the built template with the result as JSON.
import { networkProblem, Problem } from "../api/problem";
import type { OfflineData } from "./data";

const MARK = "{{data}}";

/** In JSON, a "<" stands in strings only; written so, no text ends the script element that holds it. */
function inScript(data: OfflineData): string {
  return JSON.stringify(data).replaceAll("<", "\\u003c");
}

export async function offlinePage(data: OfflineData): Promise<Blob> {
  let response: Response;
  try {
    response = await fetch("/offline.html", { credentials: "same-origin" });
  } catch {
    throw networkProblem();
  }
  const [before, after, ...more] = response.ok ? (await response.text()).split(MARK) : [];
  if (before === undefined || after === undefined || more.length > 0)
    throw new Problem("ours", "bad-template", "The server did not send the template of the file.");
  return new Blob([before, inScript(data), after], { type: "text/html" });
}
