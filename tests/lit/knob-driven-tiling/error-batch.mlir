// A batch_matmul is not tiled; decompose-batch-matmul makes a loop of matmuls of it.
// RUN: not nkx opt --knob-driven-tiling %s 2>&1 | FileCheck %s
// CHECK: error: Invalid tile configuration: a batch_matmul is tiled as a loop of matmuls: run decompose-batch-matmul
func.func @f(%a: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  %e = tensor.empty() : tensor<2x8x8xf32>
  %r = linalg.batch_matmul {nkipy.op_id = 0 : i64} ins(%a, %a : tensor<2x8x8xf32>, tensor<2x8x8xf32>) outs(%e : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 8, 8, 8>} : (tensor<2x8x8xf32>) -> ()
  return %r : tensor<2x8x8xf32>
}
