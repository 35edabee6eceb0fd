// shrink: the search for a small kernel with the fault of the one on the page.  The server searches (POST /api/v1/shrink) and says
// after each candidate how far it is; whoever stops listening has what was kept until then.
import { searchFor } from "../api/client";
import { Problem } from "../api/problem";
import type { CompileRequest, Shrunk } from "../api/types";

export interface Small {
  request: CompileRequest;
  /** The members of the request that are others in the small one. */
  changed: ReadonlySet<string>;
  /** Null where the user ended the search before the server named the fault. */
  fault: { code: string; stage: string | null } | null;
  tried: number;
  kept: number;
  lines: number;
  stopped: string;
}

export interface Budget {
  seconds: number;
  candidates: number;
}

/** A search that can be ended with what it has. */
export class Search {
  private readonly ender = new AbortController();
  private found: Shrunk | null = null;
  private kept: Shrunk | null = null;
  private nKept = 0;
  private tried = 0;

  constructor(
    private readonly request: CompileRequest,
    private readonly budget: Budget,
    private readonly said: (p: Shrunk) => void,
  ) {}

  /** Ends it; run() then returns what was found so far. */
  end(): void {
    this.ender.abort();
  }

  private take(s: Shrunk): void {
    if (s.done === true) {
      this.found = s;
      return;
    }
    this.tried = s.tried;
    if (s.is_kept === true && s.what !== undefined) {
      this.kept = s;
      this.nKept += 1;
    }
    this.said(s);
  }

  /** A failure of the search is a Problem. */
  async run(): Promise<Small> {
    let failure: string | null = null;
    try {
      await searchFor("/shrink", { request: this.request, ...this.budget }, this.ender.signal, (frame) => {
        if (frame.frame === "shrunk") this.take(frame.shrunk);
        if (frame.frame === "diagnostic") failure = frame.diagnostic.message;
      });
    } catch (e) {
      if (!this.ender.signal.aborted) throw e;
    }
    if (this.found === null && !this.ender.signal.aborted) throw new Problem("request", "search", failure ?? "The search ended early.");
    const last = this.found ?? this.kept;
    const request = { ...this.request, ...last?.request };
    return {
      request,
      changed: new Set(Object.keys(last?.request ?? {})),
      fault: this.found?.code === undefined ? null : { code: this.found.code, stage: this.found.stage ?? null },
      tried: this.found?.tried ?? this.tried,
      kept: this.found?.kept ?? this.nKept,
      lines: last?.lines ?? 0,
      stopped: this.found?.stopped ?? "you ended it",
    };
  }
}
