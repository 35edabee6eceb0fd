// The script and the attribute that announces it go, also a script that does nothing, and one that is not the entry point.
// RUN: nkx opt --apply-and-strip-transforms %s | FileCheck %s
// CHECK-NOT: transform
// CHECK:     module {
// CHECK-NOT: transform
module attributes {transform.with_named_sequence} {
  func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
    return %a : tensor<4xf32>
  }
  transform.named_sequence @other(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["linalg.add"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    transform.yield
  }
}
