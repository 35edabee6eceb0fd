// devicebutton: where a run on a Neuron host is offered: beside the simulated run's time, and in the palette.
import type { AppStore } from "../state/app";
import { button, byId } from "./dom";
import { say } from "./notices";

export function startDevice(store: AppStore): void {
  void import("./device").then(
    (m) => m.openDevice(store),
    () => say("The runs on Neuron hosts could not be loaded: is the server reachable?"),
  );
}

export function mountDevice(store: AppStore): void {
  byId("run-actions").append(button("Neuron host", "Run the kernel on a Neuron host that is connected to the server", () => startDevice(store)));
}
