// RUN: nkx opt --legalize-layout %s | FileCheck %s

// Three dimensions: blocks of each, two dimensions in every tile.
// CHECK-LABEL: func.func @three
// CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<128x2x2x1x64xf32, 3 : i32>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: memref.subview %arg0[%{{.*}}, %{{.*}}, 0] [128, 1, 64] [1, 1, 1] : memref<256x2x64xf32, 4 : i32> to memref<128x64xf32, strided<[128, 1], offset: ?>, 4 : i32>
// CHECK: memref.collapse_shape %{{.*}} {{\[}}[0, 1, 2, 3], [4]]
// CHECK: memref.copy
func.func @three(%h: memref<256x2x64xf32, 4 : i32>) {
  %a = memref.alloc() : memref<256x2x64xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 1, 64>} : (memref<256x2x64xf32, 3 : i32>) -> ()
  memref.copy %h, %a : memref<256x2x64xf32, 4 : i32> to memref<256x2x64xf32, 3 : i32>
  return
}

// A tile of a batch lies in the partitions of the next dimension; buffers that are one tile have two dimensions.
// CHECK-LABEL: func.func @batch
// CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<128x4x2x1x64xf32, 3 : i32>
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<128x64xf32, 3 : i32>
// CHECK: scf.for %[[I:.*]] =
// CHECK: memref.subview %[[A]][0, %[[I]], 1, 0, 0] [128, 1, 1, 1, 64]
// CHECK: linalg.exp ins(%{{.*}} : memref<128x64xf32, {{.*}}>) outs(%[[T]] : memref<128x64xf32, 3 : i32>)
// CHECK: memref.subview %arg0[%[[I]], 128, 0] [1, 128, 64] [1, 1, 1] : {{.*}} to memref<128x64xf32
// CHECK: memref.copy %[[T]]
func.func @batch(%h: memref<4x256x64xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<4x256x64xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 1, 128, 64>} : (memref<4x256x64xf32, 3 : i32>) -> ()
  %t = memref.alloc() : memref<1x128x64xf32, 3 : i32>
  scf.for %i = %c0 to %c4 step %c1 {
    %s = memref.subview %a[%i, 128, 0] [1, 128, 64] [1, 1, 1] : memref<4x256x64xf32, 3 : i32> to memref<1x128x64xf32, strided<[16384, 64, 1], offset: ?>, 3 : i32>
    linalg.exp ins(%s : memref<1x128x64xf32, strided<[16384, 64, 1], offset: ?>, 3 : i32>) outs(%t : memref<1x128x64xf32, 3 : i32>)
    %u = memref.subview %h[%i, 128, 0] [1, 128, 64] [1, 1, 1] : memref<4x256x64xf32, 4 : i32> to memref<1x128x64xf32, strided<[16384, 64, 1], offset: ?>, 4 : i32>
    memref.copy %t, %u : memref<1x128x64xf32, 3 : i32> to memref<1x128x64xf32, strided<[16384, 64, 1], offset: ?>, 4 : i32>
  }
  return
}

// A tile with a long middle dimension keeps it.
// CHECK-LABEL: func.func @middle
// CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<128x2x1x1x4x64xf32, 3 : i32>
// CHECK: memref.subview %[[A]][0, 1, 0, 0, 0, 0] [128, 1, 1, 1, 4, 64]
// CHECK: memref.collapse_shape %{{.*}} {{\[}}[0, 1, 2, 3], [4], [5]] : {{.*}} into memref<128x4x64xf32
// CHECK: linalg.exp
func.func @middle(%o: memref<128x4x64xf32, 3 : i32>) {
  %a = memref.alloc() : memref<256x4x64xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 4, 64>} : (memref<256x4x64xf32, 3 : i32>) -> ()
  %s = memref.subview %a[128, 0, 0] [128, 4, 64] [1, 1, 1] : memref<256x4x64xf32, 3 : i32> to memref<128x4x64xf32, strided<[256, 64, 1], offset: 32768>, 3 : i32>
  linalg.exp ins(%s : memref<128x4x64xf32, strided<[256, 64, 1], offset: 32768>, 3 : i32>) outs(%o : memref<128x4x64xf32, 3 : i32>)
  return
}

// A generic loses the loops of extent 1, and its operands these dimensions; a reduction stays one.
// CHECK-LABEL: func.func @generic
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #{{.*}}], iterator_types = ["parallel", "reduction"]}
// CHECK-SAME: ins(%{{.*}} : memref<64x16xf32, 3 : i32>) outs(%{{.*}} : memref<64x1xf32, 3 : i32>)
func.func @generic() {
  %x = memref.alloc() : memref<64x1x16xf32, 3 : i32>
  %y = memref.alloc() : memref<64x1x1xf32, 3 : i32>
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, 0)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : memref<64x1x16xf32, 3 : i32>) outs(%y : memref<64x1x1xf32, 3 : i32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  return
}

// A column that is seen as a vector is copied as a column.
// CHECK-LABEL: func.func @column
// CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<128x2x1x1xf32, 3 : i32>
// CHECK: memref.expand_shape %{{.*}} {{\[}}[0, 1]] output_shape [2, 1]
// CHECK: memref.copy %{{.*}}, %{{.*}} : memref<2x1xf32, {{.*}}3 : i32> to memref<2x1xf32, {{.*}}4 : i32>
func.func @column(%h: memref<130xf32, 4 : i32>) {
  %a = memref.alloc() : memref<130x1xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 1>} : (memref<130x1xf32, 3 : i32>) -> ()
  %c = memref.collapse_shape %a [[0, 1]] : memref<130x1xf32, 3 : i32> into memref<130xf32, 3 : i32>
  memref.copy %c, %h : memref<130xf32, 3 : i32> to memref<130xf32, 4 : i32>
  return
}

// One row for all partitions of a tile in a batch: it is broadcast from where it was copied from.
// CHECK-LABEL: func.func @row
// CHECK-NOT: memref.copy
// CHECK: linalg.broadcast ins(%[[R:.*]] : memref<64xf32, strided<[1]>, 4 : i32>) outs(%[[W:.*]] : memref<128x64xf32, 3 : i32>) dimensions = [0]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[W]] : memref<128x64xf32, 3 : i32>, memref<128x64xf32, 3 : i32>)
func.func @row(%h: memref<1x1x64xf32, 4 : i32>) {
  %a = memref.alloc() : memref<1x128x64xf32, 3 : i32>
  %b = memref.alloc() : memref<1x1x64xf32, 3 : i32>
  memref.copy %h, %b : memref<1x1x64xf32, 4 : i32> to memref<1x1x64xf32, 3 : i32>
  %c = memref.alloc() : memref<1x128x64xf32, 3 : i32>
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, 0, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a, %b : memref<1x128x64xf32, 3 : i32>, memref<1x1x64xf32, 3 : i32>) outs(%c : memref<1x128x64xf32, 3 : i32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  }
  return
}
