// RUN: nkx opt --canonicalize-reshape %s | FileCheck %s


memref.global "private" constant @shape : memref<2xi64, 1 : i32> = dense<[64, 16]>

// CHECK-LABEL: func.func @reshape
// CHECK: %[[C:.*]] = memref.collapse_shape %{{.*}} {{\[}}[0, 1, 2]] : memref<2x4x128xf32, 4 : i32> into memref<1024xf32, 4 : i32>
// CHECK: %[[E:.*]] = memref.expand_shape %[[C]] {{\[}}[0, 1]] output_shape [64, 16] : memref<1024xf32, 4 : i32> into memref<64x16xf32, 4 : i32>
// CHECK: return %[[E]]
func.func @reshape() -> memref<64x16xf32, 4 : i32> {
  %h = memref.alloc() : memref<2x4x128xf32, 4 : i32>
  %s = memref.get_global @shape : memref<2xi64, 1 : i32>
  %r = memref.reshape %h(%s) : (memref<2x4x128xf32, 4 : i32>, memref<2xi64, 1 : i32>) -> memref<64x16xf32, 4 : i32>
  return %r : memref<64x16xf32, 4 : i32>
}

// A split of the partitions gets a buffer of its own; of a free dimension, or by 1, it is a view.
// CHECK-LABEL: func.func @split
func.func @split(%a: memref<8x128xf32, 3 : i32>, %x: memref<2x4x128xf32, 3 : i32>, %y: memref<8x4x32xf32, 3 : i32>, %z: memref<1x8x128xf32, 3 : i32>) {
  // CHECK: %[[V:.*]] = memref.expand_shape %arg0 {{\[}}[0, 1], [2]] output_shape [2, 4, 128]
  // CHECK-NEXT: %[[B:.*]] = memref.alloc() {{.*}} : memref<2x4x128xf32, 3 : i32>
  // CHECK-NEXT: memref.copy %[[V]], %[[B]]
  // CHECK-NEXT: linalg.exp ins(%[[B]]
  %e = memref.expand_shape %a [[0, 1], [2]] output_shape [2, 4, 128] : memref<8x128xf32, 3 : i32> into memref<2x4x128xf32, 3 : i32>
  linalg.exp ins(%e : memref<2x4x128xf32, 3 : i32>) outs(%x : memref<2x4x128xf32, 3 : i32>)
  // CHECK: %[[F:.*]] = memref.expand_shape %arg0 {{\[}}[0], [1, 2]]
  // CHECK-NEXT: linalg.exp ins(%[[F]]
  %f = memref.expand_shape %a [[0], [1, 2]] output_shape [8, 4, 32] : memref<8x128xf32, 3 : i32> into memref<8x4x32xf32, 3 : i32>
  linalg.exp ins(%f : memref<8x4x32xf32, 3 : i32>) outs(%y : memref<8x4x32xf32, 3 : i32>)
  // CHECK: %[[G:.*]] = memref.expand_shape %arg0 {{\[}}[0, 1], [2]] output_shape [1, 8, 128]
  // CHECK-NEXT: linalg.exp ins(%[[G]]
  %g = memref.expand_shape %a [[0, 1], [2]] output_shape [1, 8, 128] : memref<8x128xf32, 3 : i32> into memref<1x8x128xf32, 3 : i32>
  linalg.exp ins(%g : memref<1x8x128xf32, 3 : i32>) outs(%z : memref<1x8x128xf32, 3 : i32>)
  return
}

// The view is made before its buffer is written: it stays a view.
// CHECK-LABEL: func.func @early
// CHECK-NOT: memref.alloc
func.func @early(%a: memref<8x128xf32, 3 : i32>, %h: memref<8x128xf32, 4 : i32>, %x: memref<2x4x128xf32, 3 : i32>) {
  %e = memref.expand_shape %a [[0, 1], [2]] output_shape [2, 4, 128] : memref<8x128xf32, 3 : i32> into memref<2x4x128xf32, 3 : i32>
  memref.copy %h, %a : memref<8x128xf32, 4 : i32> to memref<8x128xf32, 3 : i32>
  linalg.exp ins(%e : memref<2x4x128xf32, 3 : i32>) outs(%x : memref<2x4x128xf32, 3 : i32>)
  return
}

// Results: an argument and a view of one are copied, what is returned twice has two buffers, an alias stays.
// CHECK-LABEL: func.func @results
// CHECK-SAME: -> (memref<4x4xf32, 4 : i32>, memref<4x2x2xf32, 4 : i32>, memref<8xf32, 4 : i32>, memref<8xf32, 4 : i32>, memref<2x2xf32, strided<[?, ?], offset: ?>, 4 : i32>)
func.func @results(%a: memref<4x4xf32, strided<[?, ?], offset: ?>, 4 : i32>, %c: memref<2x2xf32, strided<[?, ?], offset: ?>, 4 : i32> {nkipy.alias = 4 : i64}) -> (memref<4x4xf32, strided<[?, ?], offset: ?>, 4 : i32>, memref<4x2x2xf32, strided<[?, ?, ?], offset: ?>, 4 : i32>, memref<8xf32, 4 : i32>, memref<8xf32, 4 : i32>, memref<2x2xf32, strided<[?, ?], offset: ?>, 4 : i32>) {
  // CHECK: %[[R:.*]] = memref.alloc() : memref<8xf32, 4 : i32>
  // CHECK: %[[E:.*]] = memref.expand_shape
  // CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<4x4xf32, 4 : i32>
  // CHECK-NEXT: memref.copy %arg0, %[[A]]
  // CHECK: %[[B:.*]] = memref.alloc() {{.*}} : memref<4x2x2xf32, 4 : i32>
  // CHECK-NEXT: memref.copy %[[E]], %[[B]]
  // CHECK: %[[S:.*]] = memref.alloc() {{.*}} : memref<8xf32, 4 : i32>
  // CHECK-NEXT: memref.copy %[[R]], %[[S]]
  // CHECK: return %[[A]], %[[B]], %[[R]], %[[S]], %arg1
  %r = memref.alloc() : memref<8xf32, 4 : i32>
  %e = memref.expand_shape %a [[0], [1, 2]] output_shape [4, 2, 2] : memref<4x4xf32, strided<[?, ?], offset: ?>, 4 : i32> into memref<4x2x2xf32, strided<[?, ?, ?], offset: ?>, 4 : i32>
  return %a, %e, %r, %r, %c : memref<4x4xf32, strided<[?, ?], offset: ?>, 4 : i32>, memref<4x2x2xf32, strided<[?, ?, ?], offset: ?>, 4 : i32>, memref<8xf32, 4 : i32>, memref<8xf32, 4 : i32>, memref<2x2xf32, strided<[?, ?], offset: ?>, 4 : i32>
}
