// wire: one participant's connection to a session.
//
// Events come as a stream, which is opened again whenever it ends, after the last event that came.  Updates are sent one request
// after the other, and again until the server has said that it has them; the order does not change, and an update that comes
// twice changes nothing.
import { isAbort, send } from "../api/client";
import { readLines } from "../api/ndjson";
import { Problem } from "../api/problem";
import type { SessionState, SessionRequest, SessionMade, SessionSnapshot, Session as SessionInfo } from "../api/types";
import type { Ticket } from "../state/session";

/** The server sends something every 2 s.  A connection that has died without a word is noticed by this. */
const SILENT_MS = 5_000;
/** An update or a presence that has no answer after this, and after the time that its bytes take on a slow line, is sent again. */
const ANSWER_MS = 5_000;
const SLOW_LINE = 20; // bytes a millisecond
const RETRY_MS = [100, 200, 400, 800];

/** Bytes that a browser still sends for a page that is gone. */
const LAST_MAX = 60_000;

const TYPE = { "content-type": "application/json" };
const OURS = { ...TYPE, "x-nkx-request": "1" };

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

export async function beginSession(body: SessionRequest): Promise<SessionMade> {
  return (await (await send("/api/v1/sessions", { method: "POST", headers: OURS, body: JSON.stringify(body) })).json()) as SessionMade;
}

export async function lookAtSession(id: string): Promise<SessionInfo> {
  return (await (await send(`/api/v1/sessions/${encodeURIComponent(id)}`, {})).json()) as SessionInfo;
}

/** Joins under a name; with a ticket, as who had it. */
export async function joinSession(id: string, name: string, ticket: Ticket | null): Promise<Ticket> {
  const headers = ticket ? { ...TYPE, "x-nkx-session-token": ticket.token } : TYPE;
  const answer = await send(`/api/v1/session/join/${encodeURIComponent(id)}`, { method: "POST", headers, body: JSON.stringify({ name }) });
  const made = (await answer.json()) as { person: number; token?: string };
  return { person: made.person, token: made.token ?? ticket?.token ?? "" };
}

export interface WireEvents {
  state(state: SessionState): void;
  /** An update of a person, or a snapshot of all of them. */
  update(bytes: Uint8Array, person: number | null): void;
  presence(person: number, presence: unknown): void;
  /** The stream is open, and everything that was changed here is with the server. */
  online(isOnline: boolean): void;
  /** The server took an update for no change that it allows. */
  refused(problem: Problem): void;
  /** The session cannot be reached any more. */
  lost(problem: Problem): void;
}

const wait = (ms: number) => new Promise((done) => window.setTimeout(done, ms));

/** Whether the same request can succeed later. */
function passes(problem: Problem): boolean {
  return problem.kind !== "request" || problem.code === "session-log";
}

export class Wire {
  /** The number of the last update that came; null: none. */
  last: number | null = null;
  private isEnded = false;
  private isOpen = false;
  private stream: AbortController | null = null;
  private pending: Uint8Array[] = [];
  private isSending = false;
  private shown: object | null = null;
  private isShowing = false;
  private wasOnline: boolean | null = null;

  constructor(
    private readonly id: string,
    private readonly ticket: Ticket,
    private readonly events: WireEvents,
    /** Makes one update of several. */
    private readonly merge: (updates: Uint8Array[]) => Uint8Array,
  ) {
    window.addEventListener("online", this.hurry);
    void this.follow();
  }

  private readonly hurry = () => this.stream?.abort();

  end(): void {
    this.isEnded = true;
    window.removeEventListener("online", this.hurry);
    this.stream?.abort();
  }

  private tell(): void {
    const isOnline = this.isOpen && this.pending.length === 0;
    if (isOnline === this.wasOnline || this.isEnded) return;
    // what is on its way is no reason to worry the user
    if (!isOnline && this.isOpen) return;
    this.wasOnline = isOnline;
    this.events.online(isOnline);
  }

  private post(what: string, body: object, isLast = false): Promise<Response> {
    const text = JSON.stringify(body);
    const signal = AbortSignal.timeout(ANSWER_MS + text.length / SLOW_LINE);
    return send(`/api/v1/session/${what}/${this.id}`, { method: "POST", headers: { ...TYPE, "x-nkx-session-token": this.ticket.token }, body: text, keepalive: isLast && text.length < LAST_MAX, signal });
  }

  // ---- what comes

  private async follow(): Promise<void> {
    for (let tries = 0; !this.isEnded; tries++) {
      const had = this.last;
      try {
        if (await this.read()) tries = 0;
      } catch (e) {
        if (e instanceof Problem && !passes(e)) {
          this.isEnded = true;
          this.events.lost(e);
          return;
        }
        if (!(e instanceof Problem) && !isAbort(e)) console.error(e);
      }
      if (this.last !== had) tries = 0;
      this.isOpen = false;
      this.tell();
      if (!this.isEnded) await wait(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)] ?? 800);
    }
  }

  /** Reads the stream until it ends.  True if it brought something. */
  private async read(): Promise<boolean> {
    const mine = new AbortController();
    this.stream = mine;
    let timer = window.setTimeout(() => mine.abort(), SILENT_MS);
    const alive = () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => mine.abort(), SILENT_MS);
    };
    const headers: Record<string, string> = { "x-nkx-session-token": this.ticket.token };
    if (this.last !== null) headers["last-event-id"] = String(this.last);
    try {
      const answer = await send(`/api/v1/session/events/${this.id}`, { headers, signal: mine.signal });
      if (!answer.body) return false;
      let [id, event] = ["", ""];
      for await (const line of readLines(answer.body)) {
        alive();
        if (this.isEnded) return true;
        if (line.startsWith("id: ")) id = line.slice(4);
        else if (line.startsWith("event: ")) event = line.slice(7);
        else if (line.startsWith("data: ")) {
          this.take(event, id, line.slice(6));
          [id, event] = ["", ""];
          this.isOpen = true;
          this.tell();
        }
      }
      return this.isOpen;
    } catch (e) {
      if (e instanceof TypeError) return this.isOpen; // the connection broke
      throw e;
    } finally {
      window.clearTimeout(timer);
    }
  }

  private take(event: string, id: string, data: string): void {
    if (event === "state") this.events.state(JSON.parse(data) as SessionState);
    else if (event === "presence") {
      const { person, presence } = JSON.parse(data) as { person: number; presence: unknown };
      this.events.presence(person, presence);
    } else if (event === "snapshot" || event === "update") {
      const update = event === "snapshot" ? { person: null, data } : (JSON.parse(data) as { person: number; data: string });
      this.last = Number(id);
      try {
        this.events.update(fromBase64(update.data), update.person);
      } catch (e) {
        console.error("an update that cannot be read", e); // somebody's own program has sent it
      }
    }
  }

  /** Takes everything anew, and forgets what was not sent. */
  again(): void {
    this.last = null;
    this.pending = [];
    this.stream?.abort();
  }

  // ---- what goes

  /** Sends an update, now or as soon as that is possible. */
  send(update: Uint8Array): void {
    this.pending.push(update);
    if (!this.isSending) void this.flush();
  }

  private async flush(): Promise<void> {
    this.isSending = true;
    for (let tries = 0; this.pending.length > 0 && !this.isEnded; ) {
      const n = this.pending.length;
      const whole = n === 1 ? (this.pending[0] as Uint8Array) : this.merge(this.pending);
      try {
        await this.post("updates", { updates: [toBase64(whole)] });
        this.pending.splice(0, n);
        tries = 0;
      } catch (e) {
        if (!(e instanceof Problem)) throw e;
        if (!passes(e)) {
          this.pending = [];
          this.events.refused(e);
          break;
        }
        this.pending.splice(0, n, whole);
        await wait(e.code === "session-rate" ? 300 : (RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)] ?? 800));
      }
      this.tell();
    }
    this.isSending = false;
    this.tell();
  }

  /** Shows a presence; only the newest is sent. */
  show(presence: object): void {
    this.shown = presence;
    if (!this.isShowing) void this.showNow();
  }

  private async showNow(): Promise<void> {
    this.isShowing = true;
    while (this.shown && !this.isEnded) {
      const now = this.shown;
      this.shown = null;
      try {
        await this.post("presence", now);
        await wait(80);
      } catch (e) {
        if (!(e instanceof Problem)) throw e;
        if (!passes(e)) break;
        this.shown ??= now;
        await wait(500);
      }
    }
    this.isShowing = false;
  }

  async lead(act: string, fields: object = {}): Promise<void> {
    await this.post("lead", { act, ...fields });
  }

  /** isLast: the page may go away meanwhile. */
  async compact(body: SessionSnapshot, isLast: boolean): Promise<void> {
    await this.post("snapshot", body, isLast);
  }
}
