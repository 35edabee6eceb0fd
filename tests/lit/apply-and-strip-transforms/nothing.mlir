// Without a script there is nothing to do.
// RUN: nkx opt --apply-and-strip-transforms %s | FileCheck %s
// CHECK: func.func @f(%[[A:.*]]: tensor<4x4xf32>)
// CHECK-NEXT: %[[E:.*]] = tensor.empty
// CHECK-NEXT: %[[R:.*]] = linalg.exp ins(%[[A]] : tensor<4x4xf32>) outs(%[[E]] : tensor<4x4xf32>)
// CHECK-NEXT: return %[[R]]
func.func @f(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %r = linalg.exp ins(%a : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
