// RUN: nkx opt --insert-memref-dealloc %s | FileCheck %s

// Right behind the last user; views and loops count for the operation that holds them.  HBM and results stay.
// CHECK-LABEL: func.func @uses
func.func @uses(%x: memref<128x64xf32, 4 : i32>) -> memref<128x64xf32, 4 : i32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = memref.alloc() : memref<128x64xf32, 3 : i32>
  %b = memref.alloc() : memref<128x64xf32, 3 : i32>
  %h = memref.alloc() : memref<128x64xf32, 1 : i32>
  %r = memref.alloc() : memref<128x64xf32, 4 : i32>
  memref.copy %x, %a : memref<128x64xf32, 4 : i32> to memref<128x64xf32, 3 : i32>
  %v = memref.subview %a[0, 0] [128, 32] [1, 1] : memref<128x64xf32, 3 : i32> to memref<128x32xf32, strided<[64, 1]>, 3 : i32>
  // CHECK: scf.for
  scf.for %i = %c0 to %c2 step %c1 {
    // CHECK: %[[P:.*]] = memref.alloc() : memref<128x32xf32, 2 : i32>
    %p = memref.alloc() : memref<128x32xf32, 2 : i32>
    // CHECK: linalg.exp
    // CHECK-NEXT: memref.dealloc %[[P]] : memref<128x32xf32, 2 : i32>
    linalg.exp ins(%v : memref<128x32xf32, strided<[64, 1]>, 3 : i32>) outs(%p : memref<128x32xf32, 2 : i32>)
    // CHECK: memref.copy
    memref.copy %a, %b : memref<128x64xf32, 3 : i32> to memref<128x64xf32, 3 : i32>
    // CHECK-NEXT: }
  }
  // CHECK-NEXT: memref.dealloc %alloc : memref<128x64xf32, 3 : i32>
  // CHECK-NEXT: memref.copy %[[B:.*]], %{{.*}} : memref<128x64xf32, 3 : i32> to memref<128x64xf32, 4 : i32>
  // CHECK-NEXT: memref.dealloc %[[B]] : memref<128x64xf32, 3 : i32>
  memref.copy %b, %r : memref<128x64xf32, 3 : i32> to memref<128x64xf32, 4 : i32>
  memref.copy %r, %h : memref<128x64xf32, 4 : i32> to memref<128x64xf32, 1 : i32>
  // CHECK-NOT: memref.dealloc
  return %r : memref<128x64xf32, 4 : i32>
}

// Nobody uses it: it ends at once.
// CHECK-LABEL: func.func @unused
// CHECK: %[[A:.*]] = memref.alloc()
// CHECK-NEXT: memref.dealloc %[[A]]
func.func @unused() {
  %a = memref.alloc() : memref<128x64xf32, 3 : i32>
  return
}

// What a loop carries is the same buffer: it ends behind the last user of the loop's result.
// CHECK-LABEL: func.func @carried
func.func @carried(%x: memref<4x4xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[A:.*]] = memref.alloc()
  %a = memref.alloc() : memref<4x4xf32, 3 : i32>
  %l = scf.for %i = %c0 to %c1 step %c1 iter_args(%m = %a) -> (memref<4x4xf32, 3 : i32>) {
    scf.yield %m : memref<4x4xf32, 3 : i32>
  }
  // CHECK: memref.copy
  // CHECK-NEXT: memref.dealloc %[[A]]
  memref.copy %l, %x : memref<4x4xf32, 3 : i32> to memref<4x4xf32, 4 : i32>
  return
}

// Freed already.
// CHECK-LABEL: func.func @freed
// CHECK: memref.dealloc
// CHECK-NOT: memref.dealloc
// CHECK: return
func.func @freed() {
  %a = memref.alloc() : memref<128x64xf32, 3 : i32>
  memref.dealloc %a : memref<128x64xf32, 3 : i32>
  return
}
