// RUN: not nkx opt --knob-driven-fusion %s 2>&1 | FileCheck %s

// The sum over the rows is complete only after the last iteration.
// CHECK: :18:8: error: fuse: the loops of these values cannot be one: the value that it is computed from is complete only after the last iteration of its outermost loop, which goes over a dimension that is reduced
func.func @f(%x: tensor<8x8xf32>, %z: tensor<1x8xf32>, %e: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %a = scf.for %i = %c0 to %c8 step %c2 iter_args(%o = %z) -> (tensor<1x8xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [1, 8] [1, 1] : tensor<8x8xf32> to tensor<1x8xf32>
    %t = tensor.extract_slice %o[0, 0] [1, 8] [1, 1] : tensor<1x8xf32> to tensor<1x8xf32>
    %r = linalg.add ins(%s, %t : tensor<1x8xf32>, tensor<1x8xf32>) outs(%t : tensor<1x8xf32>) -> tensor<1x8xf32>
    %p = tensor.insert_slice %r into %o[0, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<1x8xf32>
    scf.yield %p : tensor<1x8xf32>
  }

  // the second loop
  %b = scf.for %i = %c0 to %c8 step %c2 iter_args(%o = %e) -> (tensor<8x8xf32>) {
    %s = tensor.extract_slice %a[0, 0] [1, 8] [1, 1] : tensor<1x8xf32> to tensor<1x8xf32>
    %p = tensor.insert_slice %s into %o[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<8x8xf32>
    scf.yield %p : tensor<8x8xf32>
  }
  "nkipy.fuse_op"(%a, %b) : (tensor<1x8xf32>, tensor<8x8xf32>) -> ()
  return %b : tensor<8x8xf32>
}
