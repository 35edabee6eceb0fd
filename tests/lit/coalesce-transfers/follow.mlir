// nisa text 1
// RUN: nkx opt --coalesce-transfers --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// A loop of loads goes round with the loop that reads what it loads.

!b = memref<128x16x512xf32, #nisa.mem<sbuf>>
!t = memref<128x512xf32, #nisa.mem<sbuf>>
!x = memref<2048x512xf32, #nisa.mem<shared_hbm>>
!p = memref<128x512xf32, #nisa.mem<psum>>
!w = memref<128x128xf32, #nisa.mem<sbuf>>

module attributes {nisa.target = #nisa.target<trn2>} {

// REMARK: 2 rounds of the loop before, which writes what this one reads, come in each round

// CHECK-LABEL: func.func @pairs
// CHECK:       scf.for %[[I:.*]] = %c0 to %c8
// CHECK:         scf.for %[[J:.*]] = %c0{{.*}} to %c2
// CHECK:           %[[N:.*]] = arith.addi %{{.*}}, %[[J]]
// CHECK:           nisa.dma_copy(
// CHECK:           nisa.tensor_tensor_arith(dst<128| 512>={{.*}}[d0, %[[N]], d1]
// CHECK:         }
// CHECK:         nisa.activation({{.*}}[d0, %[[I]]*2
// CHECK:         nisa.activation({{.*}}[d0, %[[I]]*2 + 1
func.func @pairs(%x: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %b = nisa.alloc : !b
  %o = nisa.alloc : !b
  scf.for %i = %c0 to %c16 step %c1 {
    %0 = arith.muli %i, %c128 : index
    %t = nisa.alloc : !t
    nisa.dma_copy(dst<128| 512>=!t %t[d0, d1], src<128| 512>=!x %x[%0 + d0, d1]) engine=dma
    nisa.tensor_tensor_arith(dst<128| 512>=!b %b[d0, %i, d1], lhs<128| 512>=!t %t[d0, d1], rhs<128| 512>=!t %t[d0, d1], op=multiply) engine=vector
    nisa.release %t : !t
  }
  scf.for %i = %c0 to %c8 step %c1 {
    nisa.activation(dst<128| 512>=!b %o[d0, %i*2, d1], src<128| 512>=!b %b[d0, %i*2, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
    nisa.activation(dst<128| 512>=!b %o[d0, %i*2 + 1, d1], src<128| 512>=!b %b[d0, %i*2 + 1, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
  }
  nisa.release %b : !b
  nisa.release %o : !b
  return
}

// A load between the loops may come before both.
// CHECK-LABEL: func.func @load_between
// CHECK:       nisa.dma_copy(
// CHECK-NEXT:  scf.for %{{.*}} = %c0 to %c8
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c2
// CHECK:         nisa.activation(
func.func @load_between(%x: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %b = nisa.alloc : !b
  %o = nisa.alloc : !b
  scf.for %i = %c0 to %c16 step %c1 {
    %0 = arith.muli %i, %c128 : index
    %t = nisa.alloc : !t
    nisa.dma_copy(dst<128| 512>=!t %t[d0, d1], src<128| 512>=!x %x[%0 + d0, d1]) engine=dma
    nisa.tensor_tensor_arith(dst<128| 512>=!b %b[d0, %i, d1], lhs<128| 512>=!t %t[d0, d1], rhs<128| 512>=!t %t[d0, d1], op=multiply) engine=vector
    nisa.release %t : !t
  }
  %r = nisa.alloc : !t
  nisa.dma_copy(dst<128| 512>=!t %r[d0, d1], src<128| 512>=!x %x[d0, d1]) engine=dma
  scf.for %i = %c0 to %c8 step %c1 {
    nisa.activation(dst<128| 512>=!b %o[d0, %i*2, d1], src<128| 512>=!b %b[d0, %i*2, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
    nisa.activation(dst<128| 512>=!b %o[d0, %i*2 + 1, d1], src<128| 512>=!b %b[d0, %i*2 + 1, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
  }
  nisa.release %r : !t
  nisa.release %b : !b
  nisa.release %o : !b
  return
}

// What reads a result of the first loop may not.
// CHECK-LABEL: func.func @read_between
// CHECK:       scf.for %{{.*}} = %c0 to %c16
// CHECK:       nisa.dma_copy({{.*}}[d0, 3, d1])
// CHECK:       scf.for %{{.*}} = %c0 to %c8
func.func @read_between(%x: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %b = nisa.alloc : !b
  %o = nisa.alloc : !b
  scf.for %i = %c0 to %c16 step %c1 {
    %0 = arith.muli %i, %c128 : index
    %t = nisa.alloc : !t
    nisa.dma_copy(dst<128| 512>=!t %t[d0, d1], src<128| 512>=!x %x[%0 + d0, d1]) engine=dma
    nisa.tensor_tensor_arith(dst<128| 512>=!b %b[d0, %i, d1], lhs<128| 512>=!t %t[d0, d1], rhs<128| 512>=!t %t[d0, d1], op=multiply) engine=vector
    nisa.release %t : !t
  }
  %r = nisa.alloc : !t
  nisa.dma_copy(dst<128| 512>=!t %r[d0, d1], src<128| 512>=!b %b[d0, 3, d1]) engine=dma
  scf.for %i = %c0 to %c8 step %c1 {
    nisa.activation(dst<128| 512>=!b %o[d0, %i*2, d1], src<128| 512>=!b %b[d0, %i*2, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
    nisa.activation(dst<128| 512>=!b %o[d0, %i*2 + 1, d1], src<128| 512>=!b %b[d0, %i*2 + 1, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
  }
  nisa.release %r : !t
  nisa.release %b : !b
  nisa.release %o : !b
  return
}

// A round reads what a later round writes: the loops stay.
// CHECK-LABEL: func.func @ahead
// CHECK:       scf.for
// CHECK:         nisa.tensor_tensor_arith
// CHECK-NEXT:    nisa.release
// CHECK-NEXT:  }
// CHECK:       scf.for
// CHECK-NEXT:    nisa.activation
func.func @ahead(%x: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %c14 = arith.constant 14 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %b = nisa.alloc : !b
  %o = nisa.alloc : !b
  scf.for %i = %c0 to %c14 step %c1 {
    %0 = arith.muli %i, %c128 : index
    %t = nisa.alloc : !t
    nisa.dma_copy(dst<128| 512>=!t %t[d0, d1], src<128| 512>=!x %x[%0 + d0, d1]) engine=dma
    nisa.tensor_tensor_arith(dst<128| 512>=!b %b[d0, %i, d1], lhs<128| 512>=!t %t[d0, d1], rhs<128| 512>=!t %t[d0, d1], op=multiply) engine=vector
    nisa.release %t : !t
  }
  scf.for %i = %c0 to %c7 step %c1 {
    nisa.activation(dst<128| 512>=!b %o[d0, %i*2, d1], src<128| 512>=!b %b[d0, %i*2, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
    nisa.activation(dst<128| 512>=!b %o[d0, %i*2 + 1, d1], src<128| 512>=!b %b[d0, %i*2 + 2, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
  }
  nisa.release %b : !b
  nisa.release %o : !b
  return
}

}
