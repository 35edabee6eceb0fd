// A while hands on all that it carries, also what canonicalization found to be needed in the condition only.
// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s
// CHECK: %[[R:.*]]:2 = scf.while (%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
// CHECK: scf.condition(%{{.*}}) %[[A]], %[[B]]
// CHECK: ^bb0(%[[X:.*]]: tensor<4x4xf32>, %[[Y:.*]]: tensor<4x4xf32>):
// CHECK:   linalg.add ins(%[[Y]], %[[Y]]
// CHECK:   scf.yield
// CHECK: return %[[R]]#1
func.func @k(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c = arith.constant 1.0e3 : f32
  %z = arith.constant 0 : index
  %0 = scf.while (%a = %x, %b = %y) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
    %v = tensor.extract %a[%z, %z] : tensor<4x4xf32>
    %t = arith.cmpf olt, %v, %c : f32
    scf.condition(%t) %b : tensor<4x4xf32>
  } do {
  ^bb0(%b: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %n = linalg.add ins(%b, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %n, %n : tensor<4x4xf32>, tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}
