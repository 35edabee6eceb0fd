// notices: the banner about trouble with the service, short messages that disappear, and texts for screen readers.
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { byId, button, el, fill, plural } from "./dom";

/** Shows a message that fades, and puts it into the polite live region. */
export function say(text: string): void {
  announce(text);
  document.querySelector(".toast")?.remove();
  const toast = el("div", { class: "toast", attrs: { "aria-hidden": "true" } }, text);
  document.body.append(toast);
  setTimeout(() => toast.remove(), text.length > 60 ? 8000 : 3000);
}

export function announce(text: string): void {
  const live = byId("live");
  // a repeated message must be announced again
  live.textContent = live.textContent === text ? text + "\u00a0" : text;
}

const RETRY_MS = 5000;

export function mountNotices(store: AppStore, compiler: Compiler, reload: () => void): void {
  const banner = byId("banner");
  let timer = 0;
  const retry = () => {
    window.clearTimeout(timer);
    if (store.state.examples.length === 0) reload();
    void compiler.now();
  };
  store.watch(["problem"], () => {
    const { problem } = store.state;
    window.clearTimeout(timer);
    banner.className = problem ? `banner-${problem.kind}` : "";
    if (!problem) {
      fill(banner);
      return;
    }
    const lead = {
      network: "Connection lost. ",
      ours: "A fault of ours, not of your kernel. ",
      limit: "A limit of the service. ",
      request: "",
    }[problem.kind];
    const id = problem.requestId ? ` (request ${problem.requestId})` : "";
    fill(
      banner,
      el("span", {}, el("b", {}, lead), `${problem.message}${problem.hint ? ` ${problem.hint}` : ""}${id}`),
      el("span", { class: "spring" }),
      button("Retry", "Compile again", retry, "plain"),
      button("×", "Dismiss", () => store.set({ problem: null }), "quiet"),
    );
    if (problem.kind === "network") timer = window.setTimeout(retry, RETRY_MS);
  });
  window.addEventListener("online", () => {
    if (store.state.problem?.kind === "network") retry();
  });

  store.watch(["compiling"], () => {
    const { compiling, outcome } = store.state;
    if (compiling || !outcome) return;
    const count = (s: string) => outcome.diagnostics.filter((d) => d.severity === s).length;
    const first = outcome.diagnostics.find((d) => d.severity === "error");
    const stages = outcome.kernels.reduce((n, k) => n + k.stages.length, 0);
    if (outcome.status === "ok") {
      const warnings = count("warning");
      announce(`Compiled, ${plural(stages, "stage")}${warnings > 0 ? `, ${plural(warnings, "warning")}` : ""}`);
    } else if (first) {
      announce(`${plural(count("error"), "error")}: ${first.message}`);
    }
  });
}
