// ranking: which of the operations that belong to a selection says most about it.
//
// The operation that does the work comes first, then what moves its data, then buffers, and constants last.  The whole page
// uses this one order: for the line that is scrolled into sight, for the names of the history's chips and for their counts.
import type { Stage } from "../api/types";
import { linesOfStage } from "../editor/rows";
import { opLabel } from "../highlight/label";
import type { StageLinks } from "./sourcemap";

/** The kinds of work, the most telling first. */
const KINDS = ["matmul", "reduce", "compute", "move", "fill", "scalar", "view", "loop", "note", "sync", "buffer", "end", "constant"] as const;

export type Kind = (typeof KINDS)[number];

const RANK = new Map(KINDS.map((kind, i) => [kind, i]));

const HLO: [RegExp, Kind][] = [
  [/^(dot|convolution)$/, "matmul"],
  [/^(reduce|reduce-window|all-reduce|reduce-scatter|sort|topk)$/, "reduce"],
  [/^(iota|rng.*)$/, "fill"],
  [/^(reshape|bitcast|broadcast|get-tuple-element)$/, "view"],
  [/^(copy|copy-start|copy-done|transpose|slice|dynamic-slice|dynamic-update-slice|concatenate|pad|gather|scatter|reverse|all-gather|all-to-all|collective-permute|send|recv)$/, "move"],
  [/^(call|while|conditional|fusion|map)$/, "loop"],
  [/^(partition-id|replica-id|optimization-barrier|after-all|domain)$/, "sync"],
  [/^(parameter|tuple)$/, "buffer"],
  [/^constant$/, "constant"],
];

const MLIR: [RegExp, Kind][] = [
  [/^arith\.constant$|^transform\.param\.constant$/, "constant"],
  [/\.(yield|return)$|^builtin\.module$|^func\.func$/, "end"],
  [/^(linalg|nisa|nkipy)\.\w*(matmul|dot|matvec|vecmat|conv)/, "matmul"],
  [/^(linalg|nisa)\.\w*(reduce|max8|bn_stats|bn_aggr)/, "reduce"],
  [/^nisa\.(memset|iota)|^linalg\.fill|^tensor\.(splat|generate)$/, "fill"],
  [/^nisa\.(dma_trigger|wait|signal|semaphore|barrier|sync)|^nkipy\.(barrier|wait)/, "sync"],
  [/^nisa\.(dma|tensor_copy|load|store|transpose|partition_broadcast|all_gather|all_to_all|collective_permute)/, "move"],
  [/^nisa\.(alloc|release|dealloc)|^(memref|bufferization)\.(alloc|dealloc|get_global|global|alloc_tensor)|^tensor\.empty$/, "buffer"],
  [/^nisa\.rotate/, "view"],
  [/^nisa\.program|^(scf|cf|affine|func|transform)\./, "loop"],
  [/^nisa\./, "compute"],
  [/^nkipy\.(layout|tile_op)/, "note"],
  [/^linalg\.(copy|transpose|broadcast|pack|unpack)$|^memref\.copy$|^tensor\.(pad|concat|gather|scatter)$|^bufferization\.materialize/, "move"],
  [/^(memref|bufferization|tensor|vector)\./, "view"],
  [/^(linalg|nkipy)\./, "compute"],
  [/^(arith|math|complex|index)\./, "scalar"],
];

/** The kind of an operation, from its label and the text of its line. */
export function kindOf(label: string, dialect: string, text: string): Kind {
  const isHlo = dialect === "hlo";
  const found = (isHlo ? HLO : MLIR).find(([pattern]) => pattern.test(label))?.[1] ?? (isHlo ? "compute" : "note");
  if (label === "linalg.generic" && text.includes('"reduction"')) return "reduce";
  // on whole tensors it is the work; on numbers it computes an index, or stands in the body of another operation
  if (found === "scalar" && /[:>]\s*(tensor|vector)</.test(text)) return "compute";
  return found;
}

export function rankOf(kind: Kind): number {
  return RANK.get(kind) ?? KINDS.length;
}

/** A transpose on the Tensor engine is a product with the identity, which moves data. */
function rankIn(kind: Kind, text: string): number {
  return rankOf(kind === "matmul" && /\bis_transpose ?= ?true\b/.test(text) ? "move" : kind);
}

export interface Described {
  op: number;
  line: number;
  label: string;
  kind: Kind;
  rank: number;
}

const described = new WeakMap<Stage, Map<number, Described | null>>();

/** What an operation is; null if it is not printed. */
export function describe(stage: Stage, links: StageLinks, op: number): Described | null {
  let known = described.get(stage);
  if (!known) described.set(stage, (known = new Map()));
  let found = known.get(op);
  if (found === undefined) {
    const line = links.opLines.get(op)?.[0];
    const text = line === undefined ? "" : (linesOfStage(stage)[line - 1] ?? "");
    const label = opLabel(text, stage.dialect);
    const kind = kindOf(label, stage.dialect, text);
    found = line === undefined ? null : { op, line, label, kind, rank: rankIn(kind, text) };
    known.set(op, found);
  }
  return found;
}

function placesAt(links: StageLinks, line: number): number {
  return (links.places[line - 1]?.length ?? 0) + (links.more[line - 1] ?? 0);
}

/** The operations that are printed, the best first; of equals the one made from the fewest places, then the first one. */
export function ranked(stage: Stage, links: StageLinks, ops: Iterable<number>): Described[] {
  const list = [...ops].flatMap((op) => describe(stage, links, op) ?? []);
  return list.sort((a, b) => a.rank - b.rank || placesAt(links, a.line) - placesAt(links, b.line) || a.line - b.line);
}

/** The best partner. */
export function bestOf(stage: Stage, links: StageLinks, ops: Iterable<number>): Described | null {
  return ranked(stage, links, ops)[0] ?? null;
}
