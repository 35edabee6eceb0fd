// nisa text 1
// RUN: nkx opt --coalesce-transfers --nisa-verify --print-nisa %s | FileCheck %s
// All rounds of a loop of several short transfers and instructions become one of each.

!t = memref<128x64xf32, #nisa.mem<sbuf>>
!x = memref<128x512xf32, #nisa.mem<shared_hbm>>
!y = memref<8x128x64xf32, #nisa.mem<shared_hbm>>

module attributes {nisa.target = #nisa.target<trn2>} {

// The memory of a round gets a dimension for the round; what is the same in all rounds is read again in each.
// CHECK-LABEL: func.func @heads
// CHECK-NOT:   scf.for
// CHECK:       %[[A:.*]] = nisa.alloc alignment=64 : memref<128x8x64xf32, #nisa.mem<sbuf>>
// CHECK:       nisa.dma_copy(dst<128| 8, 64>={{.*}} %[[A]][d0, d1, d2], src<128| 512>={{.*}} %arg0[d0, d1]) engine=dma
// CHECK:       %[[B:.*]] = nisa.alloc
// CHECK:       nisa.tensor_tensor_arith(dst<128| 8, 64>={{.*}} %[[B]][d0, d1, d2], lhs<128| 8, 64>={{.*}} %[[A]][d0, d1, d2], rhs<128| 8, 64>={{.*}}[d0, d2], op=multiply)
// CHECK:       nisa.release %[[A]]
// CHECK:       nisa.dma_copy(dst<128| 8, 64>={{.*}} %arg1[d1, d0, d2], src<128| 8, 64>={{.*}} %[[B]][d0, d1, d2]) engine=dma
// CHECK:       nisa.release %[[B]]
func.func @heads(%x: !x, %y: !y, %m: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = arith.muli %i, %c64 : index
    %a = nisa.alloc alignment=64 : !t
    nisa.dma_copy(dst<128| 64>=!t %a[d0, d1], src<128| 64>=!x %x[d0, %0 + d1]) engine=dma
    %b = nisa.alloc alignment=64 : !t
    nisa.tensor_tensor_arith(dst<128| 64>=!t %b[d0, d1], lhs<128| 64>=!t %a[d0, d1], rhs<128| 64>=!t %m[d0, d1], op=multiply) engine=vector
    nisa.release %a : !t
    nisa.dma_copy(dst<128| 64>=!y %y[%i, d0, d1], src<128| 64>=!t %b[d0, d1]) engine=dma
    nisa.release %b : !t
  }
  return
}

// Two halves of what a round writes are a part of its own.
// CHECK-LABEL: func.func @halves
// CHECK-NOT:   scf.for
// CHECK:       nisa.dma_copy(dst<128| 8, 32>={{.*}} %arg1[d1, d0, d2], src<128| 8, 32>=
// CHECK:       nisa.dma_copy(dst<128| 8, 32>={{.*}} %arg1[d1, d0, d2 + 32], src<128| 8, 32>=
func.func @halves(%x: !x, %y: !y) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = arith.muli %i, %c64 : index
    %a = nisa.alloc : !t
    nisa.dma_copy(dst<128| 64>=!t %a[d0, d1], src<128| 64>=!x %x[d0, %0 + d1]) engine=dma
    nisa.dma_copy(dst<128| 32>=!y %y[%i, d0, d1], src<128| 32>=!t %a[d0, d1 + 32]) engine=dma
    nisa.dma_copy(dst<128| 32>=!y %y[%i, d0, d1 + 32], src<128| 32>=!t %a[d0, d1]) engine=dma
    nisa.release %a : !t
  }
  return
}

// A round reads what the one before wrote: the loop stays.
// CHECK-LABEL: func.func @carried
// CHECK:       scf.for
// CHECK:         nisa.tensor_tensor_arith
// CHECK:         nisa.dma_copy
func.func @carried(%y: !y, %m: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  scf.for %i = %c0 to %c7 step %c1 {
    %a = nisa.alloc : !t
    %b = nisa.alloc : !t
    nisa.dma_copy(dst<128| 64>=!t %a[d0, d1], src<128| 64>=!y %y[%i, d0, d1]) engine=dma
    nisa.tensor_tensor_arith(dst<128| 64>=!t %b[d0, d1], lhs<128| 64>=!t %a[d0, d1], rhs<128| 64>=!t %m[d0, d1], op=multiply) engine=vector
    nisa.dma_copy(dst<128| 64>=!y %y[%i + 1, d0, d1], src<128| 64>=!t %b[d0, d1]) engine=dma
    nisa.release %b : !t
    nisa.release %a : !t
  }
  return
}

// What all rounds add to is not a part for each: the loop stays.
// CHECK-LABEL: func.func @sum
// CHECK:       scf.for
func.func @sum(%x: !x, %s: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %0 = arith.muli %i, %c64 : index
    %a = nisa.alloc : !t
    nisa.dma_copy(dst<128| 64>=!t %a[d0, d1], src<128| 64>=!x %x[d0, %0 + d1]) engine=dma
    nisa.tensor_tensor_arith(dst<128| 64>=!t %s[d0, d1], lhs<128| 64>=!t %a[d0, d1], rhs<128| 64>=!t %s[d0, d1], op=add) engine=vector
    nisa.release %a : !t
  }
  return
}
}
