// A script that does not fit the payload fails with the interpreter's reason.
// RUN: not nkx opt --apply-and-strip-transforms %s 2>&1 | FileCheck %s
// CHECK: error: only ops implementing TilingInterface are supported
// CHECK: error: transform interpretation failed
module attributes {transform.with_named_sequence} {
  func.func @f(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
    return %a : tensor<4x4xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["func.return"]} in %root : (!transform.any_op) -> !transform.any_op
    %1, %2 = transform.structured.tile_using_for %0 tile_sizes [4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
