// matmul + add: arguments 4, the transposed left operand, the right one and the product 3, the accumulator 2, the sum 4.
// RUN: nkx opt --knob-driven-tiling --apply-and-strip-transforms --canonicalize-loop-step --one-shot-bufferize --canonicalize --eliminate-uninitialized-copies --canonicalize --annotate-memory-space %s | FileCheck %s
func.func @f(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>, %c: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %0 = tensor.empty() : tensor<256x256xf32>
  %1 = linalg.matmul {nkipy.op_id = 0 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%1) {mem_space = 3 : i32, tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%1) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<256x256xf32>) -> ()
  %2 = tensor.empty() : tensor<256x256xf32>
  %3 = linalg.add {nkipy.op_id = 1 : i64} ins(%1, %c : tensor<256x256xf32>, tensor<256x256xf32>) outs(%2 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%3) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%3) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %3 : tensor<256x256xf32>
}
// CHECK-NOT: nkipy.tile_op
// CHECK:     func.func @f(%arg0: memref<256x256xf32, strided<[?, ?], offset: ?>, 4 : i32>, %arg1: memref<256x256xf32, strided<[?, ?], offset: ?>, 4 : i32>, %arg2: memref<256x256xf32, strided<[?, ?], offset: ?>, 4 : i32>) -> memref<256x256xf32, 4 : i32>
// CHECK:       %[[C:.*]] = memref.alloc() {alignment = 64 : i64} : memref<256x256xf32, 3 : i32>
// CHECK:       %[[A:.*]] = memref.alloc() {alignment = 64 : i64} : memref<256x256xf32, 3 : i32>
// CHECK-NEXT:  linalg.transpose {{.*}} outs(%[[A]] :
// CHECK-NEXT:  %[[B:.*]] = memref.alloc() {alignment = 64 : i64} : memref<256x256xf32, 3 : i32>
// CHECK-NEXT:  memref.copy %arg1, %[[B]]
// CHECK:       memref.subview %[[C]]{{.*}} : memref<256x256xf32, 3 : i32> to memref<128x256xf32, strided<[256, 1], offset: ?>, 3 : i32>
// CHECK:       memref.alloc() {alignment = 64 : i64} : memref<128x128xf32, 2 : i32>
// CHECK:       "nkipy.layout"(%[[C]]) {mem_space = 3 : i32, tile_size = array<i64: 128, 128>} : (memref<256x256xf32, 3 : i32>) -> ()
// CHECK-NOT:   nkipy.tile_op
// CHECK:       %[[R:.*]] = memref.alloc() {alignment = 64 : i64} : memref<256x256xf32, 4 : i32>
// CHECK:       "nkipy.layout"(%[[R]]) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>} : (memref<256x256xf32, 4 : i32>) -> ()
// CHECK-NOT:   nkipy.tile_op
// CHECK:       return %[[R]] : memref<256x256xf32, 4 : i32>
