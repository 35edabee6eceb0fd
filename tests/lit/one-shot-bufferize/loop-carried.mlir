// RUN: nkx opt --one-shot-bufferize --canonicalize %s | FileCheck %s

// A row that is read, changed and stored is read before it is overwritten: in place.
func.func @row(%a: tensor<5x4xf32>) -> tensor<5x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a) -> (tensor<5x4xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<5x4xf32> to tensor<1x4xf32>
    %e = tensor.empty() : tensor<1x4xf32>
    %y = linalg.exp ins(%s : tensor<1x4xf32>) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
    %n = tensor.insert_slice %y into %x[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<5x4xf32>
    scf.yield %n : tensor<5x4xf32>
  }
  return %r : tensor<5x4xf32>
}
// CHECK-LABEL: @row
// CHECK-NOT:     memref.alloc() {{.*}} : memref<5x4xf32
// CHECK:         scf.for
// CHECK-NOT:     memref.alloc() {{.*}} : memref<5x4xf32
// CHECK:         return %arg0

// An argument that is written in place by a loop is what the function returns.
func.func @alias(%a: tensor<5x4xf32> {nkipy.alias = 0 : i64}) -> tensor<5x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %z = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a) -> (tensor<5x4xf32>) {
    %e = tensor.empty() : tensor<1x4xf32>
    %y = linalg.fill ins(%z : f32) outs(%e : tensor<1x4xf32>) -> tensor<1x4xf32>
    %n = tensor.insert_slice %y into %x[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<5x4xf32>
    scf.yield %n : tensor<5x4xf32>
  }
  return %r : tensor<5x4xf32>
}
// CHECK-LABEL: @alias
// CHECK-NOT:     memref.alloc() {{.*}} : memref<5x4xf32
// CHECK:         return %arg0

// An initial value that is needed after the loop is copied before it.
func.func @twice(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<4xf32>
  %z = linalg.exp ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %z) -> (tensor<4xf32>) {
    %y = linalg.add ins(%x, %b : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %r, %z : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: @twice
// CHECK:         linalg.exp {{.*}} outs(%[[Z:[a-z0-9_]+]]
// CHECK:         memref.copy %[[Z]], %[[COPY:[a-z0-9_]+]]
// CHECK:         scf.for
// CHECK:         return %[[COPY]], %[[Z]]
