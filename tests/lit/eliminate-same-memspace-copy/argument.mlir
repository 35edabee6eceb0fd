// RUN: nkx opt --eliminate-same-memspace-copy %s | FileCheck %s

// A reshape of an argument: its elements are contiguous, so it needs no copy.
// CHECK-LABEL: func.func @reshaped
// CHECK: %[[C:.*]] = memref.cast %arg0 : memref<8x4xf32, strided<[?, ?], offset: ?>, 4 : i32> to memref<8x4xf32, 4 : i32>
// CHECK-NOT: memref.copy
// CHECK: memref.collapse_shape %[[C]] {{\[\[}}0, 1]] : memref<8x4xf32, 4 : i32> into memref<32xf32, 4 : i32>
func.func @reshaped(%x: memref<8x4xf32, strided<[?, ?], offset: ?>, 4 : i32>, %i: index) -> f32 {
  %b = memref.alloc() : memref<8x4xf32, 1 : i32>
  memref.copy %x, %b : memref<8x4xf32, strided<[?, ?], offset: ?>, 4 : i32> to memref<8x4xf32, 1 : i32>
  %c = memref.collapse_shape %b [[0, 1]] : memref<8x4xf32, 1 : i32> into memref<32xf32, 1 : i32>
  %v = memref.load %c[%i] : memref<32xf32, 1 : i32>
  return %v : f32
}

// It is written before the reshape is read: the copy stays.
// CHECK-LABEL: func.func @written
// CHECK: memref.copy %arg0
func.func @written(%x: memref<8x4xf32, strided<[?, ?], offset: ?>, 4 : i32>, %y: memref<8x4xf32, 4 : i32>, %i: index) -> f32 {
  %b = memref.alloc() : memref<8x4xf32, 1 : i32>
  memref.copy %x, %b : memref<8x4xf32, strided<[?, ?], offset: ?>, 4 : i32> to memref<8x4xf32, 1 : i32>
  memref.copy %y, %x : memref<8x4xf32, 4 : i32> to memref<8x4xf32, strided<[?, ?], offset: ?>, 4 : i32>
  %c = memref.collapse_shape %b [[0, 1]] : memref<8x4xf32, 1 : i32> into memref<32xf32, 1 : i32>
  %v = memref.load %c[%i] : memref<32xf32, 1 : i32>
  return %v : f32
}
