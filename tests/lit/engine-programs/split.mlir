// nisa text 1
// RUN: nkx opt --engine-programs --nisa-verify --print-nisa %s | FileCheck %s
// A loop with most of the loads becomes two, which two engines start.

!tile = memref<128x128xf32, #nisa.mem<sbuf>>
!tiles = memref<128x8x128xf32, #nisa.mem<sbuf>>
!rows = memref<8x128x128xf32, #nisa.mem<shared_hbm>>

module attributes {nisa.target = #nisa.target<trn2>} {

// Of nine loads scalar starts five: the rounds from 3 on.  Vector waits for all that it reads.
// CHECK-LABEL: func.func @shared
// CHECK:       %[[THREE:.*]] = arith.constant 3 : index
// CHECK:       nisa.program vector {
// CHECK-NEXT:    nisa.wait qSyncIn >= 3
// CHECK-NEXT:    scf.for %[[V:.*]] = %c0 to %c8
// CHECK-NEXT:      nisa.wait qScalarIn >= %[[V]] - 2
// CHECK:       nisa.program scalar {
// CHECK-NEXT:    scf.for %{{.*}} = %[[THREE]] to %c8
// CHECK-NEXT:      nisa.dma_trigger qScalarIn
// CHECK:       nisa.program sync {
// CHECK-NEXT:    nisa.dma_trigger qSyncIn
// CHECK-NEXT:    scf.for %{{.*}} = %c0 to %[[THREE]]
// CHECK-NEXT:      nisa.dma_trigger qSyncIn
func.func @shared(%x: !rows, %y: !rows) -> !rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %out = nisa.alloc : memref<8x128x128xf32, #nisa.mem<shared_hbm>>
  %b = nisa.alloc at=[0, 0] : memref<128x128xf32, #nisa.mem<sbuf>>
  %a = nisa.alloc at=[0, 512] : memref<128x8x128xf32, #nisa.mem<sbuf>>
  %s = nisa.alloc at=[0, 4608] : memref<128x128xf32, #nisa.mem<sbuf>>
  nisa.dma_copy(dst<128| 128>=!tile %b[d0, d1], src<128| 128>=!rows %y[%c0, d0, d1]) engine=dma
  scf.for %i = %c0 to %c8 step %c1 {
    nisa.dma_copy(dst<128| 128>=!tiles %a[d0, %i, d1], src<128| 128>=!rows %x[%i, d0, d1]) engine=dma
  }
  scf.for %i = %c0 to %c8 step %c1 {
    nisa.tensor_tensor_arith(dst<128| 128>=!tile %s[d0, d1], lhs<128| 128>=!tiles %a[d0, %i, d1], rhs<128| 128>=!tile %b[d0, d1], op=add) engine=vector
    nisa.dma_copy(dst<128| 128>=!rows %out[%i, d0, d1], src<128| 128>=!tile %s[d0, d1]) engine=dma
  }
  nisa.release %s : !tile
  nisa.release %a : !tiles
  nisa.release %b : !tile
  return %out : !rows
}

// Scalar computes, so that its instructions would wait for the starts of loads: Sync starts all of them.
// CHECK-LABEL: func.func @scalar_computes
// CHECK-NOT:   qScalarIn
// CHECK:       nisa.program sync {
// CHECK-NEXT:    scf.for %{{.*}} = %c0 to %c8
// CHECK-NEXT:      nisa.dma_trigger qSyncIn
func.func @scalar_computes(%x: !rows) -> !rows {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %out = nisa.alloc : memref<8x128x128xf32, #nisa.mem<shared_hbm>>
  %a = nisa.alloc at=[0, 512] : memref<128x8x128xf32, #nisa.mem<sbuf>>
  %s = nisa.alloc at=[0, 4608] : memref<128x128xf32, #nisa.mem<sbuf>>
  scf.for %i = %c0 to %c8 step %c1 {
    nisa.dma_copy(dst<128| 128>=!tiles %a[d0, %i, d1], src<128| 128>=!rows %x[%i, d0, d1]) engine=dma
  }
  scf.for %i = %c0 to %c8 step %c1 {
    nisa.activation(dst<128| 128>=!tile %s[d0, d1], src<128| 128>=!tiles %a[d0, %i, d1], bias=f32 %f0, scale=f32 %f1, op=exp) engine=scalar
    nisa.dma_copy(dst<128| 128>=!rows %out[%i, d0, d1], src<128| 128>=!tile %s[d0, d1]) engine=dma
  }
  nisa.release %s : !tile
  nisa.release %a : !tiles
  return %out : !rows
}
}
