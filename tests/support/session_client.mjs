// session_client: a participant of a session, as the page is one: Yjs, a stream that is opened again, updates until they are
// acknowledged.  For tests, which drop and delay its requests.
import { get } from "node:http";
import * as Y from "../../web/node_modules/yjs/dist/yjs.mjs";

const JSON_TYPE = { "content-type": "application/json", "x-nkx-request": "1" };
const b64 = (bytes) => Buffer.from(bytes).toString("base64");
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
export const KERNEL = { source: "import numpy as np\n\n\ndef f(x):\n    return x + 1\n", inputs: [{ name: "x", shape: [8, 16], dtype: "float32" }] };

async function post(url, body, token) {
  const answer = await fetch(url, { method: "POST", headers: token ? { ...JSON_TYPE, "x-nkx-session-token": token } : JSON_TYPE, body: JSON.stringify(body) });
  const json = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(json.error.code), { code: json.error.code, status: answer.status });
  return json;
}

export class Client {
  doc = new Y.Doc();
  text = this.doc.getText("t");
  last = null;
  pending = [];
  isOver = false;
  /** Called with each update that came from another: the moment it came. */
  onUpdate = null;
  opened = 0;

  constructor(url, session, made, faults = null) {
    Object.assign(this, { url, session, token: made.token, person: made.person, faults });
    this.doc.on("update", (update, origin) => {
      if (origin === "remote") return;
      this.pending.push(update);
      void this.flush();
    });
  }

  static async begin(url, faults) {
    const doc = new Y.Doc();
    doc.getText("t").insert(0, "start ");
    const made = await post(`${url}/api/v1/sessions`, { name: "leader", snapshot: b64(Y.encodeStateAsUpdate(doc)), request: KERNEL });
    return new Client(url, made.id, made, faults);
  }

  static async join(url, session, name, faults) {
    return new Client(url, session, await post(`${url}/api/v1/session/join/${session}`, { name }), faults);
  }

  /** Follows the stream until stop(). */
  async follow() {
    while (!this.isOver) {
      this.abort = new AbortController();
      try {
        await this.read();
      } catch (e) {
        if (!this.isOver && e.name !== "AbortError" && !/terminated|fetch failed/.test(e.message)) throw e;
      }
      await sleep(this.faults ? this.faults() * 30 : 50);
    }
  }

  async read() {
    const headers = { "x-nkx-session-token": this.token };
    if (this.last !== null) headers["last-event-id"] = String(this.last);
    const answer = await fetch(`${this.url}/api/v1/session/events/${this.session}`, { headers, signal: this.abort.signal });
    if (!answer.ok) throw new Error(`stream: ${answer.status}`);
    this.opened++;
    let rest = "";
    const decoder = new TextDecoder();
    for await (const piece of answer.body) {
      const blocks = (rest + decoder.decode(piece, { stream: true })).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) this.take(Object.fromEntries(block.split("\n").filter((l) => l.includes(": ")).map((l) => [l.slice(0, l.indexOf(": ")), l.slice(l.indexOf(": ") + 2)])));
    }
  }

  take({ id, event, data }) {
    if (event === "state") this.state = JSON.parse(data);
    if (event !== "snapshot" && event !== "update") return;
    const update = event === "update" ? JSON.parse(data) : null;
    Y.applyUpdate(this.doc, Buffer.from(update ? update.data : data, "base64"), "remote");
    this.last = Number(id);
    if (update && this.onUpdate) this.onUpdate(update.person, this.last);
  }

  async flush() {
    if (this.isFlushing) return;
    this.isFlushing = true;
    while (this.pending.length > 0) {
      const n = this.pending.length;
      const whole = Y.mergeUpdates(this.pending.slice(0, n));
      const luck = this.faults ? this.faults() : 1;
      try {
        if (luck < 0.15) throw Object.assign(new Error("dropped on the way there"), { code: "dropped" });
        if (this.faults) await sleep(this.faults() * 20);
        await post(`${this.url}/api/v1/session/updates/${this.session}`, { updates: [b64(whole)] }, this.token);
        if (luck < 0.3) throw Object.assign(new Error("dropped on the way back"), { code: "dropped" });
        this.pending.splice(0, n);
      } catch (e) {
        if (!["dropped", "session-rate", "session-log", "store", undefined].includes(e.code)) throw e;
        await sleep(e.code === "dropped" ? 5 : 200);
      }
    }
    this.isFlushing = false;
  }

  compact() {
    return post(`${this.url}/api/v1/session/snapshot/${this.session}`, { seq: this.last, data: b64(Y.encodeStateAsUpdate(this.doc)), request: KERNEL }, this.token);
  }

  lead(act, fields = {}) {
    return post(`${this.url}/api/v1/session/lead/${this.session}`, { act, ...fields }, this.token);
  }

  show(presence) {
    return post(`${this.url}/api/v1/session/presence/${this.session}`, presence, this.token);
  }

  /** Breaks the stream; it is opened again. */
  drop() {
    this.abort?.abort();
  }

  stop() {
    this.isOver = true;
    this.abort?.abort();
  }
}

/** Another machine's page, as far as the server sees it: a stream that is read, and of which only the updates' numbers are looked at.
 *  What a page does with an update costs its own machine, not the one where the others run, too. */
export class Reader {
  /** Called with the number of each update, when it has come. */
  onUpdate = null;
  last = null;

  constructor(url, session, made) {
    Object.assign(this, { url, session, token: made.token, person: made.person });
  }

  static async join(url, session, name) {
    return new Reader(url, session, await post(`${url}/api/v1/session/join/${session}`, { name }));
  }

  follow() {
    this.request = get(`${this.url}/api/v1/session/events/${this.session}`, { agent: false, headers: { "x-nkx-session-token": this.token } }, (answer) => {
      let rest = "";
      answer.setEncoding("latin1").on("data", (piece) => {
        const lines = (rest + piece).split("\n");
        rest = lines.pop();
        lines.forEach((line) => {
          if (!line.startsWith("id: ")) return;
          this.last = Number(line.slice(4));
          this.onUpdate?.(null, this.last);
        });
      }).on("error", () => {});
    }).on("error", () => {});
  }

  show(presence) {
    return post(`${this.url}/api/v1/session/presence/${this.session}`, presence, this.token);
  }

  stop() {
    this.request.destroy();
  }
}

/** A generator of numbers from 0 to 1 that a seed decides. */
export function random(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
