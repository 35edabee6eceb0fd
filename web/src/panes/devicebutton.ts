// devicebutton: where a run on a Neuron host is offered: beside the simulated run's time, and in the palette.
import type { Run, SourceRange } from "../api/types";
import type { AppStore } from "../state/app";
import { button, byId } from "./dom";
import { say } from "./notices";

let goToSource: (range: SourceRange) => void = () => undefined;

export function startDevice(store: AppStore, what: Run["run"] = "execute"): void {
  void import("./device").then(
    (m) => m.openDevice(store, goToSource, what),
    () => say("The runs on Neuron hosts could not be loaded: is the server reachable?"),
  );
}

export function mountDevice(store: AppStore, goTo: (range: SourceRange) => void): void {
  goToSource = goTo;
  byId("run-actions").append(button("Neuron host", "Run the kernel on a Neuron host that is connected to the server", () => startDevice(store)));
}
