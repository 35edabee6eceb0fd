// print: what goes to paper: the kernel and the shown stage as plain text.  The editors only hold the lines in sight.
import type { AppStore } from "../state/app";
import { mainName } from "../state/files";
import { shownStage } from "../state/view";
import { byId, el, fill } from "./dom";

export function mountPrint(store: AppStore): void {
  const page = byId("print");
  window.addEventListener("beforeprint", () => {
    const s = store.state;
    const shown = shownStage(s);
    const part = (name: string, text: string) => [el("h2", {}, name), el("pre", {}, text)];
    fill(
      page,
      el("h1", {}, [shown?.row.kernel.name, s.target, shown?.row.key].filter(Boolean).join(" · ")),
      ...part(mainName(s), s.source),
      ...s.files.flatMap((f) => part(f.name, f.source)),
      ...(shown ? part(shown.stage.name, shown.stage.text) : []),
    );
  });
  window.addEventListener("afterprint", () => fill(page));
}
