// RUN: nkx opt --legalize-layout %s | FileCheck %s

// An operand that lies in the partitions along another dimension than the result is copied to the result's partitions.
// CHECK-LABEL: func.func @other_dimension
// CHECK: memref.alloc() {{.*}} : memref<32x64x1x1x1xf32, 3 : i32>
// CHECK: scf.for
// CHECK: memref.copy
// CHECK: scf.for
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}} : memref<32x1xf32
func.func @other_dimension() {
  %a = memref.alloc() : memref<64x32x1xf32, 3 : i32>
  %c = memref.alloc() : memref<32x64x1xf32, 3 : i32>
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, i, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : memref<64x32x1xf32, 3 : i32>) outs(%c : memref<32x64x1xf32, 3 : i32>) {
  ^bb0(%x: f32, %z: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  }
  return
}

// Rows that stand one by one in a single partition would cut the result where no engine can begin.
// CHECK-LABEL: func.func @rows
// CHECK-DAG: memref.alloc() {{.*}} : memref<1x31x1x3xf32, 3 : i32>
// CHECK: scf.for
// CHECK: memref.copy
// CHECK: }
// CHECK: linalg.exp ins(%{{.*}} : memref<31x3xf32, 3 : i32>) outs(%{{.*}} : memref<31x3xf32, 3 : i32>)
func.func @rows() {
  %a = memref.alloc() : memref<31x3xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 1, 3>} : (memref<31x3xf32, 3 : i32>) -> ()
  %c = memref.alloc() : memref<31x3xf32, 3 : i32>
  "nkipy.layout"(%c) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 31, 3>} : (memref<31x3xf32, 3 : i32>) -> ()
  linalg.exp ins(%a : memref<31x3xf32, 3 : i32>) outs(%c : memref<31x3xf32, 3 : i32>)
  return
}

// A single element has no dimension to split: the row it becomes has stride 1.
// CHECK-LABEL: func.func @element
// CHECK: memref.collapse_shape %{{.*}} [] : memref<1x1x1x1x1x1xf32, {{.*}}> into memref<f32, strided<[], offset: ?>, 3 : i32>
// CHECK: memref.expand_shape %{{.*}} [] output_shape [1] : memref<f32, {{.*}}> into memref<1xf32, strided<[1], offset: ?>, 3 : i32>
// CHECK: linalg.broadcast
func.func @element(%i: index) {
  %l = memref.alloc() : memref<1x2x1x1xf32, 3 : i32>
  "nkipy.layout"(%l) {mem_space = 3 : i32, tile_size = array<i64: 1, 1, 1, 1>} : (memref<1x2x1x1xf32, 3 : i32>) -> ()
  %a = memref.collapse_shape %l [[0], [1], [2, 3]] : memref<1x2x1x1xf32, 3 : i32> into memref<1x2x1xf32, 3 : i32>
  %b = memref.alloc() : memref<7x1x2x1xf32, 3 : i32>
  "nkipy.layout"(%b) {mem_space = 3 : i32, tile_size = array<i64: 7, 1, 1, 1>} : (memref<7x1x2x1xf32, 3 : i32>) -> ()
  %s = memref.subview %a[0, %i, 0] [1, 1, 1] [1, 1, 1] : memref<1x2x1xf32, 3 : i32> to memref<1x1x1xf32, strided<[2, 1, 1], offset: ?>, 3 : i32>
  %d = memref.subview %b[0, 0, %i, 0] [7, 1, 1, 1] [1, 1, 1, 1] : memref<7x1x2x1xf32, 3 : i32> to memref<7x1x1x1xf32, strided<[2, 2, 1, 1], offset: ?>, 3 : i32>
  linalg.broadcast ins(%s : memref<1x1x1xf32, strided<[2, 1, 1], offset: ?>, 3 : i32>) outs(%d : memref<7x1x1x1xf32, strided<[2, 2, 1, 1], offset: ?>, 3 : i32>) dimensions = [0]
  return
}

// Positions count from where the part begins; a loop that goes leaves its one value.
// CHECK-LABEL: func.func @positions
// CHECK: scf.for %[[I:.*]] =
// CHECK: scf.for %[[J:.*]] =
// CHECK: %[[FROM:.*]] = arith.muli %[[J]], %c128
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]}
// CHECK: %[[K:.*]] = linalg.index 0 : index
// CHECK: %[[P:.*]] = arith.addi %[[K]], %{{.*}} : index
// CHECK: arith.addi %[[I]], %[[P]]
func.func @positions() {
  %a = memref.alloc() : memref<3x256x8xi32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, tile_size = array<i64: 1, 128, 8>} : (memref<3x256x8xi32, 3 : i32>) -> ()
  %b = memref.alloc() : memref<3x256x8xi32, 3 : i32>
  "nkipy.layout"(%b) {mem_space = 3 : i32, tile_size = array<i64: 1, 128, 8>} : (memref<3x256x8xi32, 3 : i32>) -> ()
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : memref<3x256x8xi32, 3 : i32>) outs(%b : memref<3x256x8xi32, 3 : i32>) {
  ^bb0(%x: i32, %y: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %s = arith.addi %i, %j : index
    %t = arith.index_cast %s : index to i32
    %r = arith.addi %x, %t : i32
    linalg.yield %r : i32
  }
  return
}

// The tensor engine cannot begin at row 25 either: the rows that it multiplies are copied to partition 0.
// CHECK-LABEL: func.func @factor
// CHECK: %[[S:.*]] = memref.subview %{{.*}}[25, 0] [4, 31]
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<4x31xf32, 3 : i32>
// CHECK: memref.copy %[[S]], %[[T]]
// CHECK: linalg.matmul {{.*}} ins(%[[T]], %{{.*}} : memref<4x31xf32, 3 : i32>, memref<4x16xf32, 3 : i32>)
func.func @factor() {
  %a = memref.alloc() : memref<33x31xf32, 3 : i32>
  %b = memref.alloc() : memref<4x16xf32, 3 : i32>
  %c = memref.alloc() : memref<31x16xf32, 2 : i32>
  linalg.exp ins(%a : memref<33x31xf32, 3 : i32>) outs(%a : memref<33x31xf32, 3 : i32>)
  %s = memref.subview %a[25, 0] [4, 31] [1, 1] : memref<33x31xf32, 3 : i32> to memref<4x31xf32, strided<[31, 1], offset: 775>, 3 : i32>
  linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] ins(%s, %b : memref<4x31xf32, strided<[31, 1], offset: 775>, 3 : i32>, memref<4x16xf32, 3 : i32>) outs(%c : memref<31x16xf32, 2 : i32>)
  return
}

// Rows that stand one by one in partition 0 come from PSUM all at once; DMA, which does not reach PSUM, divides them.
// CHECK-LABEL: func.func @from_psum
// CHECK: memref.alloc() {{.*}} : memref<1x2x1x96xf32, 3 : i32>
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<2x96xf32, 3 : i32>
// CHECK: memref.copy %{{.*}}, %[[T]] : memref<2x96xf32, 2 : i32> to memref<2x96xf32, 3 : i32>
// CHECK: scf.for %[[I:.*]] =
// CHECK: memref.subview %[[T]][%[[I]], 0] [1, 96]
// CHECK: memref.copy
func.func @from_psum() {
  %p = memref.alloc() : memref<2x96xf32, 2 : i32>
  %a = memref.alloc() : memref<2x96xf32, 3 : i32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 1, 96>} : (memref<2x96xf32, 3 : i32>) -> ()
  memref.copy %p, %a : memref<2x96xf32, 2 : i32> to memref<2x96xf32, 3 : i32>
  return
}

// Of rows that begin where no engine starts, all that is in PSUM is copied; DMA takes the rows from there.
// CHECK-LABEL: func.func @part_of_psum
// CHECK: %[[P:.*]] = memref.alloc() : memref<64x96xf32, 2 : i32>
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<64x96xf32, 3 : i32>
// CHECK: memref.copy %[[P]], %[[T]]
// CHECK: %[[S:.*]] = memref.subview %[[T]][1, 0] [2, 96]
// CHECK: memref.copy %[[S]], %{{.*}}
func.func @part_of_psum() {
  %p = memref.alloc() : memref<64x96xf32, 2 : i32>
  %a = memref.alloc() : memref<2x96xf32, 3 : i32>
  %s = memref.subview %p[1, 0] [2, 96] [1, 1] : memref<64x96xf32, 2 : i32> to memref<2x96xf32, strided<[96, 1], offset: 96>, 2 : i32>
  memref.copy %s, %a : memref<2x96xf32, strided<[96, 1], offset: 96>, 2 : i32> to memref<2x96xf32, 3 : i32>
  return
}
