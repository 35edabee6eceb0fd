// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s

// A block of a buffer in physical form: its dimensions are followed, constants stay in the map.
// CHECK-DAG: #[[BLOCK:[a-z0-9]+]] = affine_map<(d0, d1)[s0] -> (d0, s0, 1, d1)>
// CHECK-DAG: #[[ID:[a-z0-9]+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[WHOLE:[a-z0-9]+]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[SPLIT:[a-z0-9]+]] = affine_map<(d0, d1, d2) -> (d0, d1 * 64 + d2)>
// CHECK-DAG: #[[NESTED:[a-z0-9]+]] = affine_map<(d0, d1)[s0, s1, s2] -> (s0, d0 + s1, d1 + s2)>
// CHECK-DAG: #[[ALIGNED:[a-z0-9]+]] = affine_map<(d0, d1)[s0, s1] -> (d0, s0, d1 + s1)>
// CHECK-DAG: #[[STRIDED:[a-z0-9]+]] = affine_map<(d0, d1) -> (d0 + 2, d1 * 2 + 1)>

// CHECK-LABEL: func.func @block
// CHECK:       "nisa.dma_copy"(%{{.*}}, %arg1, %{{.*}}) {dst_ap = #[[BLOCK]], dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>
// CHECK-SAME:  src_ap = #[[ID]], src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>
func.func @block(%a: memref<128x128xf32, 4 : i32>, %i: index) {
  %s = memref.alloc() : memref<128x2x2x128xf32, 3 : i32>
  %v = memref.subview %s[0, %i, 1, 0] [128, 1, 1, 128] [1, 1, 1, 1] : memref<128x2x2x128xf32, 3 : i32> to memref<128x1x1x128xf32, strided<[512, 256, 128, 1], offset: ?>, 3 : i32>
  %c = memref.collapse_shape %v [[0, 1, 2], [3]] : memref<128x1x1x128xf32, strided<[512, 256, 128, 1], offset: ?>, 3 : i32> into memref<128x128xf32, strided<[512, 1], offset: ?>, 3 : i32>
  memref.copy %a, %c : memref<128x128xf32, 4 : i32> to memref<128x128xf32, strided<[512, 1], offset: ?>, 3 : i32>
  memref.dealloc %s : memref<128x2x2x128xf32, 3 : i32>
  return
}

// A collapse of two real dimensions splits the loop, on both sides.
// CHECK-LABEL: func.func @collapse_two
// CHECK:       "nisa.dma_copy"({{.*}}dst_ap = #[[WHOLE]], dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 3, 64>
// CHECK-SAME:  src_ap = #[[SPLIT]], src_par_dims = 1 : i32, src_tile = array<i64: 128, 3, 64>
func.func @collapse_two(%a: memref<128x192xf32, 4 : i32>) {
  %s = memref.alloc() : memref<128x3x64xf32, 3 : i32>
  %c = memref.collapse_shape %s [[0], [1, 2]] : memref<128x3x64xf32, 3 : i32> into memref<128x192xf32, 3 : i32>
  memref.copy %a, %c : memref<128x192xf32, 4 : i32> to memref<128x192xf32, 3 : i32>
  memref.dealloc %s : memref<128x3x64xf32, 3 : i32>
  return
}

// Subview of a rank-reducing subview: offsets add up by dimension.
// CHECK-LABEL: func.func @nested
// CHECK:       "nisa.dma_copy"(%{{.*}}, %arg0, %arg1, %arg2, %arg3) {{.*}}src_ap = #[[NESTED]]
func.func @nested(%a: memref<2x256x256xf32, 4 : i32>, %b: index, %m: index, %n: index) {
  %s = memref.alloc() : memref<128x128xf32, 3 : i32>
  %u = memref.subview %a[%b, 0, 0] [1, 256, 256] [1, 1, 1] : memref<2x256x256xf32, 4 : i32> to memref<256x256xf32, strided<[256, 1], offset: ?>, 4 : i32>
  %v = memref.subview %u[%m, %n] [128, 128] [1, 1] : memref<256x256xf32, strided<[256, 1], offset: ?>, 4 : i32> to memref<128x128xf32, strided<[256, 1], offset: ?>, 4 : i32>
  memref.copy %v, %s : memref<128x128xf32, strided<[256, 1], offset: ?>, 4 : i32> to memref<128x128xf32, 3 : i32>
  memref.dealloc %s : memref<128x128xf32, 3 : i32>
  return
}

// A slice of a collapsed dimension: an offset that is a multiple of 64 but not of 128 is divided with a remainder.
// CHECK-LABEL: func.func @slice_of_collapsed
// CHECK:       %[[AT:[a-z0-9_]+]] = arith.muli %{{.*}}, %c64
// CHECK-DAG:   %[[REST:[a-z0-9_]+]] = arith.remui %[[AT]], %c128
// CHECK-DAG:   %[[ROW:[a-z0-9_]+]] = arith.divui %[[AT]], %c128
// CHECK:       "nisa.dma_copy"(%{{.*}}, %arg0, %[[ROW]], %[[REST]]) {{.*}}src_ap = #[[ALIGNED]]
func.func @slice_of_collapsed(%a: memref<32x4x128xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %f = memref.collapse_shape %a [[0], [1, 2]] : memref<32x4x128xf32, 4 : i32> into memref<32x512xf32, 4 : i32>
  scf.for %i = %c0 to %c8 step %c1 {
    %at = arith.muli %i, %c64 : index
    %v = memref.subview %f[0, %at] [32, 64] [1, 1] : memref<32x512xf32, 4 : i32> to memref<32x64xf32, strided<[512, 1], offset: ?>, 4 : i32>
    %s = memref.alloc() : memref<32x64xf32, 3 : i32>
    memref.copy %v, %s : memref<32x64xf32, strided<[512, 1], offset: ?>, 4 : i32> to memref<32x64xf32, 3 : i32>
    memref.dealloc %s : memref<32x64xf32, 3 : i32>
  }
  return
}

// CHECK-LABEL: func.func @strided
// CHECK:       "nisa.dma_copy"({{.*}}src_ap = #[[STRIDED]]
func.func @strided(%a: memref<64x64xf32, 4 : i32>) {
  %s = memref.alloc() : memref<16x31xf32, 3 : i32>
  %v = memref.subview %a[2, 1] [16, 31] [1, 2] : memref<64x64xf32, 4 : i32> to memref<16x31xf32, strided<[64, 2], offset: 129>, 4 : i32>
  memref.copy %v, %s : memref<16x31xf32, strided<[64, 2], offset: 129>, 4 : i32> to memref<16x31xf32, 3 : i32>
  memref.dealloc %s : memref<16x31xf32, 3 : i32>
  return
}

// No split of the loops says what 5x6 as 6x5 is: in HBM the reshape stays, as a view.
// CHECK-LABEL: func.func @reshape
// CHECK:       %[[F:[a-z0-9_]+]] = memref.collapse_shape %arg0 {{.*}} #nisa.mem<"shared_hbm">
// CHECK:       "nisa.dma_copy"(%{{.*}}, %[[F]])
func.func @reshape(%a: memref<5x6xf32, 4 : i32>) {
  %s = memref.alloc() : memref<6x5xf32, 3 : i32>
  %c = memref.collapse_shape %a [[0, 1]] : memref<5x6xf32, 4 : i32> into memref<30xf32, 4 : i32>
  %e = memref.expand_shape %c [[0, 1]] output_shape [6, 5] : memref<30xf32, 4 : i32> into memref<6x5xf32, 4 : i32>
  memref.copy %e, %s : memref<6x5xf32, 4 : i32> to memref<6x5xf32, 3 : i32>
  memref.dealloc %s : memref<6x5xf32, 3 : i32>
  return
}
