// RUN: not nkx opt --infer-layout %s 2>&1 | FileCheck %s
// CHECK: error: every dimension is reduced, so none is left for the partitions
// prepare-arithmetic leaves one:
// RUN: nkx opt --prepare-arithmetic --infer-layout --canonicalize-partition-dim %s | FileCheck %s --check-prefix=SPLIT
// SPLIT-COUNT-2: iterator_types = ["parallel", "reduction"]
func.func @f(%x: tensor<256x512xf32>) -> tensor<1x1xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (0, 0)>], iterator_types = ["reduction", "reduction"]}
       ins(%x : tensor<256x512xf32>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.addf %o, %i : f32
    linalg.yield %r : f32
  } -> tensor<1x1xf32>
  return %s : tensor<1x1xf32>
}
