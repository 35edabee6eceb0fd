// RUN: not nkx opt --canonicalize-partition-dim %s 2>&1 | FileCheck %s
// CHECK: warning: partition_dim 1 has no effect: the value is an argument
// CHECK: error: unsupported op for partition_dim 1: linalg.fill
func.func @f(%x: tensor<64x128xf32>, %c: f32) -> tensor<128x64xf32> {
  "nkipy.layout"(%x) {partition_dim = 1 : i32} : (tensor<64x128xf32>) -> ()
  %e = tensor.empty() : tensor<128x64xf32>
  %r = linalg.fill ins(%c : f32) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>
  "nkipy.layout"(%r) {partition_dim = 1 : i32} : (tensor<128x64xf32>) -> ()
  return %r : tensor<128x64xf32>
}
