// problem: a failed request, classified by its cause.

export type FaultKind =
  | "request" // the server refused the request; the message says why
  | "limit" // a limit of the service: too large, too many, too long
  | "ours" // a fault of the service
  | "network"; // the service could not be reached

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

/** {"error": {"code", "message", "field"?}} */
interface ProblemBody {
  error?: { code?: string; message?: string };
}

/** Reads an answer that is not 2xx: a problem object, or whatever a proxy sent instead. */
export async function problemFrom(response: Response): Promise<Problem> {
  let body: ProblemBody | null = null;
  try {
    body = (await response.json()) as ProblemBody | null;
  } catch {
    // not JSON: the status line is all there is
  }
  const { status } = response;
  const kind: FaultKind = LIMIT_STATUS.has(status) ? "limit" : status >= 500 ? "ours" : "request";
  return new Problem(
    kind,
    body?.error?.code ?? `http-${status}`,
    body?.error?.message ?? `The server answered ${status} ${response.statusText}.`,
    response.headers.get("x-request-id"),
  );
}

export function networkProblem(): Problem {
  return new Problem("network", "network", "The server cannot be reached.", null, "Your text is safe in this page.");
}
