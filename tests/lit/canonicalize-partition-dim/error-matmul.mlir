// RUN: not nkx opt --canonicalize-partition-dim %s 2>&1 | FileCheck %s
// CHECK: error: partition_dim != 0 on a matmul is not supported; annotate the element-wise operation
func.func @f(%a: tensor<128x128xf32>, %b: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %e = tensor.empty() : tensor<128x128xf32>
  %r = linalg.matmul ins(%a, %b : tensor<128x128xf32>, tensor<128x128xf32>) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  "nkipy.layout"(%r) {partition_dim = 1 : i32} : (tensor<128x128xf32>) -> ()
  return %r : tensor<128x128xf32>
}
