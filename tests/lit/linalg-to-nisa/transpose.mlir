// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s

// CHECK-DAG: #[[SWAP:[a-z0-9]+]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[BROAD:[a-z0-9]+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[ZERO:[a-z0-9]+]] = affine_map<(d0, d1) -> (0, 0)>
// CHECK-DAG: #[[CELL:[a-z0-9]+]] = affine_map<(d0, d1, d2) -> (0, 0)>

// Floats go through the tensor engine.  The identity matrix is made once for a type, and released at the end.
// CHECK-LABEL: func.func @real
// CHECK:       "nisa.iota"(%[[N:[a-z0-9_]+]], {{.*}}coefficients = array<i64: -1, 1>
// CHECK-NEXT:  "nisa.tensor_scalar_arith"(%[[I:[a-z0-9_]+]], %[[N]], {{.*}}op0 = "is_eq"
// CHECK-NEXT:  "nisa.release"(%[[N]])
// CHECK:       "nisa.matmul"(%[[P:[a-z0-9_]+]], %[[A:[a-z0-9_]+]], %[[I]], {{.*}}dst_tile = array<i64: 96, 64>{{.*}}is_transpose = true{{.*}}moving_tile = array<i64: 64, 64>{{.*}}stationary_tile = array<i64: 64, 96>
// CHECK-NEXT:  "nisa.tensor_copy"(%[[B:[a-z0-9_]+]], %[[P]])
// CHECK-NEXT:  "nisa.release"(%[[P]])
// CHECK-NOT:   nisa.iota
// CHECK:       "nisa.matmul"(%{{.*}}, %[[B]], %[[I]], {{.*}}is_transpose = true
// Integers do not.
// CHECK:       "nisa.dma_transpose"{{.*}}dst_tile = array<i64: 96, 64>{{.*}}permutation = array<i64: 1, 0>{{.*}}src_tile = array<i64: 64, 96>
// One byte is too small for that: element by element.
// CHECK:       "nisa.dma_copy"{{.*}}dst_tile = array<i64: 96, 64>{{.*}}src_ap = #[[SWAP]]{{.*}}src_tile = array<i64: 96, 64>
// The partitions stay: an access pattern does it.
// CHECK:       "nisa.tensor_copy"{{.*}}dst_tile = array<i64: 32, 16, 4>
// CHECK:       "nisa.release"(%[[I]])
// CHECK-NEXT:  return
func.func @real() {
  %a = memref.alloc() : memref<64x96xf32, 3 : i32>
  %b = memref.alloc() : memref<96x64xf32, 3 : i32>
  linalg.transpose ins(%a : memref<64x96xf32, 3 : i32>) outs(%b : memref<96x64xf32, 3 : i32>) permutation = [1, 0]
  linalg.transpose ins(%b : memref<96x64xf32, 3 : i32>) outs(%a : memref<64x96xf32, 3 : i32>) permutation = [1, 0]
  %g = memref.alloc() : memref<64x96xi32, 3 : i32>
  %h = memref.alloc() : memref<96x64xi32, 3 : i32>
  linalg.transpose ins(%g : memref<64x96xi32, 3 : i32>) outs(%h : memref<96x64xi32, 3 : i32>) permutation = [1, 0]
  memref.dealloc %g : memref<64x96xi32, 3 : i32>
  memref.dealloc %h : memref<96x64xi32, 3 : i32>
  %c = memref.alloc() : memref<64x96xi8, 3 : i32>
  %d = memref.alloc() : memref<96x64xi8, 3 : i32>
  linalg.transpose ins(%c : memref<64x96xi8, 3 : i32>) outs(%d : memref<96x64xi8, 3 : i32>) permutation = [1, 0]
  %e = memref.alloc() : memref<32x4x16xf32, 3 : i32>
  %f = memref.alloc() : memref<32x16x4xf32, 3 : i32>
  linalg.transpose ins(%e : memref<32x4x16xf32, 3 : i32>) outs(%f : memref<32x16x4xf32, 3 : i32>) permutation = [0, 2, 1]
  memref.dealloc %a : memref<64x96xf32, 3 : i32>
  memref.dealloc %b : memref<96x64xf32, 3 : i32>
  memref.dealloc %c : memref<64x96xi8, 3 : i32>
  memref.dealloc %d : memref<96x64xi8, 3 : i32>
  memref.dealloc %e : memref<32x4x16xf32, 3 : i32>
  memref.dealloc %f : memref<32x16x4xf32, 3 : i32>
  return
}

// To every partition: a source that lacks d0.
// CHECK-LABEL: func.func @broadcast
// CHECK:       "nisa.dma_copy"{{.*}}src_ap = #[[BROAD]]{{.*}}src_tile = array<i64: 64, 96>
func.func @broadcast(%a: memref<96xf32, 4 : i32>) {
  %o = memref.alloc() : memref<64x96xf32, 3 : i32>
  linalg.broadcast ins(%a : memref<96xf32, 4 : i32>) outs(%o : memref<64x96xf32, 3 : i32>) dimensions = [0]
  memref.dealloc %o : memref<64x96xf32, 3 : i32>
  return
}

// HBM is filled from a cell, and a scalar in memory becomes one.
// CHECK-LABEL: func.func @fill
// CHECK:       "nisa.memset"(%[[C:[a-z0-9_]+]], %{{.*}}) {{.*}}dst_tile = array<i64: 1, 1>
// CHECK:       "nisa.dma_copy"(%arg0, %[[C]]) {{.*}}src_ap = #[[CELL]]{{.*}}src_tile = array<i64: 1, 300, 96>
// CHECK:       "nisa.dma_copy"(%[[D:[a-z0-9_]+]], %arg1)
// CHECK:       "nisa.dma_copy"(%{{.*}}, %[[D]]) {{.*}}src_ap = #[[ZERO]]{{.*}}src_tile = array<i64: 64, 96>
// CHECK:       "nisa.release"(%[[D]])
func.func @fill(%h: memref<300x96xf32, 4 : i32>, %s: memref<f32, 4 : i32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%h : memref<300x96xf32, 4 : i32>)
  %v = memref.load %s[] : memref<f32, 4 : i32>
  %o = memref.alloc() : memref<64x96xf32, 3 : i32>
  linalg.fill ins(%v : f32) outs(%o : memref<64x96xf32, 3 : i32>)
  memref.dealloc %o : memref<64x96xf32, 3 : i32>
  return
}

// An index that was computed at run time comes through a register.
// CHECK-LABEL: func.func @register
// CHECK:       %[[V:[a-z0-9_]+]] = "nisa.register_load"(%{{.*}}) {engine = "sync"{{.*}} -> i32
// CHECK:       %[[I:[a-z0-9_]+]] = arith.index_cast %[[V]]
// CHECK:       "nisa.dma_copy"(%{{.*}}, %arg0, %[[I]])
func.func @register(%a: memref<300x96xf32, 4 : i32>, %s: memref<i32, 4 : i32>) {
  %v = memref.load %s[] : memref<i32, 4 : i32>
  %i = arith.index_cast %v : i32 to index
  %u = memref.subview %a[%i, 0] [64, 96] [1, 1] : memref<300x96xf32, 4 : i32> to memref<64x96xf32, strided<[96, 1], offset: ?>, 4 : i32>
  %o = memref.alloc() : memref<64x96xf32, 3 : i32>
  memref.copy %u, %o : memref<64x96xf32, strided<[96, 1], offset: ?>, 4 : i32> to memref<64x96xf32, 3 : i32>
  memref.dealloc %o : memref<64x96xf32, 3 : i32>
  return
}
