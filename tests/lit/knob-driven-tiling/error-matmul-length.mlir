// Two entries for a matmul.
// RUN: not nkx opt --knob-driven-tiling %s 2>&1 | FileCheck %s
// CHECK: kernel.py:7:5: error: Invalid tile configuration: a matmul needs three entries, [M, N, K], not 2
func.func @f(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %r = linalg.matmul {nkipy.op_id = 0 : i64} ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 64, 64>} : (tensor<64x64xf32>) -> () loc("kernel.py":7:5 to 7:30)
  return %r : tensor<64x64xf32>
}
