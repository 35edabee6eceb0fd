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

// A scatter writes some windows only: behind its branches the value still is the argument's buffer.
func.func @scatter(%x: tensor<16x4xf32> {nkipy.alias = 0 : i64}, %y: tensor<8x4xf32>, %at: tensor<8xi32>) -> tensor<16x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c15 = arith.constant 15 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %x) -> (tensor<16x4xf32>) {
    %w = tensor.extract %at[%i] : tensor<8xi32>
    %k = arith.index_cast %w : i32 to index
    %fits = arith.cmpi ule, %k, %c15 : index
    %n = scf.if %fits -> (tensor<16x4xf32>) {
      %row = tensor.extract_slice %y[%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<1x4xf32>
      %m = tensor.insert_slice %row into %a[%k, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<16x4xf32>
      scf.yield %m : tensor<16x4xf32>
    } else {
      scf.yield %a : tensor<16x4xf32>
    }
    scf.yield %n : tensor<16x4xf32>
  }
  return %r : tensor<16x4xf32>
}
// CHECK-LABEL: @scatter
// CHECK-NOT:     memref.alloc
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:             %[[V:.*]] = memref.subview %arg0[
// CHECK:             memref.copy {{.*}}, %[[V]]
// CHECK-NOT:     memref.copy
// CHECK:         return %arg0

// Of an argument whose old value is wanted, too, the new value is copied there at the end.
func.func @scatter_and_old(%x: tensor<16x4xf32> {nkipy.alias = 0 : i64}, %y: tensor<1x4xf32>, %fits: i1) -> (tensor<16x4xf32>, tensor<16x4xf32>) {
  %n = scf.if %fits -> (tensor<16x4xf32>) {
    %m = tensor.insert_slice %y into %x[3, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<16x4xf32>
    scf.yield %m : tensor<16x4xf32>
  } else {
    scf.yield %x : tensor<16x4xf32>
  }
  %e = tensor.empty() : tensor<16x4xf32>
  %old = linalg.add ins(%x, %n : tensor<16x4xf32>, tensor<16x4xf32>) outs(%e : tensor<16x4xf32>) -> tensor<16x4xf32>
  return %n, %old : tensor<16x4xf32>, tensor<16x4xf32>
}
// CHECK-LABEL: @scatter_and_old
// CHECK:         %[[N:.*]] = memref.alloc
// CHECK-NEXT:    scf.if
// CHECK:         linalg.add ins(%arg0, %[[N]]
// CHECK:         memref.copy %[[N]], %arg0
// CHECK:         return %arg0
