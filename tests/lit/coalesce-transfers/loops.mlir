// nisa text 1
// RUN: nkx opt --coalesce-transfers --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// A loop that only repeats a transfer becomes a larger transfer.

!x = memref<1024x1024xf32, #nisa.mem<shared_hbm>>
!blocks = memref<128x8x2x512xf32, #nisa.mem<sbuf>>
!turned = memref<128x4x128xf32, #nisa.mem<sbuf>>
!tile = memref<128x512xf32, #nisa.mem<sbuf>>

module attributes {nisa.target = #nisa.target<trn2>} {

// Both loops, of 256 KiB each; the outer one keeps the part that exceeds 512 KiB.  Rows are read in one run.
// CHECK-LABEL: func.func @load
// CHECK:         scf.for %i = %c0{{.*}} to %c8{{.*}} step
// CHECK-NEXT:      nisa.dma_copy(dst<128| 2, 512>={{.*}} %sbuf[d0, %i, d1, d2], src<128| 1024>={{.*}} %arg0[%i*128 + d0, d1]) engine=dma
// CHECK-NEXT:    }
// REMARK-DAG:  2 transfers of 262144 bytes become one of 524288
func.func @load(%x: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %b = nisa.alloc : !blocks
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c2 step %c1 {
      nisa.dma_copy(dst<128| 512>=!blocks %b[d0, %i, %j, d1], src<128| 512>=!x %x[%i*128 + d0, %j*512 + d1]) engine=dma
    }
  }
  nisa.release %b : !blocks
  return
}

// The rows of what is transposed go on in the next tile.
// CHECK-LABEL: func.func @transpose
// CHECK-NOT:     scf.for
// CHECK:         nisa.dma_transpose(dst<128| 4, 128>={{.*}} %sbuf[d0, d1, d2], src<512| 128>={{.*}} %arg0[d0, d1], permutation=[1, 0])
// REMARK-DAG:  4 transfers of 65536 bytes become one of 262144
func.func @transpose(%x: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %t = nisa.alloc : !turned
  scf.for %i = %c0 to %c4 step %c1 {
    %at = arith.muli %i, %c128 : index
    nisa.dma_transpose(dst<128| 128>=!turned %t[d0, %i, d1], src<128| 128>=!x %x[%at + d0, d1], permutation=[1, 0]) engine=dma
  }
  nisa.release %t : !turned
  return
}

// Each of these loops stays: rounds that write the same elements, rounds on other partitions, more than one transfer, and
// a transfer that is large enough.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-4: scf.for
func.func @stay(%x: !x, %y: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %b = nisa.alloc : !blocks
  %t = nisa.alloc : !tile
  scf.for %i = %c0 to %c2 step %c1 {
    nisa.dma_copy(dst<128| 512>=!tile %t[d0, d1], src<128| 512>=!x %x[%i*128 + d0, d1]) engine=dma
  }
  scf.for %i = %c0 to %c2 step %c1 {
    nisa.dma_copy(dst<32| 512>=!tile %t[%i*32 + d0, d1], src<32| 512>=!x %x[%i*32 + d0, d1]) engine=dma
  }
  scf.for %i = %c0 to %c2 step %c1 {
    nisa.dma_copy(dst<128| 512>=!blocks %b[d0, %i, 0, d1], src<128| 512>=!x %x[%i*128 + d0, d1]) engine=dma
    nisa.dma_copy(dst<128| 512>=!x %y[%i*128 + d0, d1], src<128| 512>=!blocks %b[d0, %i, 0, d1]) engine=dma
  }
  scf.for %i = %c0 to %c2 step %c1 {
    nisa.dma_copy(dst<128| 2, 512>=!blocks %b[d0, %i, d1, d2], src<128| 1024>=!x %x[%i*128 + d0, d1]) engine=dma
  }
  nisa.release %t : !tile
  nisa.release %b : !blocks
  return
}
}
