// RUN: not nkx opt --insert-spill-reload=sbuf-capacity=60 %s 2>&1 | FileCheck %s
// RUN: not nkx opt --insert-spill-reload=target=trn9 %s 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not nkx opt --insert-spill-reload=sbuf-capacity=much %s 2>&1 | FileCheck %s --check-prefix=NUMBER
// CHECK: 8:8: error: needs 64 bytes of SBUF per partition at once, there are 60: spilling does not help
// TARGET: error: target=trn9: expected trn1, trn2 or trn3
// NUMBER: sbuf-capacity is a number of bytes per partition, not 'much'
func.func @f(%x: memref<4x16xf32, 3 : i32>) {
  %a = memref.alloc() : memref<4x16xf32, 3 : i32>
  %b = memref.alloc() : memref<4x16xf32, 3 : i32>
  linalg.exp ins(%a : memref<4x16xf32, 3 : i32>) outs(%b : memref<4x16xf32, 3 : i32>)
  return
}
