// A number that two operations of one kind share would find both.
// RUN: not nkx opt --knob-driven-tiling %s 2>&1 | FileCheck %s
// CHECK: error: nkipy.op_id 4 is used more than once
func.func @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.exp {nkipy.op_id = 4 : i64} ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  "nkipy.tile_op"(%0) {loop_tile_size = array<i64: 8, 8>} : (tensor<8x8xf32>) -> ()
  %1 = linalg.exp {nkipy.op_id = 4 : i64} ins(%0 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
