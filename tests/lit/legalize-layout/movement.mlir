// RUN: nkx opt --legalize-layout %s | FileCheck %s

// A transpose from HBM: block by block, rows and columns changed.
// CHECK-LABEL: func.func @from_hbm
// CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<128x2x1x128xf32, 3 : i32>
// CHECK: scf.for %[[K:.*]] = %c0{{.*}} to %c2
// CHECK: memref.subview %arg0[0, %{{.*}}] [128, 128]
// CHECK: memref.subview %[[A]][0, %[[K]], 0, 0] [128, 1, 1, 128]
// CHECK: linalg.transpose {{.*}} permutation = [1, 0]
func.func @from_hbm(%h: memref<128x256xf32, 4 : i32>) {
  %a = memref.alloc() : memref<256x128xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 128>} : (memref<256x128xf32, 3 : i32>) -> ()
  linalg.transpose ins(%h : memref<128x256xf32, 4 : i32>) outs(%a : memref<256x128xf32, 3 : i32>) permutation = [1, 0]
  return
}

// Between two buffers whose tiles differ: pieces fit into tiles of both.
// CHECK-LABEL: func.func @between
// CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<128x1x2x512xf32, 3 : i32>
// CHECK: %[[B:.*]] = memref.alloc() {{.*}} : memref<128x8x1x128xf32, 3 : i32>
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c8
// CHECK: %[[Q:.*]] = arith.divui %[[I]], %c4
// CHECK: %[[R:.*]] = arith.remui %[[I]], %c4
// CHECK: memref.subview %[[A]][0, 0, %[[Q]], %{{.*}}] [128, 1, 1, 128]
// CHECK: memref.subview %[[B]][0, %[[I]], 0, 0] [128, 1, 1, 128]
// CHECK: linalg.transpose
func.func @between() {
  %a = memref.alloc() : memref<128x1024xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 512>} : (memref<128x1024xf32, 3 : i32>) -> ()
  %b = memref.alloc() : memref<1024x128xf32, 3 : i32>
  "nkipy.layout"(%b) {mem_space = 3 : i32, tile_size = array<i64: 128, 128>} : (memref<1024x128xf32, 3 : i32>) -> ()
  linalg.transpose ins(%a : memref<128x1024xf32, 3 : i32>) outs(%b : memref<1024x128xf32, 3 : i32>) permutation = [1, 0]
  return
}

// A transpose of a tile that moves only the dimension of extent 1 is a copy.
// CHECK-LABEL: func.func @unit
// CHECK-NOT: linalg.transpose
// CHECK: %[[H:.*]] = memref.subview %arg0[0, 0, 0] [1, 64, 32] {{.*}} to memref<64x32xf32
// CHECK: memref.copy %[[H]], %{{.*}} : memref<64x32xf32, {{.*}}4 : i32> to memref<64x32xf32, 3 : i32>
func.func @unit(%h: memref<1x64x32xf32, 4 : i32>) {
  %a = memref.alloc() : memref<64x1x32xf32, 3 : i32>
  linalg.transpose ins(%h : memref<1x64x32xf32, 4 : i32>) outs(%a : memref<64x1x32xf32, 3 : i32>) permutation = [1, 0, 2]
  return
}

// A fill of a whole buffer is one instruction, of a part only of the part.
// CHECK-LABEL: func.func @fill
// CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<128x2x3x96xf32, 3 : i32>
// CHECK: %[[C:.*]] = memref.collapse_shape %[[A]] {{\[}}[0], [1, 2, 3]] : {{.*}} into memref<128x576xf32, 3 : i32>
// CHECK-NEXT: linalg.fill ins(%{{.*}}) outs(%[[C]]
// CHECK: memref.subview %[[A]][0, 1, 0, 0] [2, 1, 1, 96]
// CHECK: linalg.fill
func.func @fill() {
  %z = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<130x200xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 96>} : (memref<130x200xf32, 3 : i32>) -> ()
  linalg.fill ins(%z : f32) outs(%a : memref<130x200xf32, 3 : i32>)
  %s = memref.subview %a[128, 0] [2, 96] [1, 1] : memref<130x200xf32, 3 : i32> to memref<2x96xf32, strided<[200, 1], offset: 25600>, 3 : i32>
  linalg.fill ins(%z : f32) outs(%s : memref<2x96xf32, strided<[200, 1], offset: 25600>, 3 : i32>)
  return
}

// A fill of HBM: a tile is filled and copied everywhere, the rest of the last rows, too.
// CHECK-LABEL: func.func @fill_hbm
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<128x40xf32, 3 : i32>
// CHECK: linalg.fill ins(%{{.*}}) outs(%[[T]]
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c2
// CHECK: memref.copy %[[T]]
// CHECK: memref.subview %[[T]][0, 0] [44, 40]
// CHECK: memref.subview %arg0[256, 0] [44, 40]
// CHECK: memref.copy
func.func @fill_hbm(%h: memref<300x40xf32, 4 : i32>) {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%h : memref<300x40xf32, 4 : i32>)
  return
}

// A row broadcast over the partitions of several blocks.
// CHECK-LABEL: func.func @broadcast
// CHECK: scf.for
// CHECK: linalg.broadcast ins(%arg0 : memref<64xf32, 4 : i32>) outs(%{{.*}} : memref<128x64xf32, {{.*}}>) dimensions = [0]
func.func @broadcast(%h: memref<64xf32, 4 : i32>) {
  %a = memref.alloc() : memref<256x64xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 64>} : (memref<256x64xf32, 3 : i32>) -> ()
  linalg.broadcast ins(%h : memref<64xf32, 4 : i32>) outs(%a : memref<256x64xf32, 3 : i32>) dimensions = [0]
  return
}
