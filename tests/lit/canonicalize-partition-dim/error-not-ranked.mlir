// RUN: not nkx opt --canonicalize-partition-dim %s 2>&1 | FileCheck %s
// CHECK: error: partition_dim 1 of something that is not a ranked tensor
func.func @f(%x: tensor<*xf32>) {
  "nkipy.layout"(%x) {partition_dim = 1 : i32} : (tensor<*xf32>) -> ()
  return
}
