// RUN: not nkx opt --infer-layout %s 2>&1 | FileCheck %s
// CHECK: error: dimension 0 is reduced; it cannot lie across the partitions
func.func @f(%x: tensor<1000x512xf32>) -> tensor<1x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<1x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x512xf32>) -> tensor<1x512xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (0, b)>], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<1000x512xf32>) outs(%f : tensor<1x512xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<1x512xf32>
  "nkipy.layout"(%s) {partition_dim = 0 : i32} : (tensor<1x512xf32>) -> ()
  return %s : tensor<1x512xf32>
}
