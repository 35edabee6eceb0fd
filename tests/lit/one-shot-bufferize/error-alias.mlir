// An alias of an output of another type.
// RUN: not nkx opt --one-shot-bufferize %s 2>&1 | FileCheck %s
// CHECK: error: argument 0 is to be written in place, but output 0 is not of its type
func.func @f(%x: tensor<4x4xf32> {nkipy.alias = 0 : i64}, %y: tensor<2x4xf32>) -> tensor<2x4xf32> {
  return %y : tensor<2x4xf32>
}
