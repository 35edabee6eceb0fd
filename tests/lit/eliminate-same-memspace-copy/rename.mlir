// RUN: nkx opt --eliminate-same-memspace-copy %s | FileCheck %s
// RUN: nkx opt --remarks --eliminate-same-memspace-copy %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: remark: memref.copy: removed a copy within SBUF: the new buffer is the old one, and nothing is copied back
// REMARK: remark: memref.copy: removed a copy within SBUF: the new buffer is the old one [

// The accumulator of a reduction starts as a copy of a slice and goes back there: it is the slice.
// CHECK-LABEL: func.func @accumulator
// CHECK: %[[S:.*]] = memref.subview %arg0[%arg1, 0]
// CHECK-NEXT: linalg.exp ins(%[[S]] : {{.*}}) outs(%[[S]] : memref<128x1xf32, strided<[1, 1], offset: ?>, 3 : i32>)
// CHECK-NEXT: return
func.func @accumulator(%a: memref<256x1xf32, 3 : i32>, %i: index) {
  %s = memref.subview %a[%i, 0] [128, 1] [1, 1] : memref<256x1xf32, 3 : i32> to memref<128x1xf32, strided<[1, 1], offset: ?>, 3 : i32>
  %b = memref.alloc() : memref<128x1xf32, 3 : i32>
  memref.copy %s, %b : memref<128x1xf32, strided<[1, 1], offset: ?>, 3 : i32> to memref<128x1xf32, 3 : i32>
  linalg.exp ins(%b : memref<128x1xf32, 3 : i32>) outs(%b : memref<128x1xf32, 3 : i32>)
  %t = memref.subview %a[%i, 0] [128, 1] [1, 1] : memref<256x1xf32, 3 : i32> to memref<128x1xf32, strided<[1, 1], offset: ?>, 3 : i32>
  memref.copy %b, %t : memref<128x1xf32, 3 : i32> to memref<128x1xf32, strided<[1, 1], offset: ?>, 3 : i32>
  return
}

// Only read: views of the copy become views of the original, with its strides; the layout goes along.
// CHECK-LABEL: func.func @views
// CHECK: %[[A:.*]] = memref.alloc() : memref<128x128xf32, 3 : i32>
// CHECK-NEXT: "nkipy.layout"(%[[A]]) {{.*}}tile_size = array<i64: 128, 64>
// CHECK-NOT: memref.alloc
// CHECK: memref.subview %[[A]][0, 64]
func.func @views(%x: memref<128x128xf32, 4 : i32>, %y: memref<128x64xf32, 3 : i32>) {
  %a = memref.alloc() : memref<128x128xf32, 3 : i32>
  memref.copy %x, %a : memref<128x128xf32, 4 : i32> to memref<128x128xf32, 3 : i32>
  %b = memref.alloc() : memref<128x128xf32, 3 : i32>
  "nkipy.layout"(%b) {mem_space = 3 : i32, tile_size = array<i64: 128, 64>} : (memref<128x128xf32, 3 : i32>) -> ()
  memref.copy %a, %b : memref<128x128xf32, 3 : i32> to memref<128x128xf32, 3 : i32>
  %v = memref.subview %b[0, 64] [128, 64] [1, 1] : memref<128x128xf32, 3 : i32> to memref<128x64xf32, strided<[128, 1], offset: 64>, 3 : i32>
  linalg.exp ins(%v : memref<128x64xf32, strided<[128, 1], offset: 64>, 3 : i32>) outs(%y : memref<128x64xf32, 3 : i32>)
  return
}

// The original is written while the copy is still read: both are needed.
// CHECK-LABEL: func.func @original_changes
// CHECK: memref.copy %arg0, %{{.*}} : memref<8x8xf32, 3 : i32> to memref<8x8xf32, 3 : i32>
func.func @original_changes(%a: memref<8x8xf32, 3 : i32>, %c: memref<8x8xf32, 3 : i32>) {
  %b = memref.alloc() : memref<8x8xf32, 3 : i32>
  memref.copy %a, %b : memref<8x8xf32, 3 : i32> to memref<8x8xf32, 3 : i32>
  linalg.exp ins(%b : memref<8x8xf32, 3 : i32>) outs(%a : memref<8x8xf32, 3 : i32>)
  linalg.add ins(%a, %b : memref<8x8xf32, 3 : i32>, memref<8x8xf32, 3 : i32>) outs(%c : memref<8x8xf32, 3 : i32>)
  return
}

// The copy is written and the original read afterwards.
// CHECK-LABEL: func.func @copy_changes
// CHECK: memref.copy %arg0, %{{.*}} : memref<8x8xf32, 3 : i32> to memref<8x8xf32, 3 : i32>
func.func @copy_changes(%a: memref<8x8xf32, 3 : i32>, %c: memref<8x8xf32, 3 : i32>) {
  %b = memref.alloc() : memref<8x8xf32, 3 : i32>
  memref.copy %a, %b : memref<8x8xf32, 3 : i32> to memref<8x8xf32, 3 : i32>
  linalg.exp ins(%b : memref<8x8xf32, 3 : i32>) outs(%b : memref<8x8xf32, 3 : i32>)
  linalg.add ins(%a, %b : memref<8x8xf32, 3 : i32>, memref<8x8xf32, 3 : i32>) outs(%c : memref<8x8xf32, 3 : i32>)
  return
}

// Allocated outside of the loop: the copy of one iteration may be read in the next.
// CHECK-LABEL: func.func @outside
// CHECK: memref.copy %arg0, %{{.*}} : memref<8x8xf32, 3 : i32> to memref<8x8xf32, 3 : i32>
func.func @outside(%a: memref<8x8xf32, 3 : i32>, %c: memref<8x8xf32, 3 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %b = memref.alloc() : memref<8x8xf32, 3 : i32>
  scf.for %i = %c0 to %c4 step %c1 {
    linalg.exp ins(%b : memref<8x8xf32, 3 : i32>) outs(%c : memref<8x8xf32, 3 : i32>)
    memref.copy %a, %b : memref<8x8xf32, 3 : i32> to memref<8x8xf32, 3 : i32>
    linalg.exp ins(%c : memref<8x8xf32, 3 : i32>) outs(%a : memref<8x8xf32, 3 : i32>)
  }
  return
}
