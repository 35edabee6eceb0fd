// RUN: not nkx opt --infer-layout %s 2>&1 | FileCheck %s
// CHECK: error: conflicting partition_dim: this one and the one at kernel.py:{{[57]}} meet in one value [bad-knob]
func.func @f(%a: tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  %e0 = tensor.empty() : tensor<64x64x64xf32>
  %x = linalg.exp ins(%a : tensor<64x64x64xf32>) outs(%e0 : tensor<64x64x64xf32>) -> tensor<64x64x64xf32>
  "nkipy.layout"(%x) {partition_dim = 1 : i32} : (tensor<64x64x64xf32>) -> () loc("kernel.py":5:3 to 5:20)
  %e1 = tensor.empty() : tensor<64x64x64xf32>
  %y = linalg.square ins(%x : tensor<64x64x64xf32>) outs(%e1 : tensor<64x64x64xf32>) -> tensor<64x64x64xf32>
  "nkipy.layout"(%y) {partition_dim = 2 : i32} : (tensor<64x64x64xf32>) -> () loc("kernel.py":7:3 to 7:20)
  return %y : tensor<64x64x64xf32>
}
