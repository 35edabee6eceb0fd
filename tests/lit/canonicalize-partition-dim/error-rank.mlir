// RUN: not nkx opt --canonicalize-partition-dim %s 2>&1 | FileCheck %s
// CHECK: error: partition_dim 2 is not a dimension of a value of rank 2
func.func @f(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %e = tensor.empty() : tensor<64x256xf32>
  %r = linalg.exp ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) -> tensor<64x256xf32>
  "nkipy.layout"(%r) {partition_dim = 2 : i32} : (tensor<64x256xf32>) -> ()
  return %r : tensor<64x256xf32>
}
