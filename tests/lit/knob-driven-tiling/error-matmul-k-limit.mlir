// More of K than there are partitions.
// RUN: not nkx opt --knob-driven-tiling %s 2>&1 | FileCheck %s
// CHECK: kernel.py:7:5: error: Invalid tile configuration: matmul K tile (256) is larger than the hardware's limit of 128
func.func @f(%a: tensor<64x512xf32>, %b: tensor<512x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %r = linalg.matmul {nkipy.op_id = 0 : i64} ins(%a, %b : tensor<64x512xf32>, tensor<512x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 64, 64, 256>} : (tensor<64x64xf32>) -> () loc("kernel.py":7:5 to 7:30)
  return %r : tensor<64x64xf32>
}
