// RUN: nkx opt --simplify-linalg %s | FileCheck %s

// A copy to partition 0 stays: its reader could not begin at partition 25.
// CHECK-LABEL: func.func @reader
// CHECK: memref.copy %{{.*}} : memref<4x16xf32, strided<[16, 1], offset: 400>, 3 : i32> to memref<4x16xf32, 3 : i32>
func.func @reader(%d: memref<4x16xf32, 3 : i32>) {
  %a = memref.alloc() : memref<64x16xf32, 3 : i32>
  linalg.exp ins(%a : memref<64x16xf32, 3 : i32>) outs(%a : memref<64x16xf32, 3 : i32>)
  %t = memref.subview %a[25, 0] [4, 16] [1, 1] : memref<64x16xf32, 3 : i32> to memref<4x16xf32, strided<[16, 1], offset: 400>, 3 : i32>
  %y = memref.alloc() : memref<4x16xf32, 3 : i32>
  memref.copy %t, %y : memref<4x16xf32, strided<[16, 1], offset: 400>, 3 : i32> to memref<4x16xf32, 3 : i32>
  linalg.exp ins(%y : memref<4x16xf32, 3 : i32>) outs(%d : memref<4x16xf32, 3 : i32>)
  return
}
