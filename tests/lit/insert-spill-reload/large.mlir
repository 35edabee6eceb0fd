// RUN: nkx opt --insert-spill-reload=sbuf-capacity=700 %s | FileCheck %s
// RUN: nkx opt --remarks --insert-spill-reload=sbuf-capacity=700 %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: remark: memref.alloc: moved to HBM: a loop needs more than there is, 512 bytes per partition of it here

// A loop that touches two buffers of 512 bytes per partition, tile by tile: one of them moves to HBM for good.
// CHECK-LABEL: func.func @loop
// CHECK: %[[A:.*]] = memref.alloc() : memref<128x8x16xf32, 1 : i32>
// CHECK: %[[B:.*]] = memref.alloc() : memref<128x8x16xf32, 3 : i32>
// CHECK: scf.for
// CHECK: %[[S:.*]] = memref.subview %[[A]]
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<128x16xf32, 3 : i32>
// CHECK-NEXT: memref.copy %[[S]], %[[T]]
// CHECK: linalg.exp ins(%[[T]]
func.func @loop(%h: memref<128x8x16xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc() : memref<128x8x16xf32, 3 : i32>
  memref.copy %h, %a : memref<128x8x16xf32, 4 : i32> to memref<128x8x16xf32, 3 : i32>
  %b = memref.alloc() : memref<128x8x16xf32, 3 : i32>
  scf.for %i = %c0 to %c8 step %c1 {
    %s = memref.subview %a[0, %i, 0] [128, 1, 16] [1, 1, 1] : memref<128x8x16xf32, 3 : i32> to memref<128x16xf32, strided<[128, 1], offset: ?>, 3 : i32>
    %t = memref.subview %b[0, %i, 0] [128, 1, 16] [1, 1, 1] : memref<128x8x16xf32, 3 : i32> to memref<128x16xf32, strided<[128, 1], offset: ?>, 3 : i32>
    linalg.exp ins(%s : memref<128x16xf32, strided<[128, 1], offset: ?>, 3 : i32>) outs(%t : memref<128x16xf32, strided<[128, 1], offset: ?>, 3 : i32>)
  }
  memref.copy %b, %h : memref<128x8x16xf32, 3 : i32> to memref<128x8x16xf32, 4 : i32>
  return
}
