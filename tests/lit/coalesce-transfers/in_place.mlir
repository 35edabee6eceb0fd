// nisa text 1
// RUN: nkx opt --coalesce-transfers --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// What is copied on the chip only to be read is read where it is.

!x = memref<128x512xf32, #nisa.mem<shared_hbm>>
!s = memref<128x8x64xf32, #nisa.mem<sbuf>>
!t = memref<128x64xf32, #nisa.mem<sbuf>>

module attributes {nisa.target = #nisa.target<trn2>} {

// CHECK-LABEL: func.func @parts
// CHECK-NOT:     nisa.tensor_copy
// CHECK:         nisa.activation(dst{{.*}}, src<128| 8, 32>={{.*}} %[[S:[a-z0-9_]+]][d0, d1, d2 + 32],
// CHECK:         nisa.activation(dst{{.*}}, src<128| 8, 32>={{.*}} %[[S]][d0, d1, d2],
// CHECK:         return
// REMARK:      read where it is, without a copy
func.func @parts(%x: !x) -> !x {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %y = nisa.alloc : !x
  %s = nisa.alloc : !s
  nisa.dma_copy(dst<128| 8, 64>=!s %s[d0, d1, d2], src<128| 512>=!x %x[d0, d1]) engine=dma
  scf.for %i = %c0 to %c8 step %c1 {
    %at = arith.muli %i, %c64 : index
    %t = nisa.alloc : !t
    nisa.tensor_copy(dst<128| 64>=!t %t[d0, d1], src<128| 64>=!s %s[d0, %i, d1]) engine=vector
    %u = nisa.alloc : !t
    nisa.activation(dst<128| 32>=!t %u[d0, d1], src<128| 32>=!t %t[d0, d1 + 32], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
    nisa.activation(dst<128| 32>=!t %u[d0, d1 + 32], src<128| 32>=!t %t[d0, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
    nisa.release %t : !t
    nisa.dma_copy(dst<128| 64>=!x %y[d0, %at + d1], src<128| 64>=!t %u[d0, d1]) engine=dma
    nisa.release %u : !t
  }
  nisa.release %s : !s
  return %y : !x
}

// The loop writes what it copies: each round reads what the one before wrote.
// CHECK-LABEL: func.func @changing
// CHECK:         nisa.tensor_copy
// CHECK:         return
func.func @changing(%x: !x) -> !x {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %y = nisa.alloc : !x
  %s = nisa.alloc : !s
  nisa.dma_copy(dst<128| 8, 64>=!s %s[d0, d1, d2], src<128| 512>=!x %x[d0, d1]) engine=dma
  scf.for %i = %c0 to %c8 step %c1 {
    %t = nisa.alloc : !t
    nisa.tensor_copy(dst<128| 64>=!t %t[d0, d1], src<128| 64>=!s %s[d0, %i, d1]) engine=vector
    nisa.activation(dst<128| 64>=!s %s[d0, 0, d1], src<128| 64>=!t %t[d0, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
    nisa.activation(dst<128| 64>=!s %s[d0, %i, d1], src<128| 64>=!t %t[d0, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
    nisa.release %t : !t
  }
  nisa.dma_copy(dst<128| 512>=!x %y[d0, d1], src<128| 8, 64>=!s %s[d0, d1, d2]) engine=dma
  nisa.release %s : !s
  return %y : !x
}
}
