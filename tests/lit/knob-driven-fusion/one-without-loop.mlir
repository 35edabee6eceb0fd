// RUN: not nkx opt --knob-driven-fusion %s 2>&1 | FileCheck %s

// CHECK: :9:8: error: fuse: this value is not produced by an scf.for
func.func @f(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index

  %a = linalg.add ins(%x, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%x : tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = scf.for %i = %c0 to %c8 step %c4 iter_args(%t = %y) -> (tensor<8x8xf32>) {
    %v = linalg.mul ins(%t, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%t : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %v : tensor<8x8xf32>
  }
  "nkipy.fuse_op"(%a, %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> ()
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}
