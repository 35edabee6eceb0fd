// RUN: nkx opt --knob-driven-fusion %s | FileCheck %s
// The values to be fused may be of different shapes, as long as their loops agree.

// CHECK-LABEL: func.func @rows
// CHECK:         %[[R:.*]]:2 = scf.for
// CHECK-NOT:     scf.for
// CHECK-NOT:     fuse_op
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @rows(%x: tensor<8x8xf32>, %y: tensor<8x4xf32>) -> (tensor<8x8xf32>, tensor<8x4xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x8xf32>
  %f = tensor.empty() : tensor<8x4xf32>
  %a = scf.for %i = %c0 to %c8 step %c2 iter_args(%o = %e) -> (tensor<8x8xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [2, 8] [1, 1] : tensor<8x8xf32> to tensor<2x8xf32>
    %t = tensor.extract_slice %o[%i, 0] [2, 8] [1, 1] : tensor<8x8xf32> to tensor<2x8xf32>
    %r = linalg.exp ins(%s : tensor<2x8xf32>) outs(%t : tensor<2x8xf32>) -> tensor<2x8xf32>
    %p = tensor.insert_slice %r into %o[%i, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<8x8xf32>
    scf.yield %p : tensor<8x8xf32>
  }
  %b = scf.for %i = %c0 to %c8 step %c2 iter_args(%o = %f) -> (tensor<8x4xf32>) {
    %s = tensor.extract_slice %y[%i, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    %t = tensor.extract_slice %o[%i, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    %r = linalg.abs ins(%s : tensor<2x4xf32>) outs(%t : tensor<2x4xf32>) -> tensor<2x4xf32>
    %p = tensor.insert_slice %r into %o[%i, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
    scf.yield %p : tensor<8x4xf32>
  }
  "nkipy.fuse_op"(%a, %b) : (tensor<8x8xf32>, tensor<8x4xf32>) -> ()
  return %a, %b : tensor<8x8xf32>, tensor<8x4xf32>
}
