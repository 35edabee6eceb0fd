// RUN: nkx opt --eliminate-same-memspace-copy %s | FileCheck %s
// RUN: nkx opt --remarks --eliminate-same-memspace-copy %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: removed a copy within SBUF: the value is computed where it was copied to
// REMARK: removed a copy within shared HBM: the value is computed where it was copied to

// Computed where it is copied to; the slice moves up, with its offset.
// CHECK-LABEL: func.func @tile
// CHECK: %[[O:.*]] = arith.muli
// CHECK-NEXT: %[[S:.*]] = memref.subview %arg1[%[[O]], 0]
// CHECK-NEXT: linalg.exp ins(%arg0 : {{.*}}) outs(%[[S]] : memref<128x64xf32, strided<[64, 1], offset: ?>, 3 : i32>)
// CHECK-NEXT: return
func.func @tile(%x: memref<128x64xf32, 3 : i32>, %y: memref<256x64xf32, 3 : i32>, %i: index) {
  %c128 = arith.constant 128 : index
  %t = memref.alloc() : memref<128x64xf32, 3 : i32>
  linalg.exp ins(%x : memref<128x64xf32, 3 : i32>) outs(%t : memref<128x64xf32, 3 : i32>)
  %o = arith.muli %i, %c128 : index
  %s = memref.subview %y[%o, 0] [128, 64] [1, 1] : memref<256x64xf32, 3 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 3 : i32>
  memref.copy %t, %s : memref<128x64xf32, 3 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 3 : i32>
  return
}

// In HBM, through dimensions of extent 1: the iterations of a batch write straight into the result.
// CHECK-LABEL: func.func @batch
// CHECK-NOT: memref.alloc() : memref<256x64xf32, 1 : i32>
// CHECK: %[[B:.*]] = memref.subview %{{.*}}[%{{.*}}, 0, 0] [1, 256, 64]
// CHECK: memref.subview %{{.*}} : {{.*}} to memref<256x64xf32, strided<[64, 1], offset: ?>, 4 : i32>
// CHECK: scf.for
// CHECK: memref.copy %arg0, %{{.*}} : memref<128x64xf32, 3 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 4 : i32>
// CHECK-NOT: memref.copy
func.func @batch(%x: memref<128x64xf32, 3 : i32>) -> memref<3x256x64xf32, 4 : i32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c128 = arith.constant 128 : index
  %r = memref.alloc() : memref<3x256x64xf32, 4 : i32>
  scf.for %b = %c0 to %c3 step %c1 {
    %h = memref.alloc() : memref<256x64xf32, 1 : i32>
    scf.for %i = %c0 to %c2 step %c1 {
      %o = arith.muli %i, %c128 : index
      %s = memref.subview %h[%o, 0] [128, 64] [1, 1] : memref<256x64xf32, 1 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 1 : i32>
      memref.copy %x, %s : memref<128x64xf32, 3 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 1 : i32>
    }
    %e = memref.expand_shape %h [[0, 1], [2]] output_shape [1, 256, 64] : memref<256x64xf32, 1 : i32> into memref<1x256x64xf32, 1 : i32>
    %s = memref.subview %r[%b, 0, 0] [1, 256, 64] [1, 1, 1] : memref<3x256x64xf32, 4 : i32> to memref<1x256x64xf32, strided<[16384, 64, 1], offset: ?>, 4 : i32>
    memref.copy %e, %s : memref<1x256x64xf32, 1 : i32> to memref<1x256x64xf32, strided<[16384, 64, 1], offset: ?>, 4 : i32>
  }
  return %r : memref<3x256x64xf32, 4 : i32>
}

// Somebody reads the target before the copy, or the buffer behind it; or it starts by reading what was never written.
// CHECK-LABEL: func.func @needed
// CHECK-COUNT-3: memref.copy
// CHECK: return
func.func @needed(%x: memref<8x8xf32, 3 : i32>, %y: memref<8x8xf32, 3 : i32>, %z: memref<8x8xf32, 3 : i32>) {
  %a = memref.alloc() : memref<8x8xf32, 3 : i32>
  linalg.exp ins(%x : memref<8x8xf32, 3 : i32>) outs(%a : memref<8x8xf32, 3 : i32>)
  linalg.exp ins(%y : memref<8x8xf32, 3 : i32>) outs(%z : memref<8x8xf32, 3 : i32>)
  memref.copy %a, %y : memref<8x8xf32, 3 : i32> to memref<8x8xf32, 3 : i32>
  %b = memref.alloc() : memref<8x8xf32, 3 : i32>
  linalg.exp ins(%x : memref<8x8xf32, 3 : i32>) outs(%b : memref<8x8xf32, 3 : i32>)
  memref.copy %b, %y : memref<8x8xf32, 3 : i32> to memref<8x8xf32, 3 : i32>
  linalg.exp ins(%b : memref<8x8xf32, 3 : i32>) outs(%b : memref<8x8xf32, 3 : i32>)
  linalg.add ins(%b, %y : memref<8x8xf32, 3 : i32>, memref<8x8xf32, 3 : i32>) outs(%z : memref<8x8xf32, 3 : i32>)
  %c = memref.alloc() : memref<8x8xf32, 3 : i32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x8xf32, 3 : i32>) outs(%c : memref<8x8xf32, 3 : i32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  }
  memref.copy %c, %x : memref<8x8xf32, 3 : i32> to memref<8x8xf32, 3 : i32>
  return
}

// What is returned, and a reshape across partitions, keep their copies.
// CHECK-LABEL: func.func @pinned
// CHECK-COUNT-2: memref.copy
func.func @pinned(%x: memref<8x8xf32, 4 : i32>, %s: memref<4x32xf32, 3 : i32>, %z: memref<16x8xf32, 3 : i32>) -> memref<8x8xf32, 4 : i32> {
  %r = memref.alloc() : memref<8x8xf32, 4 : i32>
  memref.copy %x, %r : memref<8x8xf32, 4 : i32> to memref<8x8xf32, 4 : i32>
  %c = memref.collapse_shape %s [[0, 1]] : memref<4x32xf32, 3 : i32> into memref<128xf32, 3 : i32>
  %e = memref.expand_shape %c [[0, 1]] output_shape [16, 8] : memref<128xf32, 3 : i32> into memref<16x8xf32, 3 : i32>
  %b = memref.alloc() : memref<16x8xf32, 3 : i32>
  memref.copy %e, %b : memref<16x8xf32, 3 : i32> to memref<16x8xf32, 3 : i32>
  linalg.exp ins(%b : memref<16x8xf32, 3 : i32>) outs(%z : memref<16x8xf32, 3 : i32>)
  return %r : memref<8x8xf32, 4 : i32>
}
