// A fuse group that nobody has fused.
// RUN: not nkx opt --one-shot-bufferize %s 2>&1 | FileCheck %s
// CHECK: error: the loops of a fuse group are not fused yet: run knob-driven-fusion
func.func @f(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  "nkipy.fuse_op"(%x, %y) : (tensor<4x4xf32>, tensor<4x4xf32>) -> ()
  return %y : tensor<4x4xf32>
}
