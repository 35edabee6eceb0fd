// nisa text 1
// RUN: nkx opt --coalesce-transfers --nisa-verify --print-nisa %s | FileCheck %s
// What an engine begins its work with is loaded in the parts that it takes one after another.

!b = memref<128x2x128xf32, #nisa.mem<sbuf>>
!m = memref<128x128xf32, #nisa.mem<sbuf>>
!p = memref<128x128xf32, #nisa.mem<psum>>
!x = memref<256x128xf32, #nisa.mem<shared_hbm>>

module attributes {nisa.target = #nisa.target<trn2>} {

// The first product needs the first 64 KiB.
// CHECK-LABEL: func.func @first
// CHECK:       scf.for %[[I:[^ ]*]] = %c0 to %c2 step %c1
// CHECK:         nisa.dma_copy(dst<128| 128>={{.*}}[d0, %[[I]], d1]
func.func @first(%x: !x, %m: !m) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %b = nisa.alloc : !b
  %p = nisa.alloc : !p
  scf.for %i = %c0 to %c2 step %c1 {
    %0 = arith.muli %i, %c128 : index
    nisa.dma_copy(dst<128| 128>=!b %b[d0, %i, d1], src<128| 128>=!x %x[%0 + d0, d1]) engine=dma
  }
  scf.for %i = %c0 to %c2 step %c1 {
    nisa.matmul(dst<128| 128>=!p %p[d0, d1], stationary<128| 128>=!b %b[d0, %i, d1], moving<128| 128>=!m %m[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
  }
  nisa.release %p : !p
  nisa.release %b : !b
  return
}

// The Tensor engine has worked before, so that the loads have run ahead: one transfer.
// CHECK-LABEL: func.func @later
// CHECK:       nisa.dma_copy(dst<128| 2, 128>=
func.func @later(%x: !x, %m: !m) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %b = nisa.alloc : !b
  %p = nisa.alloc : !p
  nisa.matmul(dst<128| 128>=!p %p[d0, d1], stationary<128| 128>=!m %m[d0, d1], moving<128| 128>=!m %m[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
  scf.for %i = %c0 to %c2 step %c1 {
    %0 = arith.muli %i, %c128 : index
    nisa.dma_copy(dst<128| 128>=!b %b[d0, %i, d1], src<128| 128>=!x %x[%0 + d0, d1]) engine=dma
  }
  scf.for %i = %c0 to %c2 step %c1 {
    nisa.matmul(dst<128| 128>=!p %p[d0, d1], stationary<128| 128>=!b %b[d0, %i, d1], moving<128| 128>=!m %m[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
  }
  nisa.release %p : !p
  nisa.release %b : !b
  return
}

// GpSimd computes, so that all loads are in one queue, and the reader waits for another one behind these: one transfer.
// CHECK-LABEL: func.func @behind
// CHECK:       nisa.dma_copy(dst<128| 2, 128>=
func.func @behind(%x: !x, %y: memref<128x128xf32, #nisa.mem<shared_hbm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %b = nisa.alloc : !b
  %m = nisa.alloc : !m
  %n = nisa.alloc : !m
  %p = nisa.alloc : !p
  nisa.iota(dst<128| 128>=!m %n[d0, d1], offset=index %c0, coefficients=[-1, 1]) engine=gpsimd
  scf.for %i = %c0 to %c2 step %c1 {
    %0 = arith.muli %i, %c128 : index
    nisa.dma_copy(dst<128| 128>=!b %b[d0, %i, d1], src<128| 128>=!x %x[%0 + d0, d1]) engine=dma
  }
  nisa.dma_copy(dst<128| 128>=!m %m[d0, d1], src<128| 128>=memref<128x128xf32, #nisa.mem<shared_hbm>> %y[d0, d1]) engine=dma
  scf.for %i = %c0 to %c2 step %c1 {
    nisa.matmul(dst<128| 128>=!p %p[d0, d1], stationary<128| 128>=!b %b[d0, %i, d1], moving<128| 128>=!m %m[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
  }
  nisa.release %p : !p
  nisa.release %n : !m
  nisa.release %m : !m
  nisa.release %b : !b
  return
}
}
