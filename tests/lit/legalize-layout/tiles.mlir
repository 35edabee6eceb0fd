// RUN: nkx opt --legalize-layout %s | FileCheck %s
// RUN: nkx opt --remarks --legalize-layout %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: memref.alloc: lies as [128,2,4,128]: 128 partitions, blocks 2x4

// Whole tiles: a slice is a block, the copy of all of it a nest of loops; the layout goes.
// CHECK-LABEL: func.func @tiles
// CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<128x2x4x128xf32, 3 : i32>
// CHECK-NOT: nkipy.layout
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c2
// CHECK: scf.for %[[J:.*]] = %c0{{.*}} to %c4
// CHECK: %[[X:.*]] = arith.muli %[[I]], %c128
// CHECK: %[[Y:.*]] = arith.muli %[[J]], %c128
// CHECK: %[[H:.*]] = memref.subview %arg0[%[[X]], %[[Y]]] [128, 128]
// CHECK: %[[S:.*]] = memref.subview %[[A]][0, %[[I]], %[[J]], 0] [128, 1, 1, 128]
// CHECK: %[[C:.*]] = memref.collapse_shape %[[S]] {{\[}}[0, 1, 2], [3]] : {{.*}} into memref<128x128xf32, strided<[1024, 1], offset: ?>, 3 : i32>
// CHECK: memref.copy %[[H]], %[[C]]
// CHECK: scf.for %[[K:.*]] =
// CHECK-NOT: arith.divui
// CHECK: memref.subview %[[A]][0, %[[K]], 3, 0] [128, 1, 1, 128]
// CHECK: linalg.exp
func.func @tiles(%h: memref<256x512xf32, strided<[?, ?], offset: ?>, 4 : i32>, %o: memref<128x128xf32, 3 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %a = memref.alloc() : memref<256x512xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 128>} : (memref<256x512xf32, 3 : i32>) -> ()
  memref.copy %h, %a : memref<256x512xf32, strided<[?, ?], offset: ?>, 4 : i32> to memref<256x512xf32, 3 : i32>
  scf.for %i = %c0 to %c2 step %c1 {
    %x = arith.muli %i, %c128 : index
    %s = memref.subview %a[%x, 0] [128, 512] [1, 1] : memref<256x512xf32, 3 : i32> to memref<128x512xf32, strided<[512, 1], offset: ?>, 3 : i32>
    %t = memref.subview %s[0, 384] [128, 128] [1, 1] : memref<128x512xf32, strided<[512, 1], offset: ?>, 3 : i32> to memref<128x128xf32, strided<[512, 1], offset: ?>, 3 : i32>
    linalg.exp ins(%t : memref<128x128xf32, strided<[512, 1], offset: ?>, 3 : i32>) outs(%o : memref<128x128xf32, 3 : i32>)
  }
  return
}

// No tile divides the shape: the last blocks are used in part, the copy is a main loop and what is left.
// CHECK-LABEL: func.func @tails
// CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<128x2x2x96xbf16, 3 : i32>
// CHECK: memref.subview %[[A]][0, 0, 0, 0] [128, 1, 1, 96]
// CHECK: memref.copy
// CHECK: memref.subview %arg0[0, 96] [128, 4]
// CHECK: memref.subview %[[A]][0, 0, 1, 0] [128, 1, 1, 4]
// CHECK: memref.copy
// CHECK: memref.subview %arg0[128, 0] [2, 96]
// CHECK: memref.subview %[[A]][0, 1, 0, 0] [2, 1, 1, 96]
// CHECK: memref.copy
// CHECK: memref.subview %arg0[128, 96] [2, 4]
// CHECK: memref.subview %[[A]][0, 1, 1, 0] [2, 1, 1, 4]
// CHECK: memref.copy
// CHECK-NOT: memref.copy
func.func @tails(%h: memref<130x100xbf16, 4 : i32>) {
  %a = memref.alloc() : memref<130x100xbf16, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 96>} : (memref<130x100xbf16, 3 : i32>) -> ()
  memref.copy %h, %a : memref<130x100xbf16, 4 : i32> to memref<130x100xbf16, 3 : i32>
  return
}

// Without a layout the tile is what computations take.
// CHECK-LABEL: func.func @inferred
// CHECK: memref.alloc() {{.*}} : memref<64x4x1x128xf32, 3 : i32>
func.func @inferred(%o: memref<64x128xf32, 3 : i32>) {
  %a = memref.alloc() : memref<200x128xf32, 3 : i32>
  %s = memref.subview %a[64, 0] [64, 128] [1, 1] : memref<200x128xf32, 3 : i32> to memref<64x128xf32, strided<[128, 1], offset: 8192>, 3 : i32>
  linalg.exp ins(%s : memref<64x128xf32, strided<[128, 1], offset: 8192>, 3 : i32>) outs(%o : memref<64x128xf32, 3 : i32>)
  return
}

// One tile: nothing to do.
// CHECK-LABEL: func.func @one
// CHECK: memref.alloc() : memref<128x512xf32, 3 : i32>
// CHECK-NEXT: memref.copy %arg0
func.func @one(%h: memref<128x512xf32, 4 : i32>) {
  %a = memref.alloc() : memref<128x512xf32, 3 : i32>
  memref.copy %h, %a : memref<128x512xf32, 4 : i32> to memref<128x512xf32, 3 : i32>
  return
}

// A reader with smaller tiles: it finds its part in a block.
// CHECK-LABEL: func.func @smaller
// CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<128x2x1x128xf32, 3 : i32>
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[B:.*]] = arith.divui %[[I]], %c2
// CHECK: %[[R:.*]] = arith.remui %[[I]], %c2
// CHECK: %[[P:.*]] = arith.muli %[[R]], %c64
// CHECK: memref.subview %[[A]][%[[P]], %[[B]], 0, 0] [64, 1, 1, 128]
func.func @smaller(%o: memref<64x128xf32, 3 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %a = memref.alloc() : memref<256x128xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 128>} : (memref<256x128xf32, 3 : i32>) -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    %x = arith.muli %i, %c64 : index
    %s = memref.subview %a[%x, 0] [64, 128] [1, 1] : memref<256x128xf32, 3 : i32> to memref<64x128xf32, strided<[128, 1], offset: ?>, 3 : i32>
    linalg.exp ins(%s : memref<64x128xf32, strided<[128, 1], offset: ?>, 3 : i32>) outs(%o : memref<64x128xf32, 3 : i32>)
  }
  return
}

// The same in two loops, of which the inner one stays in a block: nothing is divided.
// CHECK-LABEL: func.func @nested
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c2
// CHECK: scf.for %[[J:.*]] = %c0{{.*}} to %c2
// CHECK-NOT: arith.divui
// CHECK: memref.subview %{{.*}}[%{{.*}}, %[[I]], 0, 0] [64, 1, 1, 128]
// CHECK: return
func.func @nested(%o: memref<64x128xf32, 3 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %a = memref.alloc() : memref<256x128xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 128>} : (memref<256x128xf32, 3 : i32>) -> ()
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %c2 step %c1 {
      %x = arith.muli %i, %c128 : index
      %y = arith.muli %j, %c64 : index
      %z = arith.addi %x, %y : index
      %s = memref.subview %a[%z, 0] [64, 128] [1, 1] : memref<256x128xf32, 3 : i32> to memref<64x128xf32, strided<[128, 1], offset: ?>, 3 : i32>
      linalg.exp ins(%s : memref<64x128xf32, strided<[128, 1], offset: ?>, 3 : i32>) outs(%o : memref<64x128xf32, 3 : i32>)
    }
  }
  return
}

// A reader with larger tiles is cut.
// CHECK-LABEL: func.func @larger
// CHECK: %[[A:.*]] = memref.alloc() {{.*}} : memref<64x2x1x128xf32, 3 : i32>
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c2
// CHECK: memref.subview %[[A]][0, %[[I]], 0, 0] [64, 1, 1, 128]
// CHECK: memref.subview %arg0[%{{.*}}, 0] [64, 128]
// CHECK: linalg.exp
func.func @larger(%o: memref<128x128xf32, 3 : i32>) {
  %a = memref.alloc() : memref<128x128xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 64, 128>} : (memref<128x128xf32, 3 : i32>) -> ()
  linalg.exp ins(%a : memref<128x128xf32, 3 : i32>) outs(%o : memref<128x128xf32, 3 : i32>)
  return
}

// Operands with other tiles, or in other memory, are mixed: everything keeps its memory.
// CHECK-LABEL: func.func @mixed
// CHECK: memref.alloc() {{.*}} : memref<128x2x1x64xf32, 3 : i32>
// CHECK: memref.alloc() {{.*}} : memref<64x4x1x64xf32, 3 : i32>
// CHECK-NOT: memref.alloc() {{.*}} : memref<{{[x0-9]*}}f32>
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c4
// CHECK: memref.subview %{{.*}} [64, 1, 1, 64]
// CHECK: memref.subview %{{.*}} [64, 1, 1, 64]
// CHECK: linalg.add
func.func @mixed(%o: memref<256x64xf32, 3 : i32>) {
  %a = memref.alloc() : memref<256x64xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 64>} : (memref<256x64xf32, 3 : i32>) -> ()
  %b = memref.alloc() : memref<256x64xf32, 3 : i32>
  "nkipy.layout"(%b) {mem_space = 3 : i32, tile_size = array<i64: 64, 64>} : (memref<256x64xf32, 3 : i32>) -> ()
  linalg.add ins(%a, %b : memref<256x64xf32, 3 : i32>, memref<256x64xf32, 3 : i32>) outs(%o : memref<256x64xf32, 3 : i32>)
  return
}
