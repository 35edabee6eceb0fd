// The result of a branch is in a buffer that is known before the branch, and each region writes it; inner branches, too.
// RUN: nkx opt --one-shot-bufferize --canonicalize %s | FileCheck %s
func.func @values(%c: i1, %d: i1, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, index) {
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %r:2 = scf.if %c -> (tensor<4xf32>, index) {
    %e = tensor.empty() : tensor<4xf32>
    %s = linalg.add ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %s, %one : tensor<4xf32>, index
  } else {
    %i = scf.if %d -> (tensor<4xf32>) {
      scf.yield %x : tensor<4xf32>
    } else {
      scf.yield %y : tensor<4xf32>
    }
    scf.yield %i, %two : tensor<4xf32>, index
  }
  return %r#0, %r#1 : tensor<4xf32>, index
}
// CHECK-LABEL: @values(%arg0: i1, %arg1: i1
// CHECK:         %[[R:.*]] = memref.alloc() {{.*}}: memref<4xf32>
// CHECK-NEXT:    %[[CAST:.*]] = memref.cast %[[R]]
// CHECK:         %[[N:.*]] = arith.select %arg0
// CHECK:         scf.if %arg0 {
// CHECK:           linalg.add {{.*}} outs(%[[S:[^ ]*]]
// CHECK:           memref.copy %[[S]], %[[R]]
// CHECK:         } else {
// CHECK:           %[[I:.*]] = memref.alloc() {{.*}}: memref<4xf32>
// CHECK-NEXT:      scf.if %arg1 {
// CHECK-NEXT:        memref.copy %arg2, %[[I]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        memref.copy %arg3, %[[I]]
// CHECK:           memref.copy %[[I]], %[[R]]
// CHECK:         return %[[CAST]], %[[N]]

// Both regions leave the value in its buffer.
func.func @in_place(%c: i1, %x: tensor<4x4xf32> {nkipy.alias = 0 : i64}, %y: tensor<2x4xf32>) -> tensor<4x4xf32> {
  %r = scf.if %c -> (tensor<4x4xf32>) {
    %s = tensor.insert_slice %y into %x[1, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<4x4xf32>
    scf.yield %s : tensor<4x4xf32>
  } else {
    scf.yield %x : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}
// CHECK-LABEL: @in_place
// CHECK-NOT:     memref.alloc
// CHECK:         scf.if %arg0 {
// CHECK:           memref.copy %arg2,
// CHECK-NOT:     memref.copy
// CHECK:         return %arg1
