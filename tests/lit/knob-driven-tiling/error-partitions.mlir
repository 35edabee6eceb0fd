// More rows than there are partitions.
// RUN: not nkx opt --knob-driven-tiling %s 2>&1 | FileCheck %s
// CHECK: kernel.py:7:5: error: Invalid tile configuration: tile entry 0 (256) goes over the partitions, of which there are 128
func.func @f(%a: tensor<256x64xf32>) -> tensor<256x64xf32> {
  %e = tensor.empty() : tensor<256x64xf32>
  %r = linalg.exp {nkipy.op_id = 0 : i64} ins(%a : tensor<256x64xf32>) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 256, 64>} : (tensor<256x64xf32>) -> () loc("kernel.py":7:5 to 7:30)
  return %r : tensor<256x64xf32>
}
