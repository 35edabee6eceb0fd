// RUN: not nkx opt --knob-driven-fusion %s 2>&1 | FileCheck %s

// What is between the loops reads the whole first value.
// CHECK: :13:8: error: fuse: the loops of these values cannot be one: this operation is in between: it reads the whole of one value
func.func @f(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %a = scf.for %i = %c0 to %c8 step %c4 iter_args(%t = %x) -> (tensor<8x8xf32>) {
    %v = linalg.add ins(%t, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%t : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %v : tensor<8x8xf32>
  }
  %e = linalg.exp ins(%a : tensor<8x8xf32>) outs(%x : tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = scf.for %i = %c0 to %c8 step %c4 iter_args(%t = %x) -> (tensor<8x8xf32>) {
    %v = linalg.mul ins(%t, %e : tensor<8x8xf32>, tensor<8x8xf32>) outs(%t : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %v : tensor<8x8xf32>
  }
  "nkipy.fuse_op"(%a, %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> ()
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}
