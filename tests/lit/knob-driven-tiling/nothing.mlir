// Knobs on what cannot be tiled (a fill, a value that is no linalg operation's) leave no script and no attribute.
// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s
// CHECK-NOT: transform
// CHECK:     linalg.fill
// CHECK-NOT: transform
func.func @f(%a: tensor<4x8xf32>, %s: f32) -> (tensor<8x8xf32>, tensor<32xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %r = linalg.fill {nkipy.op_id = 0 : i64} ins(%s : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 8, 8>} : (tensor<8x8xf32>) -> ()
  %c = tensor.collapse_shape %a [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  "nkipy.tile_op"(%c) {loop_tile_size = array<i64: 32>} : (tensor<32xf32>) -> ()
  return %r, %c : tensor<8x8xf32>, tensor<32xf32>
}
