// nisa text 1
// RUN: nkx opt --engine-programs --nisa-verify --print-nisa %s | FileCheck %s
// Scalar starts the stores if they have many short descriptors, which GpSimd would build one by one.

!tile = memref<128x36x56xf32, #nisa.mem<sbuf>>
!hbm = memref<128x36x56xf32, #nisa.mem<shared_hbm>>
!wide = memref<128x36x58xf32, #nisa.mem<shared_hbm>>

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
}
