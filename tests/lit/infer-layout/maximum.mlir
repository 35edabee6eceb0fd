// A maximum over the first of three dimensions goes along it step by step. What it reads keeps tiles of all partitions, and goes
// through HBM.  The maximum is in SBUF until the last step; what is returned is a copy (revisited.mlir).
// RUN: nkx opt --infer-layout %s | FileCheck %s

// CHECK-LABEL: @maximum
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 1 : i32, partition_dim = 0 : i32, tile_size = array<i64: 96, 28, 28>}
// CHECK: arith.maximumf
// CHECK: "nkipy.layout"({{.*}}) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 28, 28>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 1, 28, 28>}
func.func @maximum(%x: tensor<96x28x28xf32>) -> tensor<28x28xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<96x28x28xf32>
  %a = linalg.exp ins(%x : tensor<96x28x28xf32>) outs(%e0 : tensor<96x28x28xf32>) -> tensor<96x28x28xf32>
  %e1 = tensor.empty() : tensor<28x28xf32>
  %f = linalg.fill ins(%low : f32) outs(%e1 : tensor<28x28xf32>) -> tensor<28x28xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b, c)>], iterator_types = ["reduction", "parallel", "parallel"]}
       ins(%a : tensor<96x28x28xf32>) outs(%f : tensor<28x28xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.maximumf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<28x28xf32>
  return %m : tensor<28x28xf32>
}
