// opclass: what kind of work an operation does, which decides its colour.
import type { TokenClass } from "./token";

const HLO_TRANSFER = new Set(
  ("copy,transpose,reshape,broadcast,slice,dynamic-slice,dynamic-update-slice,concatenate,pad,gather,scatter,reverse," +
    "bitcast,bitcast-convert,copy-start,copy-done,all-gather,all-to-all,collective-permute,send,recv,infeed,outfeed").split(","),
);
const HLO_ALLOC = new Set(["parameter", "constant", "iota", "tuple", "get-tuple-element", "rng", "after-all"]);
const HLO_CONTROL = new Set(["call", "while", "conditional", "fusion", "custom-call", "map", "async-start", "async-done"]);
const HLO_SYNC = new Set(["all-reduce", "reduce-scatter", "partition-id", "replica-id", "optimization-barrier", "domain"]);

export function hloClass(opcode: string): TokenClass {
  if (HLO_TRANSFER.has(opcode)) return "transfer";
  if (HLO_ALLOC.has(opcode)) return "alloc";
  if (HLO_CONTROL.has(opcode)) return "control";
  if (HLO_SYNC.has(opcode)) return "sync";
  return "compute";
}

const MLIR_OPS: [RegExp, TokenClass][] = [
  [/^nisa\.(wait|signal|semaphore|barrier|sync)/, "sync"],
  [/^nisa\.(alloc|release|dealloc|iota|memset)/, "alloc"],
  [/^nisa\.(all_reduce|reduce_scatter)/, "sync"],
  [/^nisa\.(all_gather|all_to_all|collective_permute|dma|tensor_copy|load|store|transpose|partition_broadcast)/, "transfer"],
  [/^nisa\./, "compute"],
  [/^nkipy\./, "otherop"],
  [/^(gpu|async|nvgpu)\.(barrier|await|token)/, "sync"],
  [/^(memref|bufferization)\.(alloc|alloca|dealloc|get_global|global|alloc_tensor)/, "alloc"],
  [/^tensor\.(empty|splat|generate)$/, "alloc"],
  [/^(memref|bufferization|tensor|vector)\./, "transfer"],
  [/^linalg\.(fill)$/, "alloc"],
  [/^linalg\.(copy|transpose|broadcast|pack|unpack)$/, "transfer"],
  [/^linalg\.yield$/, "control"],
  [/^(arith|complex|index)\.constant$/, "alloc"],
  [/^(linalg|arith|math|complex|index)\./, "compute"],
  [/^(scf|cf|affine|func|transform|builtin)\./, "control"],
];

export function mlirClass(op: string): TokenClass {
  for (const [pattern, cls] of MLIR_OPS) if (pattern.test(op)) return cls;
  return "otherop";
}
