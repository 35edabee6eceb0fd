// recordbutton: loads what records and plays, when it is asked for or a link has a recording.
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { say } from "./notices";

async function load(store: AppStore, compiler: Compiler, share: () => void) {
  try {
    return (await import("./recording")).recordingBar(store, compiler, share);
  } catch (e) {
    console.error(e);
    say("The recorder could not be loaded: is the server reachable?");
    return null;
  }
}

let loader: () => ReturnType<typeof load> = () => Promise.resolve(null);

export async function startRecording(): Promise<void> {
  (await loader())?.record();
}

/** Ends the recording that there is. */
export async function stopRecording(store: AppStore): Promise<void> {
  if (store.state.isRecording) await (await loader())?.stop();
}

/** share: opens the dialog that makes links. */
export function mountRecording(store: AppStore, compiler: Compiler, share: () => void): void {
  loader = () => load(store, compiler, share);
  store.watch(["recording"], () => {
    const { recording } = store.state;
    if (recording !== null) void loader().then((bar) => bar?.openPacked(recording));
  });
}
