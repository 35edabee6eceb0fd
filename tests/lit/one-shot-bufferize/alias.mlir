// An aliased argument is written in place and returned; its old value, if that is an output too, is copied before.
// RUN: nkx opt --one-shot-bufferize --canonicalize %s | FileCheck %s
func.func @new(%x: tensor<4x4xf32> {nkipy.alias = 1 : i64}, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  %s = linalg.add ins(%x, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %x, %s : tensor<4x4xf32>, tensor<4x4xf32>
}
// CHECK-LABEL: @new(%arg0: {{.*}} {nkipy.alias = 1 : i64}
// CHECK:         %[[S:.*]] = memref.alloc
// CHECK:         linalg.add {{.*}} outs(%[[S]]
// CHECK:         %[[OLD:.*]] = memref.alloc
// CHECK-NEXT:    memref.copy %arg0, %[[OLD]]
// CHECK-NEXT:    memref.copy %[[S]], %arg0
// CHECK-NEXT:    return %[[OLD]], %arg0

// A value that is made in place needs no copy.
func.func @slice(%x: tensor<4x4xf32> {nkipy.alias = 0 : i64}, %y: tensor<2x4xf32>) -> tensor<4x4xf32> {
  %s = tensor.insert_slice %y into %x[1, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}
// CHECK-LABEL: @slice
// CHECK-NOT:     memref.alloc
// CHECK:         %[[V:.*]] = memref.subview %arg0[1, 0]
// CHECK-NEXT:    memref.copy %arg1, %[[V]]
// CHECK-NEXT:    return %arg0

// Unchanged: nothing to do.
func.func @same(%x: tensor<4x4xf32> {nkipy.alias = 0 : i64}) -> tensor<4x4xf32> {
  return %x : tensor<4x4xf32>
}
// CHECK-LABEL: @same
// CHECK-NEXT:    return %arg0

// Outputs that are arguments without an alias stay what they are.
func.func @argument(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  return %x, %x : tensor<4x4xf32>, tensor<4x4xf32>
}
// CHECK-LABEL: @argument
// CHECK-NEXT:    return %arg0, %arg0
