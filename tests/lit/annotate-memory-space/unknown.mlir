// What nobody says anything about lies in HBM: temporary buffers and tables of constants.
// RUN: nkx opt --annotate-memory-space %s | FileCheck %s
// CHECK: memref.global "private" constant @table : memref<2x2xf32, 1 : i32> = dense<1.000000e+00>
memref.global "private" constant @table : memref<2x2xf32> = dense<1.0>
// CHECK-LABEL: @f
// CHECK:         memref.get_global @table : memref<2x2xf32, 1 : i32>
// CHECK:         memref.alloc() : memref<2x2xf32, 1 : i32>
// CHECK:         memref.copy {{.*}} : memref<2x2xf32, 1 : i32> to memref<2x2xf32, 1 : i32>
func.func @f() {
  %t = memref.get_global @table : memref<2x2xf32>
  %s = memref.alloc() : memref<2x2xf32>
  memref.copy %t, %s : memref<2x2xf32> to memref<2x2xf32>
  return
}
