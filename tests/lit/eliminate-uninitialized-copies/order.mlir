// What counts is whether a write to the same part can come before the copy.
// RUN: nkx opt --eliminate-uninitialized-copies %s | FileCheck %s

// CHECK-LABEL: @never
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @never() {
  %s = memref.alloc() : memref<8x8xf32>
  %v = memref.subview %s[0, 0] [4, 8] [1, 1] : memref<8x8xf32> to memref<4x8xf32, strided<[8, 1]>>
  %c = memref.cast %v : memref<4x8xf32, strided<[8, 1]>> to memref<4x8xf32, strided<[8, 1], offset: ?>>
  %d = memref.alloc() : memref<4x8xf32, 2 : i32>
  memref.copy %c, %d : memref<4x8xf32, strided<[8, 1], offset: ?>> to memref<4x8xf32, 2 : i32>
  return
}

// CHECK-LABEL: @stored
// CHECK:         memref.copy
func.func @stored(%x: f32) {
  %c0 = arith.constant 0 : index
  %s = memref.alloc() : memref<8x8xf32>
  memref.store %x, %s[%c0, %c0] : memref<8x8xf32>
  %d = memref.alloc() : memref<8x8xf32>
  memref.copy %s, %d : memref<8x8xf32> to memref<8x8xf32>
  return
}

// CHECK-LABEL: @init
// CHECK:         linalg.fill
// CHECK:         memref.copy
func.func @init(%x: f32) {
  %s = memref.alloc() : memref<8x8xf32>
  %f = memref.collapse_shape %s [[0, 1]] : memref<8x8xf32> into memref<64xf32>
  linalg.fill ins(%x : f32) outs(%f : memref<64xf32>)
  %d = memref.alloc() : memref<8x8xf32>
  memref.copy %s, %d : memref<8x8xf32> to memref<8x8xf32>
  return
}

// CHECK-LABEL: @later
// CHECK-NOT:     memref.copy
// CHECK:         linalg.fill
func.func @later(%x: f32) {
  %s = memref.alloc() : memref<8x8xf32>
  %d = memref.alloc() : memref<8x8xf32>
  memref.copy %s, %d : memref<8x8xf32> to memref<8x8xf32>
  linalg.fill ins(%x : f32) outs(%s : memref<8x8xf32>)
  return
}

// Written further down in the loop: the next iteration's copy brings it.
// CHECK-LABEL: @carried
// CHECK:         memref.copy
func.func @carried(%x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %s = memref.alloc() : memref<8x8xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    %d = memref.alloc() : memref<8x8xf32>
    memref.copy %s, %d : memref<8x8xf32> to memref<8x8xf32>
    linalg.fill ins(%x : f32) outs(%s : memref<8x8xf32>)
  }
  return
}

// Allocated in the loop: every iteration has its own.
// CHECK-LABEL: @inside
// CHECK-NOT:     memref.copy
// CHECK:         linalg.fill
func.func @inside(%x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %s = memref.alloc() : memref<8x8xf32>
    %d = memref.alloc() : memref<8x8xf32>
    memref.copy %s, %d : memref<8x8xf32> to memref<8x8xf32>
    linalg.fill ins(%x : f32) outs(%s : memref<8x8xf32>)
  }
  return
}

// Every iteration has its own slice.
// CHECK-LABEL: @apart
// CHECK-NOT:     memref.copy
// CHECK:         linalg.fill
func.func @apart(%x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %s = memref.alloc() : memref<8x8xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    %o = arith.muli %i, %c2 : index
    %v = memref.subview %s[%o, 0] [2, 8] [1, 1] : memref<8x8xf32> to memref<2x8xf32, strided<[8, 1], offset: ?>>
    %d = memref.alloc() : memref<2x8xf32>
    memref.copy %v, %d : memref<2x8xf32, strided<[8, 1], offset: ?>> to memref<2x8xf32>
    %w = memref.subview %s[%o, 0] [2, 8] [1, 1] : memref<8x8xf32> to memref<2x8xf32, strided<[8, 1], offset: ?>>
    linalg.fill ins(%x : f32) outs(%w : memref<2x8xf32, strided<[8, 1], offset: ?>>)
  }
  return
}

// Slices of three rows that move by two overlap.
// CHECK-LABEL: @overlapping
// CHECK:         memref.copy
func.func @overlapping(%x: f32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %s = memref.alloc() : memref<8x8xf32>
  scf.for %i = %c0 to %c6 step %c2 {
    %v = memref.subview %s[%i, 0] [3, 8] [1, 1] : memref<8x8xf32> to memref<3x8xf32, strided<[8, 1], offset: ?>>
    %d = memref.alloc() : memref<3x8xf32>
    memref.copy %v, %d : memref<3x8xf32, strided<[8, 1], offset: ?>> to memref<3x8xf32>
    linalg.fill ins(%x : f32) outs(%v : memref<3x8xf32, strided<[8, 1], offset: ?>>)
  }
  return
}

// The slices move with the inner loop only; the outer one comes back to them.
// CHECK-LABEL: @again
// CHECK:         memref.copy
func.func @again(%x: f32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %s = memref.alloc() : memref<8x8xf32>
  scf.for %j = %c0 to %c8 step %c2 {
    scf.for %i = %c0 to %c8 step %c2 {
      %v = memref.subview %s[%i, 0] [2, 8] [1, 1] : memref<8x8xf32> to memref<2x8xf32, strided<[8, 1], offset: ?>>
      %d = memref.alloc() : memref<2x8xf32>
      memref.copy %v, %d : memref<2x8xf32, strided<[8, 1], offset: ?>> to memref<2x8xf32>
      linalg.fill ins(%x : f32) outs(%v : memref<2x8xf32, strided<[8, 1], offset: ?>>)
    }
  }
  return
}

// Another part was written before.
// CHECK-LABEL: @other_part
// CHECK:         linalg.fill
// CHECK-NOT:     memref.copy
// CHECK:         return
func.func @other_part(%x: f32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c6 = arith.constant 6 : index
  %s = memref.alloc() : memref<8x8xf32>
  scf.for %i = %c0 to %c6 step %c2 {
    %v = memref.subview %s[%i, 0] [2, 8] [1, 1] : memref<8x8xf32> to memref<2x8xf32, strided<[8, 1], offset: ?>>
    linalg.fill ins(%x : f32) outs(%v : memref<2x8xf32, strided<[8, 1], offset: ?>>)
  }
  %w = memref.subview %s[6, 0] [2, 8] [1, 1] : memref<8x8xf32> to memref<2x8xf32, strided<[8, 1], offset: 48>>
  %d = memref.alloc() : memref<2x8xf32>
  memref.copy %w, %d : memref<2x8xf32, strided<[8, 1], offset: 48>> to memref<2x8xf32>
  return
}

// In one branch a write, in the other the copy: taken as before.
// CHECK-LABEL: @branches
// CHECK:         memref.copy
func.func @branches(%x: f32, %b: i1) {
  %s = memref.alloc() : memref<8x8xf32>
  scf.if %b {
    linalg.fill ins(%x : f32) outs(%s : memref<8x8xf32>)
  } else {
    %d = memref.alloc() : memref<8x8xf32>
    memref.copy %s, %d : memref<8x8xf32> to memref<8x8xf32>
  }
  return
}

// The target has a value; undefined counts as zero, so the copy is not nothing.
// CHECK-LABEL: @target
// CHECK:         memref.copy
func.func @target(%x: f32) {
  %s = memref.alloc() : memref<8x8xf32>
  %d = memref.alloc() : memref<8x8xf32>
  linalg.fill ins(%x : f32) outs(%d : memref<8x8xf32>)
  memref.copy %s, %d : memref<8x8xf32> to memref<8x8xf32>
  return
}

// Arguments have values.
// CHECK-LABEL: @argument
// CHECK:         memref.copy
func.func @argument(%s: memref<8x8xf32>) {
  %d = memref.alloc() : memref<8x8xf32>
  memref.copy %s, %d : memref<8x8xf32> to memref<8x8xf32>
  return
}
