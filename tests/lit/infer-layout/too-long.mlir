// A tile longer than its dimension is left for knob-driven-tiling to refuse; it does not reach the neighbours.
// RUN: nkx opt --infer-layout %s | FileCheck %s
// CHECK: linalg.exp
// CHECK: loop_tile_size = array<i64: 128, 64>
// CHECK: linalg.matmul
// CHECK: loop_tile_size = array<i64: 128, 128, 128>
func.func @f(%a: tensor<256x64xf32>, %b: tensor<64x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x64xf32>
  %x = linalg.exp ins(%a : tensor<256x64xf32>) outs(%e : tensor<256x64xf32>) -> tensor<256x64xf32>
  %f = tensor.empty() : tensor<256x256xf32>
  %r = linalg.matmul ins(%x, %b : tensor<256x64xf32>, tensor<64x256xf32>) outs(%f : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
