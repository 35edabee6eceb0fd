// RUN: nkx opt --eliminate-same-memspace-copy %s | FileCheck %s
// RUN: nkx opt --remarks --eliminate-same-memspace-copy %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: removed a copy of a part of SBUF to itself

// A part copied to itself, through different but equal views.  Another part, and another memory, stay.
// CHECK-LABEL: func.func @self
// CHECK-COUNT-2: memref.copy
// CHECK-NOT: memref.copy
func.func @self(%a: memref<256x64xf32, 3 : i32>, %p: memref<128x64xf32, 2 : i32>, %i: index) {
  %s = memref.subview %a[%i, 0] [128, 64] [1, 1] : memref<256x64xf32, 3 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 3 : i32>
  %t = memref.subview %a[%i, 0] [128, 64] [1, 1] : memref<256x64xf32, 3 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 3 : i32>
  %u = memref.subview %a[0, 0] [128, 64] [1, 1] : memref<256x64xf32, 3 : i32> to memref<128x64xf32, strided<[64, 1]>, 3 : i32>
  memref.copy %a, %a : memref<256x64xf32, 3 : i32> to memref<256x64xf32, 3 : i32>
  memref.copy %s, %t : memref<128x64xf32, strided<[64, 1], offset: ?>, 3 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 3 : i32>
  memref.copy %s, %u : memref<128x64xf32, strided<[64, 1], offset: ?>, 3 : i32> to memref<128x64xf32, strided<[64, 1]>, 3 : i32>
  memref.copy %p, %u : memref<128x64xf32, 2 : i32> to memref<128x64xf32, strided<[64, 1]>, 3 : i32>
  return
}
