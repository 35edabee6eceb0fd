// download: the menu of everything that can be saved.  It is loaded when it is first opened.
//
// An entry that cannot be had says why.  Files of the simulated run and of the HLO module come from one more compile.
import { compileWhole, send } from "../api/client";
import { Problem } from "../api/problem";
import type { CompileRequest, Result, Snippet } from "../api/types";
import { offlinePage } from "../offline/make";
import type { AppStore } from "../state/app";
import { requestOf } from "../state/compiler";
import { fileName, kernelOf, type KernelOutcome, type Outcome } from "../state/outcome";
import { isAsShared, pathOf, type Shared } from "../state/shared";
import { shownStage } from "../state/view";
import { startDevice } from "./devicebutton";
import { byId, el, fill, saveFile } from "./dom";
import { walkMenu } from "./menu";

interface Entry {
  label: string;
  note: string;
  /** Why it cannot be had now; "" if it can. */
  why: string;
  /** The address of what the entry opens; otherwise it runs. */
  href?: string;
  run?: () => Promise<void> | void;
}

/** What the entries are about. */
interface Shown {
  outcome: Outcome;
  kernel: KernelOutcome;
  /** The stored link whose frozen result is shown. */
  link: Shared | null;
}

const API = "/api/v1";

async function blobOf(path: string): Promise<Blob> {
  return (await send(path, {})).blob();
}

function compileAgain(store: AppStore, options: NonNullable<CompileRequest["options"]>): Promise<Result> {
  return compileWhole({ ...requestOf(store.state), options });
}

/** A file of the shown result.  The server keeps results for a while only; after that it is compiled again. */
async function fromResult(store: AppStore, outcome: Outcome, part: string): Promise<Blob> {
  try {
    return await blobOf(`${API}/results/${outcome.key}${part}`);
  } catch (e) {
    if (!(e instanceof Problem) || e.code !== "not-found" || store.state.pending) throw e;
    const { check, simulate } = store.state;
    const { key } = await compileAgain(store, { ...(check ? { check } : {}), ...(simulate ? { simulate } : {}) });
    return blobOf(`${API}/results/${key}${part}`);
  }
}

async function resultFile(store: AppStore, { outcome, link }: Shown): Promise<Blob> {
  if (!link) return fromResult(store, outcome, "");
  const snippet = (await (await send(`${API}/snippets/${link.id}?revision=${outcome.revision}`, {})).json()) as Snippet;
  return new Blob([JSON.stringify(snippet.result)], { type: "application/json" });
}

async function htmlFile(store: AppStore, shown: Shown): Promise<Blob> {
  const { outcome, kernel, link } = shown;
  if (link) return blobOf(pathOf(link, "/page.html"));
  const result = JSON.parse(await (await resultFile(store, shown)).text()) as Result;
  const [main, ...more] = [...outcome.texts].map(([name, source]) => ({ name, source }));
  const request = { filename: main?.name ?? "", source: main?.source ?? "", files: more };
  return offlinePage({ title: kernel.name, request, result });
}

/** One of the files that a compile makes only if it is asked for them. */
async function artifact(store: AppStore, name: string, simulate: boolean): Promise<Blob> {
  const { key, artifacts, diagnostics } = await compileAgain(store, { artifacts: true, ...(simulate ? { simulate } : {}) });
  if (artifacts.some((a) => a.name === name)) return blobOf(`${API}/results/${key}/artifacts/${name.split("/").map(encodeURIComponent).join("/")}`);
  const reason = diagnostics.find((d) => d.severity === "error")?.message ?? "the compiler did not make it";
  throw new Problem("request", "no-artifact", `There is no ${name}: ${reason}`);
}

function shownOf(store: AppStore): Shown | null {
  const { outcome, kernelName, shared } = store.state;
  const kernel = kernelOf(outcome, kernelName);
  if (!outcome || !kernel || outcome.status === "running" || outcome.status === "cut") return null;
  const link = shared && outcome.snippet === shared.id && isAsShared(store.state) ? shared : null;
  return { outcome, kernel, link };
}

function entries(store: AppStore, share: () => void): Entry[] {
  const s = store.state;
  const shown = shownOf(store);
  const stage = shownStage(s);
  const name = shown?.kernel.name ?? "kernel";
  const base = `${name}-${shown?.outcome.target ?? s.target}`;
  const noResult = shown ? "" : s.compiling ? "The kernel is being compiled." : "The kernel is not compiled yet.";
  const notWhole = noResult || (shown?.outcome.status === "ok" ? "" : "The kernel does not compile to the last stage.") || (s.pending ? "The kernel was edited: compile it first." : "");
  const nisa = shown?.kernel.stages.filter((t) => t.dialect === "nisa").at(-1) ?? null;
  const isKept = s.shared !== null && isAsShared(s);
  const saved = (file: string, make: (shown: Shown) => Promise<Blob>) => async () => void (shown && saveFile(file, await make(shown)));
  const file = (label: string, note: string, why: string, to: string, make: (shown: Shown) => Promise<Blob>): Entry => ({ label, note: note === "" ? to : `${to}: ${note}`, why, run: saved(to, make) });
  const text = (t: { text: string }) => Promise.resolve(new Blob([t.text], { type: "text/plain" }));
  const opened = (label: string, part: string, query: string): Entry =>
    isKept && s.shared ? { label, note: "opens in a new tab", why: "", href: withQuery(pathOf(s.shared, part), query) } : { label, note: "needs a stored link: opens Share, which makes one", why: "", run: share };
  return [
    { label: "This stage", note: stage ? fileName(stage.row) : "", why: stage ? "" : "No stage is shown.", run: async () => void (stage && saveFile(fileName(stage.row), await text(stage.stage))) },
    file("All stages", "with the result and the source map", noResult, `${base}.tar.gz`, ({ outcome, link }) => (link ? blobOf(pathOf(link, "/all.tar.gz")) : fromResult(store, outcome, "/all.tar.gz"))),
    file("One HTML file", "stages, links and colours, without a server", noResult, `${base}.html`, (of) => htmlFile(store, of)),
    file("The result", "what the API answers", noResult, `${base}.json`, (of) => resultFile(store, of)),
    file("The NISA program", "the last stage", noResult || (nisa ? "" : "The kernel does not reach NISA."), `${name}.nisa.mlir`, () => text(nisa ?? { text: "" })),
    file("The HLO module", "HloModuleProto, compiled anew", notWhole, `${name}.hlo.pb`, () => artifact(store, `${name}/hlo.pb`, false)),
    file("The timeline of a simulated run", "for ui.perfetto.dev, run anew", notWhole, `${name}.perfetto.json`, () => artifact(store, `${name}/timeline.json`, true)),
    file("What each instruction did in it", "run anew", notWhole, `${name}.executions.json`, () => artifact(store, `${name}/executions.json`, true)),
    file("The simulation package", "for the simulated machine, compiled anew; no device executes it", notWhole, `${name}.sim.neff`, () => artifact(store, `${name}/kernel.sim.neff`, false)),
    { label: "What the simulation package holds", note: "header, tensors, engines, queues", why: notWhole, run: async () => (await import("./neff")).openNeff(`${name}.sim.neff`, await artifact(store, `${name}/kernel.sim.neff`, false)) },
    opened("Page without JavaScript", "", "view=plain"),
    opened("Source as plain text", "/raw", ""),
    { label: "Inputs and outputs (.npz)", note: "", why: "The server does not give out values. In a terminal: nkx run kernel.py --save-outputs out.npz" },
    { label: "The vendor's NEFF", note: "for a Neuron device: made by neuronx-cc, beside the server or on a Neuron host, where there is one", why: notWhole, run: () => startDevice(store, "compile") },
    { label: "The kernel as NKI", note: "as the vendor's compiler prints it, likewise", why: notWhole, run: () => startDevice(store, "nki") },
  ];
}

function withQuery(path: string, query: string): string {
  return query === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${query}`;
}

function node(entry: Entry, close: () => void, say: (text: string) => void): HTMLElement {
  const { label, note, why, href, run } = entry;
  const words = [el("span", {}, label), el("span", { class: "note" }, why || note)];
  if (href !== undefined) return el("a", { attrs: { role: "menuitem", tabindex: -1, href, target: "_blank", rel: "noopener" }, on: { click: close } }, ...words);
  const item = el("button", { attrs: { type: "button", role: "menuitem", tabindex: -1, "aria-disabled": why === "" ? null : "true" } }, ...words);
  if (why === "" && run)
    item.addEventListener("click", () => {
      close();
      void Promise.resolve(run()).catch((e: unknown) => {
        if (!(e instanceof Problem)) throw e;
        say(e.message);
      });
    });
  return item;
}

/** Opens the menu; from then on the button does. */
export function mountDownloads(store: AppStore, share: () => void, say: (text: string) => void): void {
  const opener = byId<HTMLButtonElement>("download");
  if (opener.popoverTargetElement) return;
  const menu = el("div", { id: "downloads", class: "menu", attrs: { popover: "auto", role: "menu", "aria-label": "Download" } });
  menu.addEventListener("toggle", (e) => {
    if ((e as ToggleEvent).newState === "open") menu.querySelector<HTMLElement>('[role="menuitem"]')?.focus();
  });
  menu.addEventListener("beforetoggle", (e) => {
    if ((e as ToggleEvent).newState === "open") fill(menu, ...entries(store, share).map((entry) => node(entry, () => menu.hidePopover(), say)));
  });
  menu.addEventListener("keydown", (e) => walkMenu(e, menu));
  opener.after(menu);
  opener.popoverTargetElement = menu;
  menu.showPopover();
}
