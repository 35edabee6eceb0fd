// layouter: asks the worker for drawings.  A new question ends the one that is still being worked on.
import type { Answer, Drawing, Wanted } from "../graph/drawing";

/** The address of the worker's script, which has a hash of its content in its name; set by build.mjs. */
declare const NKX_LAYOUT_WORKER: string;

interface Policy {
  createScriptURL(input: string): string;
}

/** Under require-trusted-types-for, a worker's address must come from a policy: this one knows one address. */
function policy(): Policy {
  const own = { createScriptURL: () => NKX_LAYOUT_WORKER };
  const types = (window as { trustedTypes?: { createPolicy(name: string, rules: Policy): Policy } }).trustedTypes;
  return types ? types.createPolicy("nkx-layout", own) : own;
}

export class Layouter {
  private worker: Worker | null = null;
  private isBusy = false;
  private last = 0;
  private readonly policy = policy();

  constructor(private readonly done: (drawing: Drawing | null, fault: string) => void) {}

  ask(wanted: Omit<Wanted, "id">): void {
    if (this.isBusy) this.end();
    const worker = (this.worker ??= this.start());
    this.isBusy = true;
    worker.postMessage({ ...wanted, id: ++this.last } satisfies Wanted);
  }

  end(): void {
    this.worker?.terminate();
    this.worker = null;
    this.isBusy = false;
  }

  private start(): Worker {
    const worker = new Worker(this.policy.createScriptURL(""), { type: "module", name: "layout" });
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      if (data.id !== this.last) return;
      this.isBusy = false;
      this.done(data.drawing, data.fault);
    };
    worker.onerror = () => {
      this.end();
      this.done(null, "The part of the page that lays out pictures could not be loaded: is the server reachable?");
    };
    return worker;
  }
}
