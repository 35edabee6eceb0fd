// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d0, 0)>
#row = affine_map<(d0, d1) -> (0, d1)>

// Rows: the index is one per partition.
// CHECK-LABEL: func.func @rows
// CHECK:       "nisa.tensor_scalar_arith"(%[[I:[a-z0-9_]+]], {{.*}}engine = "gpsimd"{{.*}}op0 = "max"
// CHECK:       "nisa.tensor_scalar_arith"(%[[J:[a-z0-9_]+]], %[[I]], {{.*}}op0 = "min"
// CHECK:       "nisa.dma_copy_indirect"(%{{.*}}, %arg0, %[[J]]) {{.*}}dst_tile = array<i64: 64, 40>{{.*}}src_index_dim = 0 : i64{{.*}}src_index_tile = array<i64: 64, 1>, src_indirect_max_index = 1000 : i64
func.func @rows(%table: memref<1000x40xf32, 4 : i32>) {
  %idx = memref.alloc() : memref<64x1xi32, 3 : i32>
  %o = memref.alloc() : memref<64x40xf32, 3 : i32>
  linalg.generic {indexing_maps = [#col, #id], iterator_types = ["parallel", "parallel"]} ins(%idx : memref<64x1xi32, 3 : i32>) outs(%o : memref<64x40xf32, 3 : i32>) {
  ^bb0(%x: i32, %z: f32):
    %c0 = arith.constant 0 : index
    %c999 = arith.constant 999 : index
    %at = arith.index_cast %x : i32 to index
    %lo = arith.maxsi %at, %c0 : index
    %hi = arith.minsi %lo, %c999 : index
    %j = linalg.index 1 : index
    %v = memref.load %table[%hi, %j] : memref<1000x40xf32, 4 : i32>
    linalg.yield %v : f32
  }
  memref.dealloc %idx : memref<64x1xi32, 3 : i32>
  memref.dealloc %o : memref<64x40xf32, 3 : i32>
  return
}

// Columns: the index depends on a free loop, which becomes a loop around.
// CHECK-LABEL: func.func @columns
// CHECK:       scf.for %[[J:[a-z0-9_]+]] = %c0 to %c40 step %c1
// CHECK:         "nisa.dma_copy_indirect"({{.*}}dst_tile = array<i64: 64, 1>{{.*}}src_index_dim = 1 : i64
func.func @columns(%table: memref<64x100xf32, 4 : i32>) {
  %idx = memref.alloc() : memref<1x40xi32, 3 : i32>
  %o = memref.alloc() : memref<64x40xf32, 3 : i32>
  linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%idx : memref<1x40xi32, 3 : i32>) outs(%o : memref<64x40xf32, 3 : i32>) {
  ^bb0(%x: i32, %z: f32):
    %at = arith.index_cast %x : i32 to index
    %i = linalg.index 0 : index
    %v = memref.load %table[%i, %at] : memref<64x100xf32, 4 : i32>
    linalg.yield %v : f32
  }
  memref.dealloc %idx : memref<1x40xi32, 3 : i32>
  memref.dealloc %o : memref<64x40xf32, 3 : i32>
  return
}
