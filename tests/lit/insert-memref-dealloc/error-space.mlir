// RUN: not nkx opt --insert-memref-dealloc %s 2>&1 | FileCheck %s
// CHECK: 5:8: error: memref.alloc must have a memory space annotation
// CHECK-SAME: [pass-failed]
func.func @f() {
  %a = memref.alloc() : memref<128x64xf32>
  return
}
