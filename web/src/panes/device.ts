// device: the dialog that runs the kernel on a Neuron host: who is connected, the place in the queue, the log, and the outputs beside
// NumPy's and the simulator's.
import { isAbort } from "../api/client";
import { Problem } from "../api/problem";
import type { DeviceComparison, DeviceOutput, DeviceRun, Run, Runners, SourceRange } from "../api/types";
import type { AppStore } from "../state/app";
import { askRun, cancelRun, followRun, getRunners, hasEnded, readCompilerOptions, runFile, runStage } from "../state/device";
import { withVendorStage } from "../state/outcome";
import { rangeText } from "../editor/positions";
import { bytesText, time } from "../state/units";
import { adoptStyle } from "../style/late";
import css from "../style/device.late.css";
import { button, el, fill, plural } from "./dom";

const WHAT: [Run["run"], string][] = [
  ["execute", "compile and execute"],
  ["profile", "also record a profile"],
  ["compile", "only compile: the vendor's NEFF"],
  ["nki", "the kernel as NKI, as the vendor's compiler prints it"],
];

/** What a file is, in words: two kinds of NEFF must not be mistaken for each other. */
const FILES: Readonly<Record<string, string>> = {
  "kernel.neff": "the vendor's NEFF: neuronx-cc made it, and a Neuron device executes it. The simulation package in the menu Download is ours, and no device executes that.",
  "kernel.nki.py": "the kernel as NKI, which the vendor's compiler printed after its own passes",
  "outputs.safetensors": "what the host computed",
  "inputs.safetensors": "what it computed that from",
  "profile.ntff": "the profile of the first execution, for the vendor's tools",
};

const NKI_FILE = "kernel.nki.py";

type Runner = Runners["runners"][number];

function hostText({ about, busy }: Runner): string {
  const parts = [
    about.instance_type ?? "",
    about.cores === undefined ? "" : plural(about.cores, "core"),
    about.compiler ?? "",
    about.runtime ? `runtime ${about.runtime}` : `cannot execute (${about.missing ?? "no runtime"})`,
    busy ? "busy" : "idle",
  ];
  return `${about.name ?? "a host"}${about.stand_in ? " (NO DEVICE: a stand-in of the tests)" : ""}: ${parts.filter((p) => p !== "").join(", ")}`;
}

function stateText(run: Run): string {
  const again = run.attempt > 1 ? ` It is attempt ${run.attempt}: a host was lost.` : "";
  const of = run.runner?.name ? ` on ${run.runner.name}` : "";
  switch (run.state) {
    case "waiting":
      return `${run.missing ?? `Waiting: place ${run.position ?? 1} in the queue.`}${again}`;
    case "running":
      return `Running${of}…${again}`;
    case "done":
      return `Done${of}.`;
    case "cancelled":
      return "Cancelled.";
    default:
      return `It failed${of}: ${run.outcome?.message ?? "no reason is known"}${run.outcome?.code ? ` [${run.outcome.code}]` : ""}`;
  }
}

function numberText(x: number | null | undefined): string {
  return x === null || x === undefined ? "–" : x.toPrecision(6);
}

function comparisonText(c: DeviceComparison | undefined): string {
  if (!c) return "–";
  return `${c.pass ? "equal" : "✕ differs"}, largest error ${c.max_abs_err === null ? "infinite" : c.max_abs_err.toExponential(1)}`;
}

function outputsTable(device: DeviceRun): HTMLElement {
  const of = device.outputs.find((o) => o.reference)?.reference?.of === "first stage" ? "the first stage" : "NumPy";
  const row = (o: DeviceOutput) =>
    el(
      "tr",
      {},
      el("th", { attrs: { scope: "row" } }, `${o.name} ${o.dtype}[${o.shape.join("×")}]`),
      ...[numberText(o.min), numberText(o.max), numberText(o.mean), comparisonText(o.reference), comparisonText(o.simulator)].map((t) => el("td", { class: "num" }, t)),
    );
  return el(
    "table",
    { class: "facts" },
    el("caption", {}, "What the host computed"),
    el("thead", {}, el("tr", {}, ...["output", "least", "largest", "mean", `beside ${of}'s`, "beside the simulator's"].map((h) => el("th", { attrs: { scope: "col" } }, h)))),
    el("tbody", {}, ...device.outputs.map(row)),
  );
}

function timesText({ measured, simulated_us: simulated, stand_in: standIn }: DeviceRun): string {
  const us = measured.median_us ?? measured.first_us;
  const how = measured.median_us === undefined ? "one execution" : `the median of ${measured.executions - 1}, the least ${time(measured.least_us ?? us)}`;
  const honest = standIn ? "Measured was a simulator on the host's processor: it says nothing about a Neuron device." : "Measured on the host's clock around the runtime's call, which takes some time itself.";
  return `Measured ${time(us)} (${how})${simulated === undefined ? "" : `, simulated ${time(simulated)}`}. ${honest}`;
}

class DeviceDialog {
  private readonly hosts = el("div", { class: "device-hosts" });
  private readonly said = el("p", { class: "device-state", attrs: { role: "status" } });
  private readonly what = el("select", { attrs: { "aria-label": "What to do on the host" } }, ...WHAT.map(([value, label]) => el("option", { attrs: { value } }, label)));
  private readonly options = el("input", {
    class: "device-options",
    attrs: { type: "text", spellcheck: "false", autocomplete: "off", placeholder: "options, such as --optlevel=3 --lnc 2", "aria-label": "Options for the vendor's compiler", title: "Passed on to neuronx-cc, if they are among those that are allowed" },
  });
  private readonly start = button("Run", "Give the kernel to a Neuron host", () => void this.run(), "primary");
  private readonly stop = button("Cancel the run", "Take the run back", () => void this.cancel(), "plain");
  private readonly result = el("div", { class: "device-result" });
  private readonly log = el("pre", { class: "device-log", attrs: { tabindex: 0, role: "region", "aria-label": "Log of the host" } });
  private readonly dialog = el(
    "dialog",
    { class: "device", attrs: { "aria-labelledby": "device-title" } },
    el("h2", { id: "device-title" }, "The vendor's compiler and Neuron hosts"),
    this.hosts,
    el("div", { class: "device-ask" }, this.what, this.options, this.start, this.stop),
    this.said,
    this.result,
    this.log,
    el("div", { class: "device-foot" }, button("Close", "The run goes on; its place is lost", () => this.dialog.close(), "plain")),
  );
  private asked: AbortController | null = null;
  private id: string | null = null;

  constructor(
    private readonly store: AppStore,
    private readonly goTo: (range: SourceRange) => void,
  ) {
    adoptStyle(css);
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", (e) => e.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => this.asked?.abort());
  }

  /** what: what is chosen, if a host can do it. */
  open(what: Run["run"]): void {
    if (this.dialog.open) return;
    this.clear("");
    this.what.value = what;
    this.dialog.showModal();
    this.start.focus();
    void this.guarded((signal) => this.showHosts(signal));
  }

  private clear(text: string): void {
    this.said.textContent = text;
    fill(this.result);
    this.log.textContent = "";
    this.log.hidden = this.stop.hidden = true;
    this.id = null;
  }

  /** One request at a time; its failure is said. */
  private async guarded(ask: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.asked?.abort();
    const asked = (this.asked = new AbortController());
    try {
      await ask(asked.signal);
    } catch (e) {
      if (isAbort(e)) return;
      if (!(e instanceof Problem)) throw e;
      if (asked === this.asked) this.said.textContent = e.message;
    }
    if (asked === this.asked) {
      this.start.disabled = this.hosts.dataset["connected"] === "0";
      this.stop.hidden = true;
    }
  }

  private async showHosts(signal: AbortSignal): Promise<void> {
    const r = await getRunners(signal);
    this.hosts.dataset["connected"] = String(r.connected);
    this.offer(r);
    if (r.connected === 0) {
      fill(this.hosts, el("p", {}, r.missing ?? "No Neuron host is connected to this server."), el("p", { class: "note" }, "The simulated run needs none."));
    } else {
      const waiting = r.waiting > 0 ? `, ${plural(r.waiting, "run")} waiting` : "";
      fill(this.hosts, el("p", {}, `${plural(r.connected, "host")} connected${waiting}:`), el("ul", {}, ...r.runners.map((x) => el("li", {}, hostText(x)))));
    }
  }

  /** What no connected host can do is not offered. */
  private offer({ runners }: Runners): void {
    const can = new Set<string>(runners.flatMap((r) => r.about.can));
    for (const o of this.what.options) o.disabled = runners.length > 0 && !can.has(o.value);
    if (this.what.selectedOptions[0]?.disabled !== false) this.what.value = [...this.what.options].find((o) => !o.disabled)?.value ?? "execute";
  }

  private run(): Promise<void> {
    this.clear("The kernel is compiled and simulated first…");
    this.start.disabled = true;
    return this.guarded(async (signal) => {
      const { outcome, kernelName } = this.store.state;
      const id = await askRun(this.store.state, this.what.value as Run["run"], readCompilerOptions(this.options.value), signal);
      this.id = id;
      this.stop.hidden = false;
      const ended = await followRun(id, (run) => !signal.aborted && this.show(run), signal);
      this.show(ended);
      if (ended.files.some((f) => f.name === NKI_FILE)) await this.showNki(id, outcome?.key ?? "", kernelName, signal);
      await this.showHosts(signal);
    });
  }

  private async cancel(): Promise<void> {
    try {
      if (this.id !== null) await cancelRun(this.id);
    } catch (e) {
      if (!(e instanceof Problem)) throw e;
      this.said.textContent = e.message;
    }
  }

  private show(run: Run): void {
    this.said.textContent = stateText(run);
    this.log.hidden = run.log === "";
    if (this.log.textContent !== run.log) {
      this.log.textContent = run.log;
      this.log.scrollTop = this.log.scrollHeight;
    }
    if (hasEnded(run)) this.showResult(run);
  }

  /** Adds the stage to the kernel that was asked for, unless the page shows another result by now. */
  private async showNki(id: string, key: string, kernelName: string | null, signal: AbortSignal): Promise<void> {
    const stage = await runStage(id, signal);
    const { outcome } = this.store.state;
    if (outcome !== null && key !== "" && outcome.key === key) {
      this.store.set({ outcome: withVendorStage(outcome, kernelName, stage) });
      const go = () => {
        this.dialog.close();
        this.store.set({ stageKey: stage.stage.name });
      };
      this.result.append(el("p", {}, "It is the last row of the stages: ", button(stage.stage.name, "Show the stage", go, "quiet"), ". Where a line names an HLO instruction or a line of the source, it is linked."));
    }
    this.result.append(el("pre", { class: "device-nki", attrs: { tabindex: 0, role: "region", "aria-label": "The kernel as NKI" } }, stage.stage.text));
  }

  /** Where the compiler's error comes from. */
  private place(range: SourceRange): HTMLElement {
    const go = () => {
      this.dialog.close();
      this.goTo(range);
    };
    return el("p", {}, "It is about ", button(`${range.file} ${rangeText(range)}`, "Show it in the source", go, "quiet"), ".");
  }

  private showResult(run: Run): void {
    const device = run.outcome?.device;
    const id = this.id ?? "";
    const files = run.files.filter((f) => f.is_output || f.name === "inputs.safetensors");
    fill(
      this.result,
      run.outcome?.range ? this.place(run.outcome.range) : null,
      run.outcome?.hint ? el("pre", { class: "note" }, run.outcome.hint) : null,
      device ? outputsTable(device) : null,
      device ? el("p", {}, timesText(device)) : null,
      run.state === "done"
        ? el("ul", { class: "device-files" }, ...files.map((f) => el("li", {}, el("a", { attrs: { href: runFile(id, f.name), download: f.name } }, `${f.name} (${bytesText(f.size)})`), FILES[f.name] ?? "")))
        : null,
    );
  }
}

let dialog: DeviceDialog | null = null;

export function openDevice(store: AppStore, goTo: (range: SourceRange) => void, what: Run["run"]): void {
  dialog ??= new DeviceDialog(store, goTo);
  dialog.open(what);
}
