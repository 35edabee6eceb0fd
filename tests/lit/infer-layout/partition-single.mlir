// Two partition dimensions that meet in one value do not contradict each other if one of them has a single element.
// RUN: nkx opt --infer-layout %s | FileCheck %s
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = {{[0-9]}} : i32, partition_dim = 1 : i32
// CHECK: linalg.square
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 4 : i32, partition_dim = 0 : i32
func.func @f(%a: tensor<1x64x8xf32>) -> tensor<1x64x8xf32> {
  %e0 = tensor.empty() : tensor<1x64x8xf32>
  %x = linalg.exp ins(%a : tensor<1x64x8xf32>) outs(%e0 : tensor<1x64x8xf32>) -> tensor<1x64x8xf32>
  "nkipy.layout"(%x) {partition_dim = 1 : i32} : (tensor<1x64x8xf32>) -> ()
  %e1 = tensor.empty() : tensor<1x64x8xf32>
  %y = linalg.square ins(%x : tensor<1x64x8xf32>) outs(%e1 : tensor<1x64x8xf32>) -> tensor<1x64x8xf32>
  "nkipy.layout"(%y) {partition_dim = 0 : i32} : (tensor<1x64x8xf32>) -> ()
  return %y : tensor<1x64x8xf32>
}
