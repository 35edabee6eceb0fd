// Views lie where what they view lies: in both directions, through loops and branches.
// RUN: nkx opt --annotate-memory-space %s | FileCheck %s
// CHECK-LABEL: @views
// CHECK:         memref.expand_shape %arg0 {{.*}} : memref<256x128xf32, strided<[?, ?], offset: ?>, 4 : i32> into memref<256x1x128xf32, strided<[?, ?, ?], offset: ?>, 4 : i32>
// CHECK:         %[[S:.*]] = memref.alloc() : memref<256x128xf32, 3 : i32>
// CHECK:         %[[E:.*]] = memref.expand_shape %[[S]] {{.*}} into memref<256x1x128xf32, 3 : i32>
// CHECK:         %[[V:.*]] = memref.subview %[[E]]{{.*}} to memref<128x1x128xf32, strided<[128, 128, 1]>, 3 : i32>
// CHECK:         memref.cast %[[V]] {{.*}} to memref<128x1x128xf32, strided<[?, ?, ?], offset: ?>, 3 : i32>
// CHECK:         memref.collapse_shape %[[S]] {{.*}} into memref<32768xf32, 3 : i32>
func.func @views(%a: memref<256x128xf32, strided<[?, ?], offset: ?>>) {
  %x = memref.expand_shape %a [[0], [1, 2]] output_shape [256, 1, 128] : memref<256x128xf32, strided<[?, ?], offset: ?>> into memref<256x1x128xf32, strided<[?, ?, ?], offset: ?>>
  %s = memref.alloc() : memref<256x128xf32>
  "nkipy.layout"(%s) {mem_space = 3 : i32} : (memref<256x128xf32>) -> ()
  %e = memref.expand_shape %s [[0], [1, 2]] output_shape [256, 1, 128] : memref<256x128xf32> into memref<256x1x128xf32>
  %v = memref.subview %e[0, 0, 0] [128, 1, 128] [1, 1, 1] : memref<256x1x128xf32> to memref<128x1x128xf32, strided<[128, 128, 1]>>
  %c = memref.cast %v : memref<128x1x128xf32, strided<[128, 128, 1]>> to memref<128x1x128xf32, strided<[?, ?, ?], offset: ?>>
  %f = memref.collapse_shape %s [[0, 1]] : memref<256x128xf32> into memref<32768xf32>
  return
}

// CHECK-LABEL: @loop
// CHECK:         %[[S:.*]] = memref.alloc() : memref<8x8xf32, 3 : i32>
// CHECK:         %[[R:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[S]]) -> (memref<8x8xf32, 3 : i32>)
// CHECK:         "nkipy.layout"(%[[R]]) {mem_space = 3 : i32} : (memref<8x8xf32, 3 : i32>)
func.func @loop(%x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = memref.alloc() : memref<8x8xf32>
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%t = %s) -> (memref<8x8xf32>) {
    linalg.fill ins(%x : f32) outs(%t : memref<8x8xf32>)
    scf.yield %t : memref<8x8xf32>
  }
  "nkipy.layout"(%s) {mem_space = 3 : i32} : (memref<8x8xf32>) -> ()
  "nkipy.layout"(%r) {mem_space = 3 : i32} : (memref<8x8xf32>) -> ()
  return
}

// CHECK-LABEL: @branch
// CHECK-COUNT-2: memref.alloc() : memref<8x8xf32, 4 : i32>
// CHECK:         scf.if {{.*}} -> (memref<8x8xf32, 4 : i32>)
// CHECK:         arith.select {{.*}} : memref<8x8xf32, 4 : i32>
func.func @branch(%b: i1) -> memref<8x8xf32> {
  %s = memref.alloc() : memref<8x8xf32>
  %t = memref.alloc() : memref<8x8xf32>
  %r = scf.if %b -> (memref<8x8xf32>) {
    scf.yield %s : memref<8x8xf32>
  } else {
    scf.yield %t : memref<8x8xf32>
  }
  %u = arith.select %b, %r, %s : memref<8x8xf32>
  return %u : memref<8x8xf32>
}
