// A part of a buffer that lies in other memory gets a buffer of its own.
// RUN: nkx opt --annotate-memory-space %s | FileCheck %s

// Written for the first time, and put into its place by a copy: that copy is enough.
// CHECK-LABEL: @product
// CHECK:         %[[ALL:.*]] = memref.alloc() : memref<2x8x8xf32, 4 : i32>
// CHECK:         scf.for %[[I:.*]] =
// CHECK-NEXT:      memref.subview %[[ALL]][%[[I]], 0, 0]
// CHECK-NEXT:      %[[OWN:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32, 3 : i32>
// CHECK-NEXT:      linalg.fill ins(%{{.*}}) outs(%[[OWN]] :
// CHECK-NEXT:      "nkipy.layout"(%[[OWN]]) {mem_space = 3 : i32}
// CHECK-NEXT:      %[[W:.*]] = memref.subview %[[ALL]][%[[I]], 0, 0]
// CHECK-NEXT:      memref.copy %[[OWN]], %[[W]] : memref<8x8xf32, 3 : i32> to memref<8x8xf32, strided<[8, 1], offset: ?>, 4 : i32>
// CHECK-NEXT:    }
func.func @product(%x: f32) -> memref<2x8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %all = memref.alloc() : memref<2x8x8xf32>
  scf.for %i = %c0 to %c2 step %c1 {
    %v = memref.subview %all[%i, 0, 0] [1, 8, 8] [1, 1, 1] : memref<2x8x8xf32> to memref<8x8xf32, strided<[8, 1], offset: ?>>
    linalg.fill ins(%x : f32) outs(%v : memref<8x8xf32, strided<[8, 1], offset: ?>>)
    "nkipy.layout"(%v) {mem_space = 3 : i32} : (memref<8x8xf32, strided<[8, 1], offset: ?>>) -> ()
    %w = memref.subview %all[%i, 0, 0] [1, 8, 8] [1, 1, 1] : memref<2x8x8xf32> to memref<8x8xf32, strided<[8, 1], offset: ?>>
    memref.copy %v, %w : memref<8x8xf32, strided<[8, 1], offset: ?>> to memref<8x8xf32, strided<[8, 1], offset: ?>>
  }
  "nkipy.layout"(%all) {mem_space = 4 : i32} : (memref<2x8x8xf32>) -> ()
  return %all : memref<2x8x8xf32>
}

// Read and written in place: filled before, written back behind the last use, before the next reader.
// CHECK-LABEL: @in_place
// CHECK:         %[[V:.*]] = memref.subview %arg0[4, 0]
// CHECK-NEXT:    %[[OWN:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4x8xf32, 3 : i32>
// CHECK-NEXT:    memref.copy %[[V]], %[[OWN]]
// CHECK-NEXT:    "nkipy.layout"(%[[OWN]])
// CHECK-NEXT:    %[[T:.*]] = memref.subview %[[OWN]][2, 0] [2, 8] [1, 1] : memref<4x8xf32, 3 : i32> to memref<2x8xf32, strided<[8, 1], offset: 16>, 3 : i32>
// CHECK-NEXT:    linalg.exp ins(%[[T]] : {{.*}}) outs(%[[T]] :
// CHECK-NEXT:    memref.copy %[[OWN]], %[[V]]
// CHECK-NEXT:    memref.copy %arg0, %arg1
func.func @in_place(%a: memref<8x8xf32>, %b: memref<8x8xf32>) {
  %v = memref.subview %a[4, 0] [4, 8] [1, 1] : memref<8x8xf32> to memref<4x8xf32, strided<[8, 1], offset: 32>>
  "nkipy.layout"(%v) {mem_space = 3 : i32} : (memref<4x8xf32, strided<[8, 1], offset: 32>>) -> ()
  %t = memref.subview %v[2, 0] [2, 8] [1, 1] : memref<4x8xf32, strided<[8, 1], offset: 32>> to memref<2x8xf32, strided<[8, 1], offset: 48>>
  linalg.exp ins(%t : memref<2x8xf32, strided<[8, 1], offset: 48>>) outs(%t : memref<2x8xf32, strided<[8, 1], offset: 48>>)
  memref.copy %a, %b : memref<8x8xf32> to memref<8x8xf32>
  return
}

// Only read: filled, not written back.
// CHECK-LABEL: @read
// CHECK:         %[[V:.*]] = memref.subview %arg0[4, 0]
// CHECK-NEXT:    %[[OWN:.*]] = memref.alloc() {alignment = 64 : i64} : memref<4x8xf32, 3 : i32>
// CHECK-NEXT:    memref.copy %[[V]], %[[OWN]]
// CHECK-NOT:     memref.copy
// CHECK:         linalg.exp ins(%[[OWN]] :
// CHECK-NEXT:    return
func.func @read(%a: memref<8x8xf32>, %b: memref<4x8xf32>) {
  %v = memref.subview %a[4, 0] [4, 8] [1, 1] : memref<8x8xf32> to memref<4x8xf32, strided<[8, 1], offset: 32>>
  "nkipy.layout"(%v) {mem_space = 3 : i32} : (memref<4x8xf32, strided<[8, 1], offset: 32>>) -> ()
  linalg.exp ins(%v : memref<4x8xf32, strided<[8, 1], offset: 32>>) outs(%b : memref<4x8xf32>)
  return
}

// Hbm and SharedHbm are one memory: the layout takes the name of what it is a part of.
// CHECK-LABEL: @dram
// CHECK-NOT:     memref.alloc
// CHECK:         "nkipy.layout"(%{{.*}}) {mem_space = 4 : i32}
func.func @dram(%a: memref<8x8xf32>) {
  %v = memref.subview %a[4, 0] [4, 8] [1, 1] : memref<8x8xf32> to memref<4x8xf32, strided<[8, 1], offset: 32>>
  "nkipy.layout"(%v) {mem_space = 1 : i32} : (memref<4x8xf32, strided<[8, 1], offset: 32>>) -> ()
  return
}

// Two values in one buffer: on-chip memory wins.
// CHECK-LABEL: @shared
// CHECK:         %[[S:.*]] = memref.alloc() : memref<8x8xf32, 3 : i32>
// CHECK:         "nkipy.layout"(%[[S]]) {mem_space = 3 : i32, tile_size
// CHECK-NEXT:    "nkipy.layout"(%[[S]]) {mem_space = 3 : i32}
func.func @shared(%x: f32) {
  %s = memref.alloc() : memref<8x8xf32>
  "nkipy.layout"(%s) {mem_space = 1 : i32, tile_size = array<i64: 8, 8>} : (memref<8x8xf32>) -> ()
  "nkipy.layout"(%s) {mem_space = 3 : i32} : (memref<8x8xf32>) -> ()
  return
}
