// recording: the bar below the page that records what the page shows, and plays what was recorded.
//
// A recording is played by showing its states; the kernel is compiled on the way as if somebody typed it.  The viewer can do
// anything with what is shown: that stops the recording there.
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { takeDoers } from "../state/doers";
import { PACKED_MAX } from "../state/look";
import { kernelOf } from "../state/outcome";
import { lengthOf, LENGTH_MAX_MS, packRecording, patchOf, RECORDED, Recorder, stateAt, unpackRecording, type Recording } from "../state/recording";
import { choose, selectionFromText, selectionText } from "../state/view";
import { adoptStyle } from "../style/late";
import css from "../style/recording.late.css";
import { byId, button, el, fill, setAttr } from "./dom";
import { announce, say } from "./notices";

/** Changes within this time are one moment. */
const PACE_MS = 150;
const SPEEDS = [0.5, 1, 2, 4, 8];

function clock(ms: number): string {
  const s = Math.floor(ms / 1000);
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
}

class RecordingBar {
  private readonly bar = el("div", { id: "recording-bar", attrs: { role: "region", "aria-label": "Recording", hidden: true } });
  private recorder: { since: number; taking: Recorder; timer: number; ticking: number } | null = null;
  private played: Recording | null = null;
  private at = 0;
  private speed = 1;
  private playing = 0;
  /** What the page was last set to: anything else is the viewer's own. */
  private shown = "";
  private readonly seek = el("input", { attrs: { type: "range", min: 0, "aria-label": "Time in the recording" } });
  private readonly time = el("span", { class: "recording-time" });
  private readonly who = el("span", { class: "note recording-who" });
  private readonly play = button("Play", "Play the recording from here", () => (this.playing ? this.pause() : this.start()), "primary");

  constructor(
    private readonly store: AppStore,
    private readonly compiler: Compiler,
    private readonly share: () => void,
  ) {
    adoptStyle(css);
    byId("bottom").before(this.bar);
    this.seek.addEventListener("input", () => {
      const at = Number(this.seek.value);
      this.pause();
      this.show(at);
    });
    store.watch(RECORDED, () => {
      this.soon();
      if (this.playing && this.state() !== this.shown) this.leaveHere();
    });
    store.watch(["session"], () => store.state.session !== null && this.played && this.close());
    store.watch(["outcome"], () => this.played && this.select());
  }

  private state(): string {
    const { source, stageKey, kernelName, target, filter, mode } = this.store.state;
    return JSON.stringify([source, stageKey, kernelName, target, filter, mode]);
  }

  // ---- recording

  record(): void {
    if (this.recorder) return;
    this.close();
    const since = performance.now();
    const time = el("span", { class: "recording-time" }, clock(0));
    const ticking = window.setInterval(() => {
      const ms = performance.now() - since;
      time.textContent = clock(ms);
      if (ms > LENGTH_MAX_MS) void this.stop();
    }, 1000);
    takeDoers(); // of what was before
    this.store.set({ isRecording: true });
    this.recorder = { since, taking: new Recorder(this.store.state), timer: 0, ticking };
    fill(this.bar, el("b", { class: "recording-on" }, "● Recording"), time, el("span", { class: "note" }, "what you write, select and look at"), el("span", { class: "spring" }), button("Stop", "End the recording", () => void this.stop(), "primary"));
    this.open();
    announce("Recording");
  }

  private soon(): void {
    const { recorder } = this;
    if (!recorder || recorder.timer) return;
    recorder.timer = window.setTimeout(() => {
      recorder.timer = 0;
      recorder.taking.take(this.store.state, performance.now() - recorder.since, takeDoers());
    }, PACE_MS);
  }

  async stop(): Promise<void> {
    const { recorder } = this;
    if (!recorder) return;
    this.recorder = null;
    this.store.set({ isRecording: false });
    window.clearTimeout(recorder.timer);
    window.clearInterval(recorder.ticking);
    recorder.taking.take(this.store.state, performance.now() - recorder.since, takeDoers());
    const recording = recorder.taking.done();
    const packed = await packRecording(recording);
    if (packed.length > PACKED_MAX) {
      say("The recording is too long for a link: it can be played here, and is gone with this page");
      this.store.set({ recording: null });
    } else {
      this.store.set({ recording: packed });
    }
    this.offer(recording, packed.length <= PACKED_MAX);
  }

  // ---- playing

  /** Of a link. */
  async openPacked(packed: string): Promise<void> {
    if (this.recorder || this.played || this.store.state.session !== null) return;
    try {
      this.offer(await unpackRecording(packed), false);
    } catch {
      say("The recording of this link is damaged and was left out.");
    }
  }

  private offer(recording: Recording, mayStore: boolean): void {
    this.played = recording;
    this.at = lengthOf(recording);
    const speed = el("select", { attrs: { "aria-label": "Speed" }, on: { change: () => this.setSpeed(Number(speed.value)) } }, ...SPEEDS.map((n) => el("option", { attrs: { value: n, selected: n === this.speed } }, `${n}×`)));
    this.seek.max = String(Math.max(this.at, 1));
    const toLink = mayStore ? button("To a link…", "Make a link that plays it", () => this.share(), "plain") : null;
    if (this.store.state.session !== null) {
      // to play it would change the kernel of everybody
      const dismiss = button("Dismiss", "Close this bar", () => this.close(), "quiet");
      fill(this.bar, el("span", {}, `Recorded ${clock(this.at)}.`), el("span", { class: "note" }, mayStore ? "The link that you make now, or that the session becomes when you end it, plays it." : ""), el("span", { class: "spring" }), toLink, dismiss);
      this.open();
      return;
    }
    const close = button("×", "Go on with the kernel as it is here", () => this.close());
    close.setAttribute("aria-label", "Leave the recording");
    fill(this.bar, this.play, this.seek, this.time, this.who, speed, toLink, close);
    this.open();
    this.draw();
  }

  private setSpeed(speed: number): void {
    this.speed = speed;
    if (this.playing) {
      this.pause();
      this.start();
    }
  }

  private start(): void {
    if (!this.played || this.store.state.session !== null) return;
    const length = lengthOf(this.played);
    if (this.at >= length) this.at = 0;
    const from = this.at;
    const began = performance.now();
    this.show(from);
    this.playing = window.setInterval(() => {
      const at = from + (performance.now() - began) * this.speed;
      this.show(Math.min(at, length));
      if (at >= length) this.pause();
    }, 100);
    this.draw();
  }

  private pause(): void {
    window.clearInterval(this.playing);
    this.playing = 0;
    this.draw();
  }

  private leaveHere(): void {
    this.pause();
    say("Paused: go on from here, or play");
  }

  private show(at: number): void {
    if (!this.played) return;
    this.at = at;
    const { store, compiler } = this;
    const { source, look, by } = stateAt(this.played, at);
    this.who.textContent = by.join(", ");
    const key = JSON.stringify([source, look]);
    if (key !== this.look) {
      this.look = key;
      const before = JSON.stringify(compiler.request());
      store.set({ ...patchOf(look), source, touched: true });
      this.shown = this.state();
      if (JSON.stringify(compiler.request()) !== before) compiler.soon();
      this.select();
    }
    this.draw();
  }

  private look = "";

  /** The selection names what a compile makes, so it is found when that has come. */
  private select(): void {
    const { store, played } = this;
    if (!played || this.look === "" || this.state() !== this.shown) return;
    const { selection } = stateAt(played, this.at).look;
    if (typeof selection !== "string") {
      if (store.state.anchor) choose(store, null);
      return;
    }
    const anchor = kernelOf(store.state.outcome, store.state.kernelName) ? selectionFromText(store.state, selection) : null;
    if (anchor && selectionText({ ...store.state, anchor }) !== selectionText(store.state)) choose(store, anchor);
  }

  private draw(): void {
    if (!this.played) return;
    this.play.textContent = this.playing ? "Pause" : "Play";
    this.seek.value = String(Math.round(this.at));
    this.seek.setAttribute("aria-valuetext", `${clock(this.at)} of ${clock(lengthOf(this.played))}`);
    this.time.textContent = `${clock(this.at)} / ${clock(lengthOf(this.played))}`;
  }

  private open(): void {
    this.bar.hidden = false;
    setAttr(document.body, "data-recording", "");
  }

  private close(): void {
    this.pause();
    this.played = null;
    this.look = "";
    this.bar.hidden = true;
    setAttr(document.body, "data-recording", null);
  }
}

let bar: RecordingBar | null = null;

export function recordingBar(store: AppStore, compiler: Compiler, share: () => void): { record(): void; stop(): Promise<void>; openPacked(packed: string): Promise<void> } {
  return (bar ??= new RecordingBar(store, compiler, share));
}
