// nisa text 1
// RUN: nkx opt --coalesce-transfers --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// A load of single elements whose rows lie along the partitions becomes a transpose.

!x = memref<1x1024xbf16, #nisa.mem<shared_hbm>>
!w = memref<8x1024xf32, #nisa.mem<shared_hbm>>
!b = memref<1x1024xi8, #nisa.mem<shared_hbm>>
!t = memref<128x8xbf16, #nisa.mem<sbuf>>
!f = memref<128x8xf32, #nisa.mem<sbuf>>
!i = memref<128x8xi8, #nisa.mem<sbuf>>

module attributes {nisa.target = #nisa.target<trn2>} {

// The parts of a row.
// CHECK-LABEL: func.func @row
// CHECK-NEXT:  nisa.dma_transpose(dst<128| 8>={{.*}} %arg1[d0, d1], src<8| 128>={{.*}} %arg0[0, d0*128 + d1], permutation=[1, 0]) engine=dma
// REMARK:      loaded by rows: 128 descriptors
// REMARK:      1024 descriptors
func.func @row(%x: !x, %t: !t) {
  nisa.dma_copy(dst<128| 8>=!t %t[d0, d1], src<128| 8>=!x %x[0, d0 + d1*128]) engine=dma
  return
}

// A loop of such loads, which become one first.
// CHECK-LABEL: func.func @loop
// CHECK-NOT:   scf.for
// CHECK:       nisa.dma_transpose(dst<128| 8, 1>={{.*}} %arg1[d0, d1], src<8, 1| 128>={{.*}} %arg0[0, d0*128 + d2]
func.func @loop(%x: !x, %t: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    nisa.dma_copy(dst<128| 1>=!t %t[d0, %i], src<128| 1>=!x %x[0, %i*128 + d0]) engine=dma
  }
  return
}

// One element for each partition takes as many descriptors either way.
// CHECK-LABEL: func.func @column
// CHECK-NEXT:  nisa.dma_copy
func.func @column(%x: !x, %t: !t) {
  nisa.dma_copy(dst<128| 1>=!t %t[d0, 0], src<128| 1>=!x %x[0, d0]) engine=dma
  return
}

// Neighbours in a partition are neighbours in memory.
// CHECK-LABEL: func.func @runs
// CHECK-NEXT:  nisa.dma_copy
func.func @runs(%x: !x, %t: !t) {
  nisa.dma_copy(dst<128| 8>=!t %t[d0, d1], src<128| 8>=!x %x[0, d0*8 + d1]) engine=dma
  return
}

// Rows one after another do not run along the partitions.
// CHECK-LABEL: func.func @far
// CHECK-NEXT:  nisa.dma_copy
func.func @far(%x: !w, %t: !f) {
  nisa.dma_copy(dst<8| 4>=!f %t[d0, d1], src<8| 4>=!w %x[d0, d1*128]) engine=dma
  return
}

// DMA transposes elements of 2 and 4 bytes.
// CHECK-LABEL: func.func @bytes
// CHECK-NEXT:  nisa.dma_copy
func.func @bytes(%x: !b, %t: !i) {
  nisa.dma_copy(dst<128| 8>=!i %t[d0, d1], src<128| 8>=!b %x[0, d0 + d1*128]) engine=dma
  return
}

}
