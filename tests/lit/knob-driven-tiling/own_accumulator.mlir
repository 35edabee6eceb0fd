// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s
// The accumulator's tensor.empty is the matmul's own: one that a fill shares may get a buffer with contents.

// CHECK-LABEL: func.func @shared
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<4x4xf32>
// CHECK:         linalg.fill ins({{.*}}) outs(%[[E]]
// CHECK:         %[[OWN:.*]] = tensor.empty() : tensor<4x4xf32>
// CHECK:         linalg.matmul {{.*}} outs(%[[OWN]] : tensor<4x4xf32>)
func.func @shared(%a: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %c = arith.constant 2.0 : f32
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %m0 = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = linalg.matmul {nkipy.op_id = 0 : i64} ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%m0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  "nkipy.tile_op"(%m) {loop_tile_size = array<i64: 4, 4, 4>} : (tensor<4x4xf32>) -> ()
  return %f, %m : tensor<4x4xf32>, tensor<4x4xf32>
}
