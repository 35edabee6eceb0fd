// RUN: nkx opt --insert-spill-reload=sbuf-capacity=16384 %s | FileCheck %s
// RUN: nkx opt --insert-spill-reload %s | FileCheck %s --check-prefix=FITS
// RUN: nkx opt --remarks --insert-spill-reload=sbuf-capacity=16384 %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: remark: func.func: buffers would take up to 24576 bytes of SBUF per partition, there are 16384: what does not fit waits in HBM [insert-spill-reload]
// REMARK: remark: memref.alloc: spilled to HBM, 8192 bytes per partition
// REMARK: remark: memref.alloc: reloaded from HBM, 8192 bytes per partition

// Each buffer takes 8192 bytes per partition; there is room for two.
// FITS-NOT: 1 : i32

// Of two that wait, the one whose next use is farther goes.
// CHECK-LABEL: func.func @farthest
// CHECK: %[[S:.*]] = memref.alloc() {{.*}} : memref<128x1x1x2048xf32, 1 : i32>
// CHECK: %[[A:.*]] = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
// CHECK: memref.copy %arg0, %[[A]]
// CHECK-NEXT: linalg.exp ins(%[[A]] {{.*}} outs(%[[A]]
// CHECK-NEXT: memref.copy %[[A]], %[[S]] : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 1 : i32>
// CHECK: %[[B:.*]] = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
// CHECK: %[[C:.*]] = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
// CHECK: linalg.exp ins(%[[B]] {{.*}} outs(%[[C]]
// CHECK-NEXT: memref.copy %[[C]], %arg1
// CHECK-NEXT: linalg.exp ins(%[[B]] {{.*}} outs(%[[B]]
// CHECK-NEXT: memref.copy %[[B]], %arg1
// CHECK-NEXT: %[[N:.*]] = memref.alloc() {{.*}} : memref<128x1x1x2048xf32, 3 : i32>
// CHECK-NEXT: memref.copy %[[S]], %[[N]]
// CHECK-NEXT: memref.copy %[[N]], %arg1
// CHECK-NOT: 1 : i32
func.func @farthest(%x: memref<128x1x1x2048xf32, 4 : i32>, %y: memref<128x1x1x2048xf32, 4 : i32>) {
  %a = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  memref.copy %x, %a : memref<128x1x1x2048xf32, 4 : i32> to memref<128x1x1x2048xf32, 3 : i32>
  linalg.exp ins(%a : memref<128x1x1x2048xf32, 3 : i32>) outs(%a : memref<128x1x1x2048xf32, 3 : i32>)
  %b = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  memref.copy %x, %b : memref<128x1x1x2048xf32, 4 : i32> to memref<128x1x1x2048xf32, 3 : i32>
  %c = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  linalg.exp ins(%b : memref<128x1x1x2048xf32, 3 : i32>) outs(%c : memref<128x1x1x2048xf32, 3 : i32>)
  memref.copy %c, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  linalg.exp ins(%b : memref<128x1x1x2048xf32, 3 : i32>) outs(%b : memref<128x1x1x2048xf32, 3 : i32>)
  memref.copy %b, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  memref.copy %a, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  return
}

// A buffer that is a copy of something in HBM goes first of those used equally late, is not stored, and comes back from
// where it came.
// CHECK-LABEL: func.func @clean
// CHECK-NOT: 1 : i32
// CHECK: memref.copy %arg0, %[[A:[^ ,]+]] : memref<128x1x1x2048xf32, 4 : i32>
// CHECK-NEXT: memref.copy %[[A]], %arg1
// CHECK-NOT: memref.copy %[[A]],
// CHECK: %[[N:.*]] = memref.alloc() {{.*}} : memref<128x1x1x2048xf32, 3 : i32>
// CHECK-NEXT: memref.copy %arg0, %[[N]]
// CHECK-NEXT: linalg.add ins(%[[N]], %[[B:[^ ,]+]] : {{.*}} outs(%[[B]] :
// CHECK-NOT: 1 : i32
// CHECK: return
func.func @clean(%x: memref<128x1x1x2048xf32, 4 : i32>, %y: memref<128x1x1x2048xf32, 4 : i32>) {
  %cst = arith.constant 1.0 : f32
  %b = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  memref.copy %y, %b : memref<128x1x1x2048xf32, 4 : i32> to memref<128x1x1x2048xf32, 3 : i32>
  linalg.exp ins(%b : memref<128x1x1x2048xf32, 3 : i32>) outs(%b : memref<128x1x1x2048xf32, 3 : i32>)
  %a = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  memref.copy %x, %a : memref<128x1x1x2048xf32, 4 : i32> to memref<128x1x1x2048xf32, 3 : i32>
  memref.copy %a, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  %c = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  linalg.fill ins(%cst : f32) outs(%c : memref<128x1x1x2048xf32, 3 : i32>)
  memref.copy %c, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  linalg.add ins(%a, %b : memref<128x1x1x2048xf32, 3 : i32>, memref<128x1x1x2048xf32, 3 : i32>) outs(%b : memref<128x1x1x2048xf32, 3 : i32>)
  memref.copy %b, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  return
}

// What is copied from is written before the buffer is used again: it must be stored.
// CHECK-LABEL: func.func @not_clean
// CHECK: %[[S:.*]] = memref.alloc() {{.*}} 1 : i32>
// CHECK: memref.copy %arg0, %[[A:[^ ,]+]] : memref<128x1x1x2048xf32, 4 : i32>
// CHECK: memref.copy %[[A]], %[[S]]
// CHECK: memref.copy %[[S]], %{{.*}}
func.func @not_clean(%x: memref<128x1x1x2048xf32, 4 : i32>) {
  %cst = arith.constant 1.0 : f32
  %a = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  memref.copy %x, %a : memref<128x1x1x2048xf32, 4 : i32> to memref<128x1x1x2048xf32, 3 : i32>
  %b = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  %c = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  linalg.fill ins(%cst : f32) outs(%b : memref<128x1x1x2048xf32, 3 : i32>)
  linalg.exp ins(%b : memref<128x1x1x2048xf32, 3 : i32>) outs(%c : memref<128x1x1x2048xf32, 3 : i32>)
  memref.copy %c, %x : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  memref.copy %a, %x : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  return
}

// What a loop carries stays until the loop's result is used for the last time; the other one goes.
// CHECK-LABEL: func.func @carried
// CHECK: memref.copy %arg0, %[[A:[^ ,]+]] :
// CHECK: %[[S:.*]] = memref.alloc() {{.*}} 1 : i32>
// CHECK: memref.copy %arg1, %[[B:[^ ,]+]] :
// CHECK: memref.copy %[[B]], %[[S]]
// CHECK: %[[L:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[A]])
// CHECK: linalg.exp
// CHECK: memref.copy %[[S]], %[[N:[^ ,]+]] :
// CHECK: linalg.add ins(%[[L]], %[[N]]
func.func @carried(%x: memref<128x1x1x2048xf32, 4 : i32>, %y: memref<128x1x1x2048xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  memref.copy %x, %a : memref<128x1x1x2048xf32, 4 : i32> to memref<128x1x1x2048xf32, 3 : i32>
  %b = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  memref.copy %y, %b : memref<128x1x1x2048xf32, 4 : i32> to memref<128x1x1x2048xf32, 3 : i32>
  linalg.exp ins(%b : memref<128x1x1x2048xf32, 3 : i32>) outs(%b : memref<128x1x1x2048xf32, 3 : i32>)
  %l = scf.for %i = %c0 to %c2 step %c1 iter_args(%v = %a) -> (memref<128x1x1x2048xf32, 3 : i32>) {
    linalg.exp ins(%v : memref<128x1x1x2048xf32, 3 : i32>) outs(%v : memref<128x1x1x2048xf32, 3 : i32>)
    scf.yield %v : memref<128x1x1x2048xf32, 3 : i32>
  }
  %d = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  linalg.exp ins(%l : memref<128x1x1x2048xf32, 3 : i32>) outs(%d : memref<128x1x1x2048xf32, 3 : i32>)
  memref.copy %d, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  linalg.add ins(%l, %b : memref<128x1x1x2048xf32, 3 : i32>, memref<128x1x1x2048xf32, 3 : i32>) outs(%b : memref<128x1x1x2048xf32, 3 : i32>)
  memref.copy %b, %x : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  return
}

// Lifetimes that do not overlap need nothing, wherever the allocations stand.
// CHECK-LABEL: func.func @disjoint
// CHECK-NOT: 1 : i32
// CHECK: return
func.func @disjoint(%x: memref<128x1x1x2048xf32, 4 : i32>) {
  %a = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  %b = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  %c = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  memref.copy %a, %x : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  memref.copy %b, %x : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  memref.copy %c, %x : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  return
}

// Used inside of a loop, through a view made before: back right before the loop, the view made anew.  It is not written
// in there, so that it needs no second copy to HBM.
// CHECK-LABEL: func.func @loop
// CHECK: %[[S:.*]] = memref.alloc() {{.*}} 1 : i32>
// CHECK: memref.copy %{{.*}}, %[[S]]
// CHECK: linalg.exp
// CHECK: %[[N:.*]] = memref.alloc() {{.*}} : memref<128x1x1x2048xf32, 3 : i32>
// CHECK-NEXT: memref.copy %[[S]], %[[N]]
// CHECK-NEXT: %[[V:.*]] = memref.subview %[[N]][0, 0, 0, 0] [128, 1, 1, 1024]
// CHECK-NEXT: scf.for
// CHECK: linalg.exp ins(%[[V]]
// CHECK: linalg.exp ins(%{{.*}} : memref<128x1x1x2048xf32, 3 : i32>)
// CHECK-NOT: memref.copy %{{.*}}, %[[S]]
// CHECK: memref.copy %[[S]], %{{.*}}
// CHECK-NOT: memref.copy %{{.*}}, %[[S]]
func.func @loop(%x: memref<128x1x1x2048xf32, 4 : i32>, %y: memref<128x1x1x1024xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  %v = memref.subview %a[0, 0, 0, 0] [128, 1, 1, 1024] [1, 1, 1, 1] : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x1024xf32, strided<[2048, 2048, 2048, 1]>, 3 : i32>
  memref.copy %x, %a : memref<128x1x1x2048xf32, 4 : i32> to memref<128x1x1x2048xf32, 3 : i32>
  %b = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  %c = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  linalg.exp ins(%b : memref<128x1x1x2048xf32, 3 : i32>) outs(%c : memref<128x1x1x2048xf32, 3 : i32>)
  memref.copy %c, %x : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  scf.for %i = %c0 to %c2 step %c1 {
    %t = memref.alloc() : memref<128x1x1x1024xf32, 3 : i32>
    linalg.exp ins(%v : memref<128x1x1x1024xf32, strided<[2048, 2048, 2048, 1]>, 3 : i32>) outs(%t : memref<128x1x1x1024xf32, 3 : i32>)
    memref.copy %t, %y : memref<128x1x1x1024xf32, 3 : i32> to memref<128x1x1x1024xf32, 4 : i32>
  }
  %d = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  %e = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  linalg.exp ins(%d : memref<128x1x1x2048xf32, 3 : i32>) outs(%e : memref<128x1x1x2048xf32, 3 : i32>)
  memref.copy %e, %x : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  memref.copy %a, %x : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  return
}

// All of it happens inside of a loop: it is treated there; the place in HBM is outside.
// CHECK-LABEL: func.func @inside
// CHECK: %[[S:.*]] = memref.alloc() {{.*}} 1 : i32>
// CHECK: scf.for
// CHECK: memref.copy %{{.*}}, %[[S]]
// CHECK: memref.copy %[[S]], %{{.*}}
// CHECK: }
func.func @inside(%x: memref<128x1x1x2048xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %c2 step %c1 {
    %a = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
    memref.copy %x, %a : memref<128x1x1x2048xf32, 4 : i32> to memref<128x1x1x2048xf32, 3 : i32>
    %b = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
    %c = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
    linalg.exp ins(%b : memref<128x1x1x2048xf32, 3 : i32>) outs(%c : memref<128x1x1x2048xf32, 3 : i32>)
    memref.copy %c, %x : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
    memref.copy %a, %x : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  }
  return
}
