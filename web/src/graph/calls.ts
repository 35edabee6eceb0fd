// calls: which calls of functions of the kernel led to each line of a stage.
import type { Stage } from "../api/types";
import type { Place, SourceMap } from "../state/sourcemap";
import type { Call } from "./drawing";

const NONE: readonly Call[] = [];

/** "outer.<locals>.inner" as "inner". */
function nameOf(fn: string | undefined): string {
  return fn?.split(".").at(-1) || "call";
}

function callsOfPlace(map: SourceMap, place: Place): Call[] {
  const calls: Call[] = [];
  for (let depth = place.length - 1; depth > 0; depth--) calls.push({ range: place[depth] as number, name: nameOf(map.ranges[place[depth - 1] as number]?.fn) });
  return calls;
}

/** By line - 1, the outermost call first; of a line made from several places, the calls that all share. */
export function callsOfStage(map: SourceMap, stage: Stage): Call[][] {
  const known = new Map<readonly Place[], readonly Call[]>();
  return map.linksOf(stage).places.map((places) => {
    if (!places || places.length === 0) return NONE as Call[];
    let calls = known.get(places);
    if (!calls) {
      const lists = places.map((p) => callsOfPlace(map, p));
      calls = (lists[0] ?? []).filter((call, i) => lists.every((l) => l[i]?.range === call.range));
      known.set(places, calls);
    }
    return calls as Call[];
  });
}
