// Loads that go backwards along a loop: whole rows are loaded, and copies on the engine turn the digits of the places in them.
// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s
// RUN: nkx opt --linalg-to-nisa --remarks %s 2>&1 | FileCheck %s --check-prefix=WHY

// One digit: a copy of a column for each place.
// CHECK-LABEL: func.func @one_digit
// CHECK:         nisa.dma_copy
// CHECK-COUNT-3: nisa.tensor_copy
// CHECK-NOT:     nisa.tensor_copy
// CHECK:         nisa.dma_copy
// WHY: 3 elements go backwards in 1 pass over the row: 3 copies
func.func @one_digit(%t: memref<16x3xf32, 4 : i32>, %h: memref<16x3xf32, 4 : i32>) {
  %o = memref.alloc() : memref<16x3xf32, 3 : i32>
  %c1 = arith.constant 2 : index
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%o : memref<16x3xf32, 3 : i32>) {
  ^bb0(%z: f32):
    %i0 = linalg.index 0 : index
    %i1 = linalg.index 1 : index
    %b1 = arith.subi %c1, %i1 : index
    %v = memref.load %t[%i0, %b1] : memref<16x3xf32, 4 : i32>
    linalg.yield %v : f32
  }
  memref.copy %o, %h : memref<16x3xf32, 3 : i32> to memref<16x3xf32, 4 : i32>
  memref.dealloc %o : memref<16x3xf32, 3 : i32>
  return
}

// 2048 places are 8, 16 and 16.
// CHECK-LABEL: func.func @three_digits
// CHECK:          nisa.dma_copy
// CHECK-COUNT-40: nisa.tensor_copy
// CHECK-NOT:      nisa.tensor_copy
// CHECK:          nisa.dma_copy
// WHY: 2048 elements go backwards in 3 passes over the row: 40 copies
func.func @three_digits(%t: memref<128x2048xf32, 4 : i32>, %h: memref<128x2048xf32, 4 : i32>) {
  %o = memref.alloc() : memref<128x2048xf32, 3 : i32>
  %c1 = arith.constant 2047 : index
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%o : memref<128x2048xf32, 3 : i32>) {
  ^bb0(%z: f32):
    %i0 = linalg.index 0 : index
    %i1 = linalg.index 1 : index
    %b1 = arith.subi %c1, %i1 : index
    %v = memref.load %t[%i0, %b1] : memref<128x2048xf32, 4 : i32>
    linalg.yield %v : f32
  }
  memref.copy %o, %h : memref<128x2048xf32, 3 : i32> to memref<128x2048xf32, 4 : i32>
  memref.dealloc %o : memref<128x2048xf32, 3 : i32>
  return
}

// 67 is a prime number: 64 places are 4, 4 and 4, and 3 are left.
// CHECK-LABEL: func.func @two_parts
// CHECK:         nisa.dma_copy
// CHECK-COUNT-15: nisa.tensor_copy
// CHECK-NOT:     nisa.tensor_copy
// CHECK:         nisa.dma_copy
// WHY: 67 elements go backwards in 3 passes over the row: 15 copies
func.func @two_parts(%t: memref<16x67xf32, 4 : i32>, %h: memref<16x67xf32, 4 : i32>) {
  %o = memref.alloc() : memref<16x67xf32, 3 : i32>
  %c1 = arith.constant 66 : index
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%o : memref<16x67xf32, 3 : i32>) {
  ^bb0(%z: f32):
    %i0 = linalg.index 0 : index
    %i1 = linalg.index 1 : index
    %b1 = arith.subi %c1, %i1 : index
    %v = memref.load %t[%i0, %b1] : memref<16x67xf32, 4 : i32>
    linalg.yield %v : f32
  }
  memref.copy %o, %h : memref<16x67xf32, 3 : i32> to memref<16x67xf32, 4 : i32>
  memref.dealloc %o : memref<16x67xf32, 3 : i32>
  return
}

// What is within the loop goes along: each copy has its five elements.
// CHECK-LABEL: func.func @within
// CHECK:         nisa.dma_copy
// CHECK-COUNT-4: "nisa.tensor_copy"({{.*}}dst_tile = array<i64: 16, 5>
// CHECK-NOT:     nisa.tensor_copy
// CHECK:         nisa.dma_copy
func.func @within(%t: memref<16x4x5xf32, 4 : i32>, %h: memref<16x4x5xf32, 4 : i32>) {
  %o = memref.alloc() : memref<16x4x5xf32, 3 : i32>
  %c1 = arith.constant 3 : index
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%o : memref<16x4x5xf32, 3 : i32>) {
  ^bb0(%z: f32):
    %i0 = linalg.index 0 : index
    %i1 = linalg.index 1 : index
    %i2 = linalg.index 2 : index
    %b1 = arith.subi %c1, %i1 : index
    %v = memref.load %t[%i0, %b1, %i2] : memref<16x4x5xf32, 4 : i32>
    linalg.yield %v : f32
  }
  memref.copy %o, %h : memref<16x4x5xf32, 3 : i32> to memref<16x4x5xf32, 4 : i32>
  memref.dealloc %o : memref<16x4x5xf32, 3 : i32>
  return
}

// Two loops, one after the other.
// CHECK-LABEL: func.func @both
// CHECK:         nisa.dma_copy
// CHECK-COUNT-3: "nisa.tensor_copy"({{.*}}dst_tile = array<i64: 16, 4>
// CHECK-COUNT-4: "nisa.tensor_copy"({{.*}}dst_tile = array<i64: 16, 3>
// CHECK-NOT:     nisa.tensor_copy
// CHECK:         nisa.dma_copy
func.func @both(%t: memref<16x3x4xf32, 4 : i32>, %h: memref<16x3x4xf32, 4 : i32>) {
  %o = memref.alloc() : memref<16x3x4xf32, 3 : i32>
  %c1 = arith.constant 2 : index
  %c2 = arith.constant 3 : index
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} outs(%o : memref<16x3x4xf32, 3 : i32>) {
  ^bb0(%z: f32):
    %i0 = linalg.index 0 : index
    %i1 = linalg.index 1 : index
    %i2 = linalg.index 2 : index
    %b1 = arith.subi %c1, %i1 : index
    %b2 = arith.subi %c2, %i2 : index
    %v = memref.load %t[%i0, %b1, %b2] : memref<16x3x4xf32, 4 : i32>
    linalg.yield %v : f32
  }
  memref.copy %o, %h : memref<16x3x4xf32, 3 : i32> to memref<16x3x4xf32, 4 : i32>
  memref.dealloc %o : memref<16x3x4xf32, 3 : i32>
  return
}

// Across the partitions DMA moves the rows, one by one.
// CHECK-LABEL: func.func @partitions
// CHECK:         scf.for
// CHECK-NOT:     nisa.tensor_copy
// CHECK:           "nisa.dma_copy"({{.*}}src_tile = array<i64: 1, 8>
// CHECK:         return
func.func @partitions(%t: memref<16x8xf32, 4 : i32>, %h: memref<16x8xf32, 4 : i32>) {
  %o = memref.alloc() : memref<16x8xf32, 3 : i32>
  %c0 = arith.constant 15 : index
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%o : memref<16x8xf32, 3 : i32>) {
  ^bb0(%z: f32):
    %i0 = linalg.index 0 : index
    %i1 = linalg.index 1 : index
    %b0 = arith.subi %c0, %i0 : index
    %v = memref.load %t[%b0, %i1] : memref<16x8xf32, 4 : i32>
    linalg.yield %v : f32
  }
  memref.copy %o, %h : memref<16x8xf32, 3 : i32> to memref<16x8xf32, 4 : i32>
  memref.dealloc %o : memref<16x8xf32, 3 : i32>
  return
}
