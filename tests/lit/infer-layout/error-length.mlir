// RUN: not nkx opt --infer-layout %s 2>&1 | FileCheck %s
// CHECK: error: loop_tile_size [128,128] has 2 entries, but the operation has 3 loops
func.func @f(%a: tensor<256x256xf32>, %b: tensor<256x1024xf32>) -> tensor<256x1024xf32> {
  %e0 = tensor.empty() : tensor<256x1024xf32>
  %x = linalg.matmul ins(%a, %b : tensor<256x256xf32>, tensor<256x1024xf32>) outs(%e0 : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  "nkipy.tile_op"(%x) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x1024xf32>) -> ()
  return %x : tensor<256x1024xf32>
}
