// nisa text 1
// RUN: nkx opt --coalesce-transfers --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// A loop that only repeats an element-wise instruction becomes a longer instruction.

!blocks = memref<128x8x32x128xf32, #nisa.mem<sbuf>>
!tiles = memref<128x4x128xf32, #nisa.mem<sbuf>>
!column = memref<128x1xf32, #nisa.mem<sbuf>>
!columns = memref<128x4xf32, #nisa.mem<sbuf>>
!long = memref<128x4x256xf32, #nisa.mem<sbuf>>
!psum = memref<128x4x128xf32, #nisa.mem<psum>>

module attributes {nisa.target = #nisa.target<trn2>} {

// Of 8 x 32 tiles those of a row become two instructions; what is computed in place is no obstacle.
// CHECK-LABEL: func.func @blocks
// CHECK:       scf.for %i =
// CHECK:         scf.for %j = %{{[a-z0-9_]+}} to %c2
// CHECK-NEXT:      nisa.tensor_tensor_arith(dst<128| 16, 128>={{.*}} %arg0[d0, %i, %j*16 + d1, d2], lhs<128| 16, 128>={{.*}} %arg0[d0, %i, %j*16 + d1, d2], rhs<128| 16, 128>={{.*}} %arg1[d0, %i, %j*16 + d1, d2], op=multiply) engine=vector
// CHECK-NEXT:    }
// REMARK:      16 instructions of 128 elements per partition become one of 2048; the loop around it stays
func.func @blocks(%x: !blocks, %y: !blocks) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c32 step %c1 {
      nisa.tensor_tensor_arith(dst<128| 128>=!blocks %x[d0, %i, %j, d1], lhs<128| 128>=!blocks %x[d0, %i, %j, d1], rhs<128| 128>=!blocks %y[d0, %i, %j, d1], op=multiply) engine=vector
    }
  }
  return
}

// Rows with a gap, and a column that is the same for all of them.
// CHECK-LABEL: func.func @column
// CHECK-NOT:   scf.for
// CHECK:       nisa.tensor_scalar_arith(dst<128| 4, 120>={{.*}} %arg0[d0, d1, d2], src<128| 4, 120>={{.*}} %arg1[d0, d1, d2], operand0<128| 1>={{.*}} %arg2[d0, 0], op0=add, reverse_operands=none) engine=vector
// CHECK:       nisa.activation(dst<128| 4, 100>={{.*}} %arg0[d0, d1, d2], src<128| 4, 100>={{.*}} %arg1[d0, d1, d2 + 20], bias={{.*}}op=exp) engine=scalar
// CHECK:       return
func.func @column(%x: !tiles, %y: !tiles, %c: !column) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    nisa.tensor_scalar_arith(dst<128| 120>=!tiles %x[d0, %i, d1], src<128| 120>=!tiles %y[d0, %i, d1], operand0<128| 1>=!column %c[d0, 0], op0=add, reverse_operands=none) engine=vector
  }
  scf.for %i = %c0 to %c4 step %c1 {
    nisa.activation(dst<128| 100>=!tiles %x[d0, %i, d1], src<128| 100>=!tiles %y[d0, %i, d1 + 20], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
  }
  return
}

// These loops stay: another column in each round, a running sum, a source in PSUM, rounds that read what the one before wrote, and
// rounds that are not short.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-5: scf.for
// CHECK:       return
func.func @stay(%x: !tiles, %y: !tiles, %c: !columns, %s: !column, %p: !psum, %l: !long) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    nisa.tensor_scalar_arith(dst<128| 120>=!tiles %x[d0, %i, d1], src<128| 120>=!tiles %y[d0, %i, d1], operand0<128| 1>=!columns %c[d0, %i], op0=add, reverse_operands=none) engine=vector
  }
  scf.for %i = %c0 to %c4 step %c1 {
    nisa.activation(dst<128| 120>=!tiles %x[d0, %i, d1], reduce_res<128| 1>=!column %s[d0, 0], src<128| 120>=!tiles %y[d0, %i, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
  }
  scf.for %i = %c0 to %c4 step %c1 {
    nisa.tensor_copy(dst<128| 128>=!tiles %x[d0, %i, d1], src<128| 128>=!psum %p[d0, %i, d1]) engine=vector
  }
  scf.for %i = %c0 to %c3 step %c1 {
    nisa.tensor_copy(dst<128| 120>=!tiles %x[d0, %i + 1, d1], src<128| 120>=!tiles %x[d0, %i, d1]) engine=vector
  }
  scf.for %i = %c0 to %c4 step %c1 {
    nisa.reciprocal(dst<128| 256>=!long %l[d0, %i, d1], src<128| 256>=!long %l[d0, %i, d1]) engine=vector
  }
  return
}
}
