// Groups come in the program's order, whatever the operations are called; each is found by its number.
// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s
func.func @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.tanh {nkipy.op_id = 0 : i64} ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  "nkipy.tile_op"(%0) {loop_tile_size = array<i64: 8, 8>} : (tensor<8x8xf32>) -> ()
  %1 = linalg.transpose ins(%0 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) permutation = [1, 0] {nkipy.op_id = 1 : i64}
  "nkipy.tile_op"(%1) {loop_tile_size = array<i64: 8, 8>} : (tensor<8x8xf32>) -> ()
  %2 = linalg.tanh {nkipy.op_id = 2 : i64} ins(%1 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  "nkipy.tile_op"(%2) {loop_tile_size = array<i64: 4, 8>} : (tensor<8x8xf32>) -> ()
  %3 = linalg.add {nkipy.op_id = 3 : i64} ins(%2, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  "nkipy.tile_op"(%3) {loop_tile_size = array<i64: 8, 4>} : (tensor<8x8xf32>) -> ()
  return %3 : tensor<8x8xf32>
}
// CHECK:     match ops{["linalg.tanh"]} attributes {nkipy.op_id = 0 : i64}
// CHECK:     match ops{["linalg.transpose"]} attributes {nkipy.op_id = 1 : i64}
// CHECK:     match ops{["linalg.tanh"]} attributes {nkipy.op_id = 2 : i64}
// CHECK:     tile_sizes [4, 8]
// CHECK:     match ops{["linalg.add"]} attributes {nkipy.op_id = 3 : i64}
// CHECK-NOT: match
