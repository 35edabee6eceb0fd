// nisa text 1
// RUN: nkx opt --schedule --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: nkx opt --schedule --balance-engines --allocate-memory --engine-programs --nisa-verify --print-nisa %s | FileCheck %s --check-prefix=PROGRAMS
// A short program has no loops: both loads come first, and each is started by an engine of its own.

!x = memref<256x512xf32, #nisa.mem<shared_hbm>>
!t = memref<128x512xf32, #nisa.mem<sbuf>>

module attributes {nisa.target = #nisa.target<trn2>} {

// CHECK-LABEL: func.func @two_rounds
// CHECK-NOT:     scf.for
// CHECK:         nisa.dma_copy(dst<128| 256>={{.*}}sbuf{{.*}}, src{{.*}} %arg0[d0, d1])
// CHECK-NEXT:    nisa.dma_copy(dst<128| 256>={{.*}}sbuf{{.*}}, src{{.*}} %arg1[d0, d1])
// CHECK-NEXT:    nisa.dma_copy(dst<128| 256>={{.*}}sbuf{{.*}}, src{{.*}} %arg0[d0, d1 + 256])
// CHECK-NEXT:    nisa.dma_copy(dst<128| 256>={{.*}}sbuf{{.*}}, src{{.*}} %arg1[d0, d1 + 256])
// CHECK:         nisa.dma_copy(dst<128| 256>={{.*}}sbuf{{.*}}, src{{.*}} %arg0[d0 + 128, d1])
// CHECK:         nisa.dma_copy(dst<128| 256>={{.*}}sbuf{{.*}}, src{{.*}} %arg1[d0 + 128, d1 + 256])
// CHECK:         nisa.tensor_tensor_arith(dst<128| 256>={{.*}}[d0, d1],
// CHECK:         nisa.tensor_tensor_arith(dst<128| 256>={{.*}}[d0, d1 + 256],
// CHECK:         nisa.dma_copy(dst<128| 256>={{.*}} %hbm[d0, d1],
// CHECK:         nisa.dma_copy(dst<128| 256>={{.*}} %hbm[d0, d1 + 256],
// CHECK:         nisa.dma_copy(dst<128| 256>={{.*}} %hbm[d0 + 128, d1],
// CHECK:         return
// REMARK:      loops are written out, and loads come first, what is long is in 2 parts: the program takes {{[0-9.]+}} us instead of {{[0-9.]+}}
// PROGRAMS:      nisa.program vector {
// PROGRAMS-NEXT:   nisa.wait qSyncIn >= 1
// PROGRAMS-NEXT:   nisa.wait qScalarIn >= 1
// PROGRAMS-NEXT:   nisa.tensor_tensor_arith
func.func @two_rounds(%a: !x, %b: !x) -> !x {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %y = nisa.alloc : !x
  scf.for %i = %c0 to %c2 step %c1 {
    %row = arith.muli %i, %c128 : index
    %s = nisa.alloc : !t
    nisa.dma_copy(dst<128| 512>=!t %s[d0, d1], src<128| 512>=!x %a[%row + d0, d1]) engine=dma
    %t = nisa.alloc : !t
    nisa.dma_copy(dst<128| 512>=!t %t[d0, d1], src<128| 512>=!x %b[%row + d0, d1]) engine=dma
    %e = nisa.alloc : !t
    nisa.tensor_tensor_arith(dst<128| 512>=!t %e[d0, d1], lhs<128| 512>=!t %s[d0, d1], rhs<128| 512>=!t %t[d0, d1], op=add) engine=vector
    nisa.release %s : !t
    nisa.release %t : !t
    nisa.dma_copy(dst<128| 512>=!x %y[%row + d0, d1], src<128| 512>=!t %e[d0, d1]) engine=dma
    nisa.release %e : !t
  }
  return %y : !x
}
}
