// What a loop would load again is loaded once, before it.
// RUN: nkx opt --legalize-layout %s | FileCheck %s

// The mask does not depend on the batch: the buffer holds the rows of all iterations of the inner loop.
// CHECK-LABEL: func.func @mask
// CHECK: %[[M:.*]] = memref.alloc() {{.*}} : memref<128x1x2x1x64xf32, 3 : i32>
// CHECK: scf.for
// CHECK: memref.copy %{{.*}}, %{{.*}} : memref<128x64xf32, {{.*}}4 : i32> to memref<128x64xf32, {{.*}}3 : i32>
// CHECK: scf.for %[[I:.*]] =
// CHECK: scf.for %[[J:.*]] =
// CHECK: memref.copy %{{.*}} : memref<128x64xf32, {{.*}}4 : i32> to memref<128x64xf32, 3 : i32>
// CHECK-NOT: memref.copy
// CHECK: memref.subview %[[M]][0, 0, %{{.*}}, 0, 0] [128, 1, 1, 1, 64]
// CHECK: linalg.add
func.func @mask(%h: memref<8x256x64xf32, 4 : i32>, %m: memref<256x64xf32, 4 : i32>, %o: memref<8x256x64xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %m3 = memref.expand_shape %m [[0, 1], [2]] output_shape [1, 256, 64] : memref<256x64xf32, 4 : i32> into memref<1x256x64xf32, 4 : i32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c2 step %c1 {
      %r = arith.muli %j, %c128 : index
      %x = memref.alloc() : memref<1x128x64xf32, 3 : i32>
      %xs = memref.subview %h[%i, %r, 0] [1, 128, 64] [1, 1, 1] : memref<8x256x64xf32, 4 : i32> to memref<1x128x64xf32, strided<[16384, 64, 1], offset: ?>, 4 : i32>
      memref.copy %xs, %x : memref<1x128x64xf32, strided<[16384, 64, 1], offset: ?>, 4 : i32> to memref<1x128x64xf32, 3 : i32>
      %y = memref.alloc() : memref<1x128x64xf32, 3 : i32>
      %ys = memref.subview %m3[0, %r, 0] [1, 128, 64] [1, 1, 1] : memref<1x256x64xf32, 4 : i32> to memref<1x128x64xf32, strided<[16384, 64, 1], offset: ?>, 4 : i32>
      memref.copy %ys, %y : memref<1x128x64xf32, strided<[16384, 64, 1], offset: ?>, 4 : i32> to memref<1x128x64xf32, 3 : i32>
      %z = memref.alloc() : memref<1x128x64xf32, 3 : i32>
      linalg.add ins(%x, %y : memref<1x128x64xf32, 3 : i32>, memref<1x128x64xf32, 3 : i32>) outs(%z : memref<1x128x64xf32, 3 : i32>)
      %zs = memref.subview %o[%i, %r, 0] [1, 128, 64] [1, 1, 1] : memref<8x256x64xf32, 4 : i32> to memref<1x128x64xf32, strided<[16384, 64, 1], offset: ?>, 4 : i32>
      memref.copy %z, %zs : memref<1x128x64xf32, 3 : i32> to memref<1x128x64xf32, strided<[16384, 64, 1], offset: ?>, 4 : i32>
    }
  }
  return
}

// A row for all partitions is broadcast once, too.
// CHECK-LABEL: func.func @bias
// CHECK: linalg.broadcast ins(%{{.*}} : memref<64xf32, {{.*}}4 : i32>) outs(%[[W:.*]] : memref<128x64xf32, 3 : i32>) dimensions = [0]
// CHECK: scf.for
// CHECK-NOT: linalg.broadcast
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[W]] :
func.func @bias(%h: memref<512x64xf32, 4 : i32>, %b: memref<1x64xf32, 4 : i32>, %o: memref<512x64xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %r = arith.muli %i, %c128 : index
    %x = memref.alloc() : memref<128x64xf32, 3 : i32>
    %xs = memref.subview %h[%r, 0] [128, 64] [1, 1] : memref<512x64xf32, 4 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 4 : i32>
    memref.copy %xs, %x : memref<128x64xf32, strided<[64, 1], offset: ?>, 4 : i32> to memref<128x64xf32, 3 : i32>
    %y = memref.alloc() : memref<1x64xf32, 3 : i32>
    memref.copy %b, %y : memref<1x64xf32, 4 : i32> to memref<1x64xf32, 3 : i32>
    %z = memref.alloc() : memref<128x64xf32, 3 : i32>
    linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (0, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
        ins(%x, %y : memref<128x64xf32, 3 : i32>, memref<1x64xf32, 3 : i32>) outs(%z : memref<128x64xf32, 3 : i32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %t = arith.addf %p, %q : f32
      linalg.yield %t : f32
    }
    %zs = memref.subview %o[%r, 0] [128, 64] [1, 1] : memref<512x64xf32, 4 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 4 : i32>
    memref.copy %z, %zs : memref<128x64xf32, 3 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 4 : i32>
  }
  return
}

// What the loop writes is read anew in each iteration.
// CHECK-LABEL: func.func @written
// CHECK-NOT: memref.copy
// CHECK: scf.for
// CHECK: memref.copy %arg0, %[[X:.*]] : memref<128x64xf32, 4 : i32> to memref<128x64xf32, 3 : i32>
// CHECK: linalg.exp ins(%[[X]]
func.func @written(%h: memref<128x64xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %x = memref.alloc() : memref<128x64xf32, 3 : i32>
    memref.copy %h, %x : memref<128x64xf32, 4 : i32> to memref<128x64xf32, 3 : i32>
    %z = memref.alloc() : memref<128x64xf32, 3 : i32>
    linalg.exp ins(%x : memref<128x64xf32, 3 : i32>) outs(%z : memref<128x64xf32, 3 : i32>)
    memref.copy %z, %h : memref<128x64xf32, 3 : i32> to memref<128x64xf32, 4 : i32>
  }
  return
}

// What takes more than a quarter of SBUF stays.
// CHECK-LABEL: func.func @large
// CHECK-NOT: memref.copy
// CHECK: scf.for
// CHECK: memref.copy %arg0, %{{.*}} : memref<128x16384xf32, 4 : i32> to memref<128x16384xf32, 3 : i32>
func.func @large(%h: memref<128x16384xf32, 4 : i32>, %o: memref<128x16384xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %x = memref.alloc() : memref<128x16384xf32, 3 : i32>
    memref.copy %h, %x : memref<128x16384xf32, 4 : i32> to memref<128x16384xf32, 3 : i32>
    %z = memref.alloc() : memref<128x16384xf32, 3 : i32>
    linalg.exp ins(%x : memref<128x16384xf32, 3 : i32>) outs(%z : memref<128x16384xf32, 3 : i32>)
    memref.copy %z, %o : memref<128x16384xf32, 3 : i32> to memref<128x16384xf32, 4 : i32>
  }
  return
}
