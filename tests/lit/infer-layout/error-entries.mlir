// RUN: not nkx opt --infer-layout %s 2>&1 | FileCheck %s

// A list of one entry more than any value has dimensions is not taken for one that fits.
// CHECK: error: tile_size [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] has 17 entries, but the value has rank 16
func.func @f(%a: tensor<2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2xf32>) -> tensor<2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2xf32> {
  %e = tensor.empty() : tensor<2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2xf32>
  %x = linalg.exp ins(%a : tensor<2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2xf32>) outs(%e : tensor<2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2xf32>) -> tensor<2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2xf32>
  "nkipy.layout"(%x) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1>} : (tensor<2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2xf32>) -> ()
  return %x : tensor<2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2xf32>
}
