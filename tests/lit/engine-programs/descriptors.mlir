// nisa text 1
// RUN: nkx opt --engine-programs --nisa-verify --print-nisa %s | FileCheck %s
// Scalar starts the stores if they have many short descriptors, which GpSimd would build one by one.

!tile = memref<128x36x56xf32, #nisa.mem<sbuf>>
!hbm = memref<128x36x56xf32, #nisa.mem<shared_hbm>>
!wide = memref<128x36x58xf32, #nisa.mem<shared_hbm>>
!t = memref<128x128xf32, #nisa.mem<sbuf>>
!m = memref<128x128xf32, #nisa.mem<shared_hbm>>
!w = memref<128x8192xf32, #nisa.mem<sbuf>>

module attributes {nisa.target = #nisa.target<trn2>} {

// 36 descriptors of 224 bytes for each partition: the rows of HBM have a gap.
// CHECK-LABEL: func.func @rows
// CHECK:       nisa.queue qScalarOut on scalar {
// CHECK-NEXT:    nisa.dma_copy(dst<128| 36, 56>
// CHECK-NOT:   qGpsimdOut
func.func @rows(%x: !hbm) -> !wide {
  %r = nisa.alloc : !wide
  %a = nisa.alloc at=[0, 0] : memref<128x36x56xf32, #nisa.mem<sbuf>>
  nisa.dma_copy(dst<128| 36, 56>=!tile %a[d0, d1, d2], src<128| 36, 56>=!hbm %x[d0, d1, d2]) engine=dma
  nisa.tensor_copy(dst<128| 36, 56>=!tile %a[d0, d1, d2], src<128| 36, 56>=!tile %a[d0, d1, d2]) engine=vector
  nisa.dma_copy(dst<128| 36, 56>=!wide %r[d0, d1, d2], src<128| 36, 56>=!tile %a[d0, d1, d2]) engine=dma
  nisa.release %a : !tile
  return %r : !wide
}

// One descriptor for each partition.
// CHECK-LABEL: func.func @whole
// CHECK:       nisa.queue qGpsimdOut on gpsimd {
// CHECK-NEXT:    nisa.dma_copy(dst<128| 36, 56>
// CHECK-NOT:   qScalarOut
func.func @whole(%x: !hbm) -> !hbm {
  %r = nisa.alloc : !hbm
  %a = nisa.alloc at=[0, 0] : memref<128x36x56xf32, #nisa.mem<sbuf>>
  nisa.dma_copy(dst<128| 36, 56>=!tile %a[d0, d1, d2], src<128| 36, 56>=!hbm %x[d0, d1, d2]) engine=dma
  nisa.tensor_copy(dst<128| 36, 56>=!tile %a[d0, d1, d2], src<128| 36, 56>=!tile %a[d0, d1, d2]) engine=vector
  nisa.dma_copy(dst<128| 36, 56>=!hbm %r[d0, d1, d2], src<128| 36, 56>=!tile %a[d0, d1, d2]) engine=dma
  nisa.release %a : !tile
  return %r : !hbm
}

// In a loop in which Scalar has nothing to do it starts the stores: it takes half of the time that GpSimd would.  Where Scalar
// computes for longer than that, GpSimd starts them.
// CHECK-LABEL: func.func @loops
// CHECK:       nisa.queue qScalarOut on scalar {
// CHECK:         nisa.dma_copy(dst<128| 128>={{.*}} %hbm[
// CHECK:       nisa.queue qGpsimdOut on gpsimd {
// CHECK:         nisa.dma_copy(dst<128| 128>={{.*}} %hbm_0[
func.func @loops(%x: !m) -> (!m, !m) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %r = nisa.alloc : !m
  %s = nisa.alloc : !m
  scf.for %i = %c0 to %c32 step %c1 {
    %a = nisa.alloc at=[0, 0] : memref<128x128xf32, #nisa.mem<sbuf>>
    nisa.dma_copy(dst<128| 128>=!t %a[d0, d1], src<128| 128>=!m %x[d0, d1]) engine=dma
    nisa.tensor_copy(dst<128| 128>=!t %a[d0, d1], src<128| 128>=!t %a[d0, d1]) engine=vector
    nisa.dma_copy(dst<128| 128>=!m %r[d0, d1], src<128| 128>=!t %a[d0, d1]) engine=dma
    nisa.release %a : !t
  }
  scf.for %i = %c0 to %c32 step %c1 {
    %w = nisa.alloc at=[0, 1024] : memref<128x8192xf32, #nisa.mem<sbuf>>
    %a = nisa.alloc at=[0, 0] : memref<128x128xf32, #nisa.mem<sbuf>>
    nisa.dma_copy(dst<128| 128>=!t %a[d0, d1], src<128| 128>=!m %x[d0, d1]) engine=dma
    nisa.memset(dst<128| 128>=!w %w[d0, d1], value=f32 %zero) engine=gpsimd
    nisa.activation(dst<128| 8192>=!w %w[d0, d1], src<128| 8192>=!w %w[d0, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
    nisa.tensor_tensor_arith(dst<128| 128>=!t %a[d0, d1], lhs<128| 128>=!t %a[d0, d1], rhs<128| 128>=!w %w[d0, d1], op=add) engine=vector
    nisa.dma_copy(dst<128| 128>=!m %s[d0, d1], src<128| 128>=!t %a[d0, d1]) engine=dma
    nisa.release %w : !w
    nisa.release %a : !t
  }
  return %r, %s : !m, !m
}
}
