// RUN: not nkx opt --legalize-layout %s 2>&1 | FileCheck %s
// CHECK: 4:8: error: no tile fits the ways in which this on-chip buffer is used
func.func @f(%o: memref<100x64xf32, 3 : i32>) {
  %a = memref.alloc() : memref<256x64xf32, 2 : i32>
  %s = memref.subview %a[3, 0] [100, 64] [1, 1] : memref<256x64xf32, 2 : i32> to memref<100x64xf32, strided<[64, 1], offset: 192>, 2 : i32>
  linalg.exp ins(%s : memref<100x64xf32, strided<[64, 1], offset: 192>, 2 : i32>) outs(%o : memref<100x64xf32, 3 : i32>)
  return
}
