// worker: reads a stage's text and lays out its picture, beside the page's own thread.
import type { Answer, Wanted } from "./drawing";
import { flowDrawing } from "./flow";
import { nestDrawing } from "./nest";

function answer(wanted: Wanted): Answer {
  try {
    return { id: wanted.id, drawing: wanted.dialect === "hlo" ? flowDrawing(wanted) : nestDrawing(wanted), fault: "" };
  } catch (e) {
    return { id: wanted.id, drawing: null, fault: e instanceof Error ? e.message : String(e) };
  }
}

// the page's types describe a window; a worker has the same two members
const own = globalThis as unknown as { onmessage: ((e: MessageEvent<Wanted>) => void) | null; postMessage(answer: Answer): void };
own.onmessage = ({ data }) => own.postMessage(answer(data));
