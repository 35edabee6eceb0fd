// nisa text 1
// RUN: nkx opt --coalesce-transfers --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// A loop that also reduces rows keeps four rounds, each of which is several; what cannot be one instruction gets a loop of its own.

!t = memref<128x64xf32, #nisa.mem<sbuf>>
!c = memref<128x1xf32, #nisa.mem<sbuf>>
!x = memref<2048x64xf32, #nisa.mem<shared_hbm>>

module attributes {nisa.target = #nisa.target<trn2>} {

// REMARK: 4 rounds of 7 transfers and instructions become one: 40 instead of 112; the loop around them stays

// A softmax: the rounds are no part of the reduction, and what each row is multiplied by is repeated for its elements.
// CHECK-LABEL: func.func @softmax
// CHECK:       scf.for %[[I:.*]] = %c0{{.*}} to %c4
// CHECK:         nisa.dma_copy(dst<128| 4, 64>=
// CHECK:         nisa.tensor_reduce_arith(dst<128| 4, 1>={{.*}} %[[M:.*]][d0, d1, 0], src<128| 4, 64>={{.*}}[d0, d1, d2], op=max, negated=true, num_r_dim=1)
// CHECK:         nisa.memset(dst<128| 4, 1>=
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to %c4
// CHECK-NEXT:      nisa.activation(dst<128| 64>={{.*}}[d0, %[[J]], d1], reduce_res<128| 1>={{.*}}[d0, %[[J]], 0], src<128| 64>={{.*}}[d0, %[[J]], d1], bias<128| 1>={{.*}} %[[M]][d0, %[[J]], 0]
// CHECK:         nisa.reciprocal(dst<128| 4, 1>=
// CHECK:         nisa.tensor_tensor_arith(dst<128| 4, 64>={{.*}}, lhs<128| 4, 64>={{.*}}, rhs<128| 4, 64>={{.*}}[d0, d1, 0], op=multiply)
// CHECK:         nisa.dma_copy(dst<128| 4, 64>={{.*}} %arg1[%[[I]]*512 + d0 + d1*128, d2], src<128| 4, 64>=
func.func @softmax(%x: !x, %y: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c16 step %c1 {
    %0 = arith.muli %i, %c128 : index
    %a = nisa.alloc : !t
    %m = nisa.alloc : !c
    %s = nisa.alloc : !c
    nisa.dma_copy(dst<128| 64>=!t %a[d0, d1], src<128| 64>=!x %x[%0 + d0, d1]) engine=dma
    nisa.tensor_reduce_arith(dst<128| 1>=!c %m[d0, 0], src<128| 64>=!t %a[d0, d1], op=max, negated=true, num_r_dim=1) engine=vector
    nisa.memset(dst<128| 1>=!c %s[d0, d1], value=f32 %zero) engine=vector
    nisa.activation(dst<128| 64>=!t %a[d0, d1], reduce_res<128| 1>=!c %s[d0, 0], src<128| 64>=!t %a[d0, d1], bias<128| 1>=!c %m[d0, 0], scale=f32 %one, op=exp) engine=scalar
    nisa.reciprocal(dst<128| 1>=!c %s[d0, d1], src<128| 1>=!c %s[d0, d1]) engine=vector
    nisa.tensor_scalar_arith(dst<128| 64>=!t %a[d0, d1], src<128| 64>=!t %a[d0, d1], operand0<128| 1>=!c %s[d0, 0], op0=multiply, reverse_operands=none) engine=vector
    nisa.dma_copy(dst<128| 64>=!x %y[%0 + d0, d1], src<128| 64>=!t %a[d0, d1]) engine=dma
    nisa.release %s : !c
    nisa.release %m : !c
    nisa.release %a : !t
  }
  return
}

// The operand on the left stays on the left.
// CHECK-LABEL: func.func @left
// CHECK:         nisa.tensor_tensor_arith(dst<128| 4, 64>={{.*}}, lhs<128| 4, 64>={{.*}}[d0, d1, 0], rhs<128| 4, 64>={{.*}}, op=subtract)
func.func @left(%x: !x, %y: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %0 = arith.muli %i, %c128 : index
    %a = nisa.alloc : !t
    %m = nisa.alloc : !c
    nisa.dma_copy(dst<128| 64>=!t %a[d0, d1], src<128| 64>=!x %x[%0 + d0, d1]) engine=dma
    nisa.tensor_reduce_arith(dst<128| 1>=!c %m[d0, 0], src<128| 64>=!t %a[d0, d1], op=max, negated=false, num_r_dim=1) engine=vector
    nisa.tensor_scalar_arith(dst<128| 64>=!t %a[d0, d1], src<128| 64>=!t %a[d0, d1], operand0<128| 1>=!c %m[d0, 0], op0=subtract, reverse_operands=first) engine=vector
    nisa.dma_copy(dst<128| 64>=!x %y[%0 + d0, d1], src<128| 64>=!t %a[d0, d1]) engine=dma
    nisa.release %m : !c
    nisa.release %a : !t
  }
  return
}

// Three rounds do not leave four.
// CHECK-LABEL: func.func @few
// CHECK:         nisa.tensor_reduce_arith(dst<128| 1>=
func.func @few(%x: !x, %y: memref<384x1xf32, #nisa.mem<shared_hbm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c128 = arith.constant 128 : index
  scf.for %i = %c0 to %c3 step %c1 {
    %0 = arith.muli %i, %c128 : index
    %a = nisa.alloc : !t
    %m = nisa.alloc : !c
    nisa.dma_copy(dst<128| 64>=!t %a[d0, d1], src<128| 64>=!x %x[%0 + d0, d1]) engine=dma
    nisa.tensor_reduce_arith(dst<128| 1>=!c %m[d0, 0], src<128| 64>=!t %a[d0, d1], op=max, negated=false, num_r_dim=1) engine=vector
    nisa.dma_copy(dst<128| 1>=memref<384x1xf32, #nisa.mem<shared_hbm>> %y[%0 + d0, d1], src<128| 1>=!c %m[d0, d1]) engine=dma
    nisa.release %m : !c
    nisa.release %a : !t
  }
  return
}

}
