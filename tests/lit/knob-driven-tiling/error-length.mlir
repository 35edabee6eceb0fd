// One entry for two loops.
// RUN: not nkx opt --knob-driven-tiling %s 2>&1 | FileCheck %s
// CHECK: kernel.py:7:5: error: Invalid tile configuration: 1 entries for an operation with 2 loops
func.func @f(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %r = linalg.exp {nkipy.op_id = 0 : i64} ins(%a : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 64>} : (tensor<64x64xf32>) -> () loc("kernel.py":7:5 to 7:30)
  return %r : tensor<64x64xf32>
}
