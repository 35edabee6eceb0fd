// RUN: nkx opt --legalize-layout %s | FileCheck %s

// Sliced at a place where no engine can begin: the buffer is in HBM, who computes on it gets a tile.
// CHECK-LABEL: func.func @sliced
// CHECK: %[[A:.*]] = memref.alloc() : memref<256x64xf32, 1 : i32>
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<100x64xf32, 3 : i32>
// CHECK: memref.copy %{{.*}}, %[[T]] : memref<100x64xf32, strided<[64, 1], offset: 192>, 1 : i32> to memref<100x64xf32, 3 : i32>
// CHECK: linalg.exp ins(%[[T]]
func.func @sliced(%o: memref<100x64xf32, 3 : i32>) {
  %a = memref.alloc() : memref<256x64xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 128, 64>} : (memref<256x64xf32, 3 : i32>) -> ()
  %s = memref.subview %a[3, 0] [100, 64] [1, 1] : memref<256x64xf32, 3 : i32> to memref<100x64xf32, strided<[64, 1], offset: 192>, 3 : i32>
  linalg.exp ins(%s : memref<100x64xf32, strided<[64, 1], offset: 192>, 3 : i32>) outs(%o : memref<100x64xf32, 3 : i32>)
  return
}

// Reshaped across partitions; what was computed into it is copied there.
// CHECK-LABEL: func.func @reshaped
// CHECK: %[[A:.*]] = memref.alloc() : memref<64x32xf32, 1 : i32>
// CHECK: linalg.exp ins(%arg0 : {{.*}}) outs(%[[T:.*]] : memref<64x32xf32, 3 : i32>)
// CHECK-NEXT: memref.copy %[[T]], %[[A]]
// CHECK: memref.collapse_shape %[[A]]
func.func @reshaped(%x: memref<64x32xf32, 3 : i32>, %h: memref<2048xf32, 4 : i32>) {
  %a = memref.alloc() : memref<64x32xf32, 3 : i32>
  linalg.exp ins(%x : memref<64x32xf32, 3 : i32>) outs(%a : memref<64x32xf32, 3 : i32>)
  %c = memref.collapse_shape %a [[0, 1]] : memref<64x32xf32, 3 : i32> into memref<2048xf32, 3 : i32>
  memref.copy %c, %h : memref<2048xf32, 3 : i32> to memref<2048xf32, 4 : i32>
  return
}

// The table of a gather.
// CHECK-LABEL: func.func @table
// CHECK: %[[T:.*]] = memref.alloc() : memref<64x32xf32, 1 : i32>
// CHECK: memref.load %[[T]]
func.func @table(%i: memref<10x1xi32, 3 : i32>, %o: memref<10x32xf32, 3 : i32>) {
  %t = memref.alloc() : memref<64x32xf32, 3 : i32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%i : memref<10x1xi32, 3 : i32>) outs(%o : memref<10x32xf32, 3 : i32>) {
  ^bb0(%a: i32, %b: f32):
    %x = arith.index_cast %a : i32 to index
    %y = linalg.index 1 : index
    %v = memref.load %t[%x, %y] : memref<64x32xf32, 3 : i32>
    linalg.yield %v : f32
  }
  return
}

// An operand in HBM that an engine reads, and one that it writes.
// CHECK-LABEL: func.func @operands
// CHECK: memref.copy %arg0, %[[X:.*]] : memref<64x32xf32, 4 : i32> to memref<64x32xf32, 3 : i32>
// CHECK: linalg.exp ins(%[[X]] : {{.*}}) outs(%[[Y:.*]] : memref<64x32xf32, 3 : i32>)
// CHECK-NEXT: memref.copy %[[Y]], %arg1
func.func @operands(%x: memref<64x32xf32, 4 : i32>, %y: memref<64x32xf32, 4 : i32>) {
  linalg.exp ins(%x : memref<64x32xf32, 4 : i32>) outs(%y : memref<64x32xf32, 4 : i32>)
  return
}
