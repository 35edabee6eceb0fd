// problem: a request that did not lead to a result, told apart by whose fault it is.

export type FaultKind =
  | "request" // the request itself was refused: the text says why
  | "limit" // a limit of the service: too large, too many, too long
  | "ours" // a fault of the service
  | "network"; // the service was not reached

export class Problem extends Error {
  constructor(
    readonly kind: FaultKind,
    readonly code: string,
    message: string,
    readonly requestId: string | null = null,
    readonly hint: string | null = null,
  ) {
    super(message);
    this.name = "Problem";
  }
}

const LIMIT_STATUS = new Set([408, 413, 429, 503, 504]);

function field(body: unknown, ...names: string[]): string | null {
  if (typeof body !== "object" || body === null) return null;
  for (const name of names) {
    const v = (body as Record<string, unknown>)[name];
    if (typeof v === "string" && v !== "") return v;
  }
  return null;
}

/** Reads an answer that is not 2xx: a problem object, or whatever a proxy put in its place. */
export async function problemFrom(response: Response): Promise<Problem> {
  let body: unknown = null;
  try {
    body = await response.json();
  } catch {
    // not JSON: the status line has to do
  }
  const nested = typeof body === "object" && body !== null ? (body as { error?: unknown }).error : null;
  const from = typeof nested === "object" && nested !== null ? nested : body;
  const kind: FaultKind = LIMIT_STATUS.has(response.status) ? "limit" : response.status >= 500 ? "ours" : "request";
  return new Problem(
    kind,
    field(from, "code", "type") ?? `http-${response.status}`,
    field(from, "detail", "message", "title") ?? `The server answered ${response.status} ${response.statusText}.`,
    field(from, "request_id", "instance") ?? response.headers.get("x-request-id"),
    field(from, "hint"),
  );
}

export function networkProblem(): Problem {
  return new Problem("network", "network", "The server cannot be reached.", null, "Your text is safe in this page.");
}
