// nisa text 1
// Sums are added up in one buffer where the buffers of a loop do not fit into SBUF twice.
// RUN: nkx opt --allocate-memory=target=trn2 --nisa-verify=target=trn2 --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

!tile = memref<128x8000xf32, #nisa.mem<sbuf>>
!small = memref<128x80xf32, #nisa.mem<sbuf>>
!hbm = memref<128x8000xf32, #nisa.mem<shared_hbm>>

// %b takes the buffer of %a; %x is read again, so %a is not added in its place.
// CHECK-LABEL: @large
// CHECK:         nisa.dma_copy(dst<128| 8000>={{[^%]*}}%[[X:[a-z_0-9]+]][d0, d1]
// CHECK:         nisa.tensor_tensor_arith(dst<128| 8000>={{[^%]*}}%[[A:[a-z_0-9]+]][d0, d1], lhs<128| 8000>={{[^%]*}}%[[X]][d0, d1], rhs<128| 8000>={{[^%]*}}%[[X]][d0, d1]
// CHECK-NEXT:    nisa.tensor_tensor_arith(dst<128| 8000>={{[^%]*}}%[[A]][d0, d1], lhs<128| 8000>={{[^%]*}}%[[A]][d0, d1], rhs<128| 8000>={{[^%]*}}%[[X]][d0, d1]
// CHECK:         nisa.dma_copy({{.*}}%[[A]][d0, d1]) engine=dma
// CHECK-NEXT:    nisa.release %[[A]]
// CHECK-NOT:     nisa.release
// REMARK:      overwrites its operand: a buffer of 32000 bytes less
func.func @large(%h: !hbm, %o: !hbm) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %w = nisa.alloc : !tile
    %x = nisa.alloc : !tile
    %a = nisa.alloc : !tile
    %b = nisa.alloc : !tile
    nisa.dma_copy(dst<128| 8000>=!tile %x[d0, d1], src<128| 8000>=!hbm %h[d0, d1]) engine=dma
    nisa.tensor_tensor_arith(dst<128| 8000>=!tile %a[d0, d1], lhs<128| 8000>=!tile %x[d0, d1], rhs<128| 8000>=!tile %x[d0, d1], op=multiply) engine=vector
    nisa.tensor_tensor_arith(dst<128| 8000>=!tile %b[d0, d1], lhs<128| 8000>=!tile %a[d0, d1], rhs<128| 8000>=!tile %x[d0, d1], op=add) engine=gpsimd
    nisa.release %a : !tile
    nisa.release %x : !tile
    nisa.release %w : !tile
    nisa.dma_copy(dst<128| 8000>=!hbm %o[d0, d1], src<128| 8000>=!tile %b[d0, d1]) engine=dma
    nisa.release %b : !tile
  }
  return
}

// There is room for all of them.
// CHECK-LABEL: @small
// CHECK:         nisa.tensor_tensor_arith(dst<128| 80>={{[^%]*}}%[[C:[a-z_0-9]+]][d0, d1]
// CHECK-NEXT:    nisa.tensor_tensor_arith(dst<128| 80>=
// CHECK-NOT:     %[[C]][d0, d1], lhs
// CHECK:         nisa.release %[[C]]
func.func @small() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c8 step %c1 {
    %x = nisa.alloc : !small
    %a = nisa.alloc : !small
    %b = nisa.alloc : !small
    nisa.memset(dst<128| 80>=!small %x[d0, d1], value=f32 %f0) engine=vector
    nisa.tensor_tensor_arith(dst<128| 80>=!small %a[d0, d1], lhs<128| 80>=!small %x[d0, d1], rhs<128| 80>=!small %x[d0, d1], op=add) engine=vector
    nisa.tensor_tensor_arith(dst<128| 80>=!small %b[d0, d1], lhs<128| 80>=!small %a[d0, d1], rhs<128| 80>=!small %x[d0, d1], op=add) engine=vector
    nisa.release %a : !small
    nisa.release %x : !small
    nisa.release %b : !small
  }
  return
}
