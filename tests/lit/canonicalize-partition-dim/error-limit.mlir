// RUN: not nkx opt --canonicalize-partition-dim %s 2>&1 | FileCheck %s
// CHECK: error: tile size 256 along partition_dim 1 exceeds the hardware partition limit of 128
func.func @f(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %e = tensor.empty() : tensor<64x256xf32>
  %r = linalg.exp ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) -> tensor<64x256xf32>
  "nkipy.layout"(%r) {partition_dim = 1 : i32, tile_size = array<i64: 64, 256>} : (tensor<64x256xf32>) -> ()
  return %r : tensor<64x256xf32>
}
