// RUN: not nkx opt --insert-memref-dealloc %s 2>&1 | FileCheck %s
// CHECK: an on-chip buffer is handed out of the loop that allocates it
func.func @f(%x: memref<4x4xf32, 3 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %l = scf.for %i = %c0 to %c1 step %c1 iter_args(%m = %x) -> (memref<4x4xf32, 3 : i32>) {
    %a = memref.alloc() : memref<4x4xf32, 3 : i32>
    scf.yield %a : memref<4x4xf32, 3 : i32>
  }
  return
}
