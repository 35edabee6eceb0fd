// A while must hand on what it carries: a condition that hands on something that it computed is refused.
// RUN: not nkx opt --one-shot-bufferize %s 2>&1 | FileCheck %s
// CHECK: not supported on NISA: scf.while: its condition hands on other values than it was given
func.func @k(%x: tensor<f32>) -> tensor<f32> {
  %c = arith.constant 1.0e3 : f32
  %0 = scf.while (%a = %x) : (tensor<f32>) -> tensor<f32> {
    %v = tensor.extract %a[] : tensor<f32>
    %t = arith.cmpf olt, %v, %c : f32
    %e = tensor.empty() : tensor<f32>
    %n = linalg.add ins(%a, %a : tensor<f32>, tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
    scf.condition(%t) %n : tensor<f32>
  } do {
  ^bb0(%a: tensor<f32>):
    scf.yield %a : tensor<f32>
  }
  return %0 : tensor<f32>
}
