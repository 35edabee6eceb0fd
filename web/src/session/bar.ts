// bar: who is in the session, who leads, and what one can do; above the panes.
import { createSnippet } from "../api/client";
import { Problem } from "../api/problem";
import { absolute, toClipboard } from "../panes/clipboard";
import { button, byId, el, fill } from "../panes/dom";
import { say } from "../panes/notices";
import { startRecording, stopRecording } from "../panes/recordbutton";
import { rememberLink } from "../state/mylinks";
import { viewOf, viewToJson } from "../state/look";
import { settings } from "../state/settings";
import css from "../style/session.late.css";
import { adoptStyle } from "../style/late";
import { type Live, plain } from "./live";
import { colourOf } from "./peers";

adoptStyle(css);

/** The first letters of a name. */
function initials(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((w) => w !== "");
  return [...(words[0] ?? "")].slice(0, 1).concat([...(words[1] ?? "")].slice(0, 1)).join("").toUpperCase() || ([...name][0] ?? "");
}

const CHIPS_MAX = 8;

class Bar {
  readonly node = el("section", { id: "session-bar", attrs: { "aria-label": "Session" } });
  private readonly status = el("span", { class: "session-status", attrs: { role: "status" } });
  private readonly chips = el("ul", { class: "session-people", attrs: { "aria-label": "People in the session" } });
  private readonly text = el("span", { class: "note session-text" });
  private readonly tools = el("span", { class: "session-tools" });
  private readonly offer = el("div", { class: "session-offer", attrs: { role: "alert", hidden: true } });
  private isHanding = false;
  private drawn = "";

  constructor(private readonly live: Live) {
    this.node.append(this.status, this.chips, this.text, el("span", { class: "spring" }), this.tools, this.offer);
    live.page.watch(["isRecording"], () => this.draw());
    live.state.watch(["session", "isOnline", "isReady", "isFollowing", "isPointing", "presences", "over"], () => this.draw());
  }

  private nameOf(person: number): string {
    const { session } = this.live.state.state;
    return person === this.live.you ? "you" : (session?.people.find((p) => p.person === person)?.name ?? "somebody");
  }

  private does(run: () => Promise<void>): void {
    run().catch((e: unknown) => {
      if (!(e instanceof Problem)) throw e;
      say(e.message);
    });
  }

  private draw(): void {
    const { session, isOnline, isReady, isFollowing, isPointing, presences, over } = this.live.state.state;
    if (over) {
      this.drawOver(over.text, over.snippet);
      return;
    }
    const follows = [...presences].filter(([, p]) => p.following === true).map(([n]) => n);
    const records = [...presences].filter(([n, p]) => n !== this.live.you && p.recording === true).map(([n]) => this.nameOf(n));
    const key = JSON.stringify([records, this.live.place.store.state.isRecording, session, isOnline, isReady, isFollowing, isPointing, follows, this.isHanding, this.live.isPointed]);
    if (key === this.drawn) return; // carets move often
    this.drawn = key;
    this.node.className = `${isOnline ? "online" : "offline"} ${session ? colourOf(session.leader) : ""}`;
    fill(this.status, el("span", { class: "dot", attrs: { "aria-hidden": "true" } }), isOnline ? "connected" : isReady ? "reconnecting: your changes are kept here" : "connecting…");
    if (!session) return;
    const shown = session.people.slice(0, CHIPS_MAX);
    fill(this.chips, ...shown.map((p) => this.chip(p.person, p.name, p.here)), session.people.length > CHIPS_MAX ? el("li", { class: "note", title: session.people.slice(CHIPS_MAX).map((p) => p.name).join(", ") }, `+${session.people.length - CHIPS_MAX}`) : null);
    this.text.textContent = this.says(follows) + (records.length > 0 ? ` ${records.join(", ")} ${records.length > 1 ? "record" : "records"} what happens here.` : "");
    fill(this.tools, ...(this.live.leads ? this.leaderTools(isPointing) : this.guestTools(isFollowing)), this.record(), this.invite(), this.leave());
    this.drawOffer();
  }

  private chip(person: number, name: string, here: boolean): HTMLElement {
    const { session } = this.live.state.state;
    const facts = [person === this.live.you ? "you" : "", person === session?.leader ? "leads" : "", here ? "" : "away"].filter((f) => f !== "");
    const label = facts.length > 0 ? `${name} (${facts.join(", ")})` : name;
    return el("li", { class: `chip-person ${colourOf(person)}${here ? "" : " away"}${person === session?.leader ? " leads" : ""}`, title: label }, el("span", { attrs: { "aria-hidden": "true" } }, initials(name)), el("span", { class: "sr" }, label));
  }

  private says(follows: readonly number[]): string {
    const { session, isFollowing, isPointing } = this.live.state.state;
    if (!session) return "";
    const lock = session.read_only ? " Only the leader may change the kernel." : "";
    if (this.live.leads) {
      const others = session.people.filter((p) => p.person !== this.live.you && p.here);
      const n = others.filter((p) => follows.includes(p.person)).length;
      if (isPointing) return "Choose the line that everyone shall look at.";
      return `You lead. ${others.length === 0 ? "Nobody else is here yet." : `${n} of ${others.length} follow you.`}${lock}`;
    }
    const leader = session.people.find((p) => p.person === session.leader);
    const name = leader?.name ?? "The leader";
    if (leader && !leader.here) return `${name} leads, and is away.${lock}`;
    return isFollowing ? `You follow ${name}: scroll or click to look around by yourself.${lock}` : `You look around by yourself; l follows ${name} again.${lock}`;
  }

  private guestTools(isFollowing: boolean): HTMLElement[] {
    const { session } = this.live.state.state;
    const leader = session?.people.find((p) => p.person === session.leader);
    if (leader && !leader.here) return [button("Take the lead", "The leader is away", () => this.does(() => this.live.lead("claim")), "plain")];
    return [button(isFollowing ? "Stop following" : "Follow", isFollowing ? "Look around by yourself (l)" : "See what the leader sees (l)", () => this.live.setFollowing(!isFollowing), "plain")];
  }

  private leaderTools(isPointing: boolean): HTMLElement[] {
    const { session } = this.live.state.state;
    const point = button(this.live.isPointed ? "Stop pointing" : "Point", "A ring at a line in everyone's view: press, then choose the line; ! points at the caret", () => this.live.togglePointing(), "plain toggle");
    point.setAttribute("aria-pressed", String(isPointing || this.live.isPointed));
    const lock = button("Read-only", "Only you may change the kernel", () => this.does(() => this.live.lead("read-only", { on: !session?.read_only })), "plain toggle");
    lock.setAttribute("aria-pressed", String(session?.read_only === true));
    const others = session?.people.filter((p) => p.person !== this.live.you && p.here) ?? [];
    const hand = button("Hand over…", "Let somebody else lead", () => {
      this.isHanding = !this.isHanding;
      this.draw();
    }, "plain");
    hand.disabled = others.length === 0;
    hand.setAttribute("aria-expanded", String(this.isHanding));
    const end = button("End for all", "The session becomes a stored link", () => this.end(), "plain");
    return [point, lock, hand, end];
  }

  private drawOffer(): void {
    const { session } = this.live.state.state;
    if (!session) return;
    const { offer, live } = this;
    const offered = session.offered;
    offer.hidden = !(this.isHanding && live.leads) && offered !== live.you && !(live.leads && offered > 0);
    if (offered === live.you && !live.leads) {
      fill(offer, el("span", {}, `${this.nameOf(session.leader)} offers you the lead. Who follows then sees what you see.`), button("Take the lead", "You lead from now on", () => this.does(() => live.lead("accept")), "primary"), button("Not now", "Stay as you are", () => this.does(() => live.lead("decline")), "plain"));
    } else if (live.leads && offered > 0) {
      fill(offer, el("span", {}, `You offer the lead to ${this.nameOf(offered)}, and lead until they take it.`), button("Take it back", "Go on leading", () => this.does(() => live.lead("offer", { to: 0 })), "plain"));
    } else if (this.isHanding && live.leads) {
      const others = session.people.filter((p) => p.person !== live.you && p.here);
      const give = (person: number) => {
        this.isHanding = false;
        this.does(() => live.lead("offer", { to: person }));
      };
      fill(offer, el("span", {}, "Hand over to"), ...others.map((p) => button(p.name, `Offer the lead to ${p.name}`, () => give(p.person), "plain")));
    }
  }

  private invite(): HTMLElement {
    return button("Invite", "Copies the session's address", () => {
      const address = absolute(`/s/${this.live.id}`);
      void toClipboard(address).then((ok) => say(ok ? "The session's address is copied: who opens it is in the session" : address));
    }, "plain");
  }

  private record(): HTMLElement | null {
    if (this.live.place.store.state.isRecording) return null; // its bar has the button that ends it
    return button("Record", "What all of you write, and what this page shows, as a recording with names; the others are told", () => void startRecording(), "plain");
  }

  private leave(): HTMLElement {
    return button("Leave", "The session goes on without you", () => this.live.leave(), "quiet");
  }

  /** What everybody has now is stored as a link. */
  private end(): void {
    const { store, compiler } = this.live.place;
    this.does(async () => {
      await stopRecording(store);
      const made = await createSnippet({ ...plain(compiler.request()), view: viewToJson(viewOf(store.state, settings.state.splits)) });
      rememberLink(made, "Session");
      await this.live.endForAll(made.id);
    });
  }

  private drawOver(text: string, snippet: string | null): void {
    this.node.className = "over";
    fill(this.node, el("span", { attrs: { role: "status" } }, text), el("span", { class: "note" }, snippet ? "It is stored:" : "The kernel stays on this page."), snippet ? el("a", { attrs: { href: `/z/${snippet}` } }, absolute(`/z/${snippet}`)) : null, el("span", { class: "spring" }), button("Dismiss", "Close this bar", () => this.node.remove(), "quiet"));
  }
}

export function mountBar(live: Live): void {
  document.getElementById("session-bar")?.remove();
  byId("shared-bar").after(new Bar(live).node);
}
