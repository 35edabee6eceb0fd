// RUN: not nkx opt --infer-layout %s 2>&1 | FileCheck %s
// CHECK: error: tile size 256 along the partition dimension exceeds the hardware limit of 128
func.func @f(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e0 = tensor.empty() : tensor<256x256xf32>
  %x = linalg.exp ins(%a : tensor<256x256xf32>) outs(%e0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%x) {loop_tile_size = array<i64: 256, 256>} : (tensor<256x256xf32>) -> ()
  return %x : tensor<256x256xf32>
}
