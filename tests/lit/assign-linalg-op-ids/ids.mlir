// RUN: nkx opt --assign-linalg-op-ids %s | FileCheck %s
// RUN: nkx opt --assign-linalg-op-ids --assign-linalg-op-ids %s | FileCheck %s

// In program order, fills, transposes, broadcasts and operations in loops included; 2 is taken and not given again.
// CHECK-LABEL: func.func @f
// CHECK:         linalg.fill {nkipy.op_id = 0 : i64}
// CHECK:         linalg.broadcast {{.*}} {nkipy.op_id = 1 : i64}
// CHECK:         linalg.exp {nkipy.op_id = 2 : i64}
// CHECK:         scf.for
// CHECK:           linalg.transpose {{.*}} {nkipy.op_id = 3 : i64}
// CHECK:         linalg.generic {{.*}} {nkipy.op_id = 4 : i64}
func.func @f(%a: tensor<4xf32>) -> tensor<4x4xf32> {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = linalg.broadcast ins(%a : tensor<4xf32>) outs(%f : tensor<4x4xf32>) dimensions = [0]
  %x = linalg.exp {nkipy.op_id = 2 : i64} ins(%b : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %l = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %x) -> (tensor<4x4xf32>) {
    %u = linalg.transpose ins(%t : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) permutation = [1, 0]
    scf.yield %u : tensor<4x4xf32>
  }
  %g = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%l : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%v: f32, %o: f32):
    %m = arith.mulf %v, %v : f32
    linalg.yield %m : f32
  } -> tensor<4x4xf32>
  return %g : tensor<4x4xf32>
}
