// instances: chooses which instance of a launch nki-trace and nki-canonicalize show; the server writes the text anew.
import type { NkiGrid } from "../api/types";
import type { AppStore } from "../state/app";
import type { Compiler } from "../state/compiler";
import { shownStage, STAGE_KEYS } from "../state/view";
import { byId, el, fill } from "./dom";

/** "(1, 0) on core 1", "(1, 0) = (0, 0)": an instance, and the one whose calls it makes. */
export function instanceName(grid: NkiGrid, number: number): string {
  const id = (n: number) => `(${(grid.instances[n]?.id ?? []).join(", ")})`;
  const x = grid.instances[number];
  if (x?.same_as !== undefined) return `${id(number)} = ${id(x.same_as)}`;
  return grid.cores > 1 && x?.core !== undefined ? `${id(number)} on core ${x.core}` : id(number);
}

/** There is something to choose: several instances make calls of their own. */
export function hasChoice(grid: NkiGrid | undefined): grid is NkiGrid {
  return (grid?.instances ?? []).filter((x) => x.same_as === undefined).length > 1;
}

export function mountInstances(store: AppStore, compiler: Compiler): void {
  const select = byId<HTMLSelectElement>("ir-instance");
  store.watch([...STAGE_KEYS, "instance"], () => {
    const grid = shownStage(store.state)?.stage.grid;
    select.hidden = !hasChoice(grid);
    if (!hasChoice(grid)) return;
    const option = (value: string, label: string) => {
      const o = el("option", {}, label);
      o.value = value;
      return o;
    };
    fill(select, option("", "all instances"), ...grid.instances.map((_, n) => option(String(n), instanceName(grid, n))));
    select.value = String(grid.shown ?? "");
  });
  select.addEventListener("change", () => {
    store.set({ instance: select.value === "" ? null : Number(select.value), anchor: null });
    void compiler.now();
  });
}
