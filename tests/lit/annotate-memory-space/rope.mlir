// RoPE's form, (256, 4, 128) with halves (256, 64), tile [128, 1, 64]: views of arguments stay in HBM, what is computed lies in
// SBUF, the halves are put together in the result.
// RUN: nkx opt --annotate-memory-space %s | FileCheck %s
// CHECK:         func.func @f(%arg0: memref<256x64xf32, strided<[?, ?], offset: ?>, 4 : i32>) -> memref<256x4x128xf32, 4 : i32>
// CHECK:         memref.expand_shape %arg0 {{.*}} into memref<256x1x64xf32, strided<[?, ?, ?], offset: ?>, 4 : i32>
// CHECK-COUNT-2: memref.alloc() : memref<256x4x64xf32, 3 : i32>
// CHECK:         %[[R:.*]] = memref.alloc() : memref<256x4x128xf32, 4 : i32>
// CHECK:         memref.copy %{{.*}} : memref<256x4x64xf32, 3 : i32> to memref<256x4x64xf32, strided<[512, 128, 1]>, 4 : i32>
// CHECK:         memref.copy %{{.*}} : memref<256x4x64xf32, 3 : i32> to memref<256x4x64xf32, strided<[512, 128, 1], offset: 64>, 4 : i32>
// CHECK:         return %[[R]]
func.func @f(%cos: memref<256x64xf32, strided<[?, ?], offset: ?>>) -> memref<256x4x128xf32> {
  %x = memref.expand_shape %cos [[0], [1, 2]] output_shape [256, 1, 64] : memref<256x64xf32, strided<[?, ?], offset: ?>> into memref<256x1x64xf32, strided<[?, ?, ?], offset: ?>>
  %a = memref.alloc() : memref<256x4x64xf32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 1, 64>} : (memref<256x4x64xf32>) -> ()
  %b = memref.alloc() : memref<256x4x64xf32>
  "nkipy.layout"(%b) {mem_space = 3 : i32, tile_size = array<i64: 128, 1, 64>} : (memref<256x4x64xf32>) -> ()
  %r = memref.alloc() : memref<256x4x128xf32>
  %l = memref.subview %r[0, 0, 0] [256, 4, 64] [1, 1, 1] : memref<256x4x128xf32> to memref<256x4x64xf32, strided<[512, 128, 1]>>
  memref.copy %a, %l : memref<256x4x64xf32> to memref<256x4x64xf32, strided<[512, 128, 1]>>
  %h = memref.subview %r[0, 0, 64] [256, 4, 64] [1, 1, 1] : memref<256x4x128xf32> to memref<256x4x64xf32, strided<[512, 128, 1], offset: 64>>
  memref.copy %b, %h : memref<256x4x64xf32> to memref<256x4x64xf32, strided<[512, 128, 1], offset: 64>>
  return %r : memref<256x4x128xf32>
}
