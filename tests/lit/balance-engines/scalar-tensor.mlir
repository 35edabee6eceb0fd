// nisa text 1
// RUN: nkx opt --balance-engines --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// An operation with a number and then one with a tensor, both on Vector, become one instruction where that takes less time.

!s = memref<128x64xf32, #nisa.mem<sbuf>>
!c = memref<128x1xf32, #nisa.mem<sbuf>>
!p = memref<128x64xf32, #nisa.mem<psum>>
!long = memref<128x512xf32, #nisa.mem<sbuf>>
!wide = memref<128x512xf32, #nisa.mem<psum>>
!h = memref<128x512xbf16, #nisa.mem<sbuf>>

module attributes {nisa.target = #nisa.target<trn2>} {

// With a number.
// CHECK-LABEL: func.func @number
// CHECK:       nisa.scalar_tensor_tensor(dst<128| 64>={{.*}} %arg0[d0, d1], src<128| 64>={{.*}} %sbuf[d0, d1], operand0=f32 %cst, operand1<128| 64>={{.*}} %sbuf_0[d0, d1], op0=multiply, op1=add, reverse_operands=none) engine=vector
// CHECK-NOT:   engine=
// CHECK:       return
// REMARK:      scalar_tensor_tensor: 208 ns
// REMARK:      317 ns
func.func @number(%o: !s) {
  %x = nisa.alloc : !s
  %y = nisa.alloc : !s
  %c = nisa.alloc : !c
  %two = arith.constant 2.0 : f32
  %t = nisa.alloc : !s
  nisa.tensor_scalar_arith(dst<128| 64>=!s %t[d0, d1], src<128| 64>=!s %x[d0, d1], operand0=f32 %two, op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 64>=!s %o[d0, d1], lhs<128| 64>=!s %t[d0, d1], rhs<128| 64>=!s %y[d0, d1], op=add) engine=vector
  nisa.release %t : !s
  nisa.release %x : !s
  nisa.release %y : !s
  nisa.release %c : !c
  return
}

// With a column, where each operation has its other operand on the left.
// CHECK-LABEL: func.func @column
// CHECK:       nisa.scalar_tensor_tensor({{.*}}, src<128| 64>={{.*}} %sbuf[d0, d1], operand0<128| 1>={{.*}} %sbuf_1[d0, 0], operand1<128| 64>={{.*}} %sbuf_0[d0, d1], op0=subtract, op1=subtract, reverse_operands=both) engine=vector
// CHECK-NOT:   engine=
// CHECK:       return
func.func @column(%o: !s) {
  %x = nisa.alloc : !s
  %y = nisa.alloc : !s
  %c = nisa.alloc : !c
  %two = arith.constant 2.0 : f32
  %t = nisa.alloc : !s
  nisa.tensor_scalar_arith(dst<128| 64>=!s %t[d0, d1], src<128| 64>=!s %x[d0, d1], operand0<128| 1>=!c %c[d0, 0], op0=subtract, reverse_operands=first) engine=vector
  nisa.tensor_tensor_arith(dst<128| 64>=!s %o[d0, d1], lhs<128| 64>=!s %y[d0, d1], rhs<128| 64>=!s %t[d0, d1], op=subtract) engine=vector
  nisa.release %t : !s
  nisa.release %x : !s
  nisa.release %y : !s
  nisa.release %c : !c
  return
}

// A short row of PSUM: one start is saved.
// CHECK-LABEL: func.func @psum
// CHECK:       nisa.scalar_tensor_tensor({{.*}}operand1<128| 64>={{.*}}psum{{.*}} %psum[d0, d1]
func.func @psum(%o: !s) {
  %x = nisa.alloc : !s
  %y = nisa.alloc : !p
  %c = nisa.alloc : !c
  %two = arith.constant 2.0 : f32
  %t = nisa.alloc : !s
  nisa.tensor_scalar_arith(dst<128| 64>=!s %t[d0, d1], src<128| 64>=!s %x[d0, d1], operand0=f32 %two, op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 64>=!s %o[d0, d1], lhs<128| 64>=!s %t[d0, d1], rhs<128| 64>=!p %y[d0, d1], op=add) engine=vector
  nisa.release %t : !s
  nisa.release %x : !s
  nisa.release %y : !p
  nisa.release %c : !c
  return
}

// A long one: the two instructions take three quarters of the cycles.
// CHECK-LABEL: func.func @long_psum
// CHECK:       nisa.tensor_scalar_arith
// CHECK-NEXT:  nisa.tensor_tensor_arith
func.func @long_psum(%o: !long) {
  %x = nisa.alloc : !long
  %y = nisa.alloc : !wide
  %c = nisa.alloc : !c
  %two = arith.constant 2.0 : f32
  %t = nisa.alloc : !long
  nisa.tensor_scalar_arith(dst<128| 512>=!long %t[d0, d1], src<128| 512>=!long %x[d0, d1], operand0=f32 %two, op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 512>=!long %o[d0, d1], lhs<128| 512>=!long %t[d0, d1], rhs<128| 512>=!wide %y[d0, d1], op=add) engine=vector
  nisa.release %t : !long
  nisa.release %x : !long
  nisa.release %y : !wide
  nisa.release %c : !c
  return
}

// Short floats: the two take 1.25 cycles an element, the one takes two.
// CHECK-LABEL: func.func @short_floats
// CHECK:       nisa.tensor_scalar_arith
// CHECK-NEXT:  nisa.tensor_tensor_arith
func.func @short_floats(%o: !h) {
  %x = nisa.alloc : !h
  %y = nisa.alloc : !h
  %c = nisa.alloc : !c
  %two = arith.constant 2.0 : f32
  %t = nisa.alloc : !h
  nisa.tensor_scalar_arith(dst<128| 512>=!h %t[d0, d1], src<128| 512>=!h %x[d0, d1], operand0=f32 %two, op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 512>=!h %o[d0, d1], lhs<128| 512>=!h %t[d0, d1], rhs<128| 512>=!h %y[d0, d1], op=add) engine=vector
  nisa.release %t : !h
  nisa.release %x : !h
  nisa.release %y : !h
  nisa.release %c : !c
  return
}

// But one cycle for a difference times a tensor.
// CHECK-LABEL: func.func @fast
// CHECK:       nisa.scalar_tensor_tensor({{.*}}op0=subtract, op1=multiply
func.func @fast(%o: !h) {
  %x = nisa.alloc : !h
  %y = nisa.alloc : !h
  %c = nisa.alloc : !c
  %two = arith.constant 2.0 : f32
  %t = nisa.alloc : !h
  nisa.tensor_scalar_arith(dst<128| 512>=!h %t[d0, d1], src<128| 512>=!h %x[d0, d1], operand0=f32 %two, op0=subtract, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 512>=!h %o[d0, d1], lhs<128| 512>=!h %t[d0, d1], rhs<128| 512>=!h %y[d0, d1], op=multiply) engine=vector
  nisa.release %t : !h
  nisa.release %x : !h
  nisa.release %y : !h
  nisa.release %c : !c
  return
}

// What is between them is read again.
// CHECK-LABEL: func.func @read_again
// CHECK:       nisa.tensor_scalar_arith
// CHECK-NEXT:  nisa.tensor_tensor_arith
// CHECK-NEXT:  nisa.tensor_copy
func.func @read_again(%o: !s) {
  %x = nisa.alloc : !s
  %y = nisa.alloc : !s
  %c = nisa.alloc : !c
  %two = arith.constant 2.0 : f32
  %t = nisa.alloc : !s
  nisa.tensor_scalar_arith(dst<128| 64>=!s %t[d0, d1], src<128| 64>=!s %x[d0, d1], operand0=f32 %two, op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 64>=!s %o[d0, d1], lhs<128| 64>=!s %t[d0, d1], rhs<128| 64>=!s %y[d0, d1], op=add) engine=vector
  nisa.tensor_copy(dst<128| 64>=!s %y[d0, d1], src<128| 64>=!s %t[d0, d1]) engine=vector
  nisa.release %t : !s
  nisa.release %x : !s
  nisa.release %y : !s
  nisa.release %c : !c
  return
}

// The first source is overwritten before the second operation.
// CHECK-LABEL: func.func @overwritten
// CHECK:       nisa.tensor_scalar_arith
// CHECK-NEXT:  nisa.memset
// CHECK-NEXT:  nisa.tensor_tensor_arith
func.func @overwritten(%o: !s) {
  %x = nisa.alloc : !s
  %y = nisa.alloc : !s
  %c = nisa.alloc : !c
  %two = arith.constant 2.0 : f32
  %t = nisa.alloc : !s
  nisa.tensor_scalar_arith(dst<128| 64>=!s %t[d0, d1], src<128| 64>=!s %x[d0, d1], operand0=f32 %two, op0=multiply, reverse_operands=none) engine=vector
  nisa.memset(dst<128| 64>=!s %x[d0, d1], value=f32 %two) engine=gpsimd
  nisa.tensor_tensor_arith(dst<128| 64>=!s %o[d0, d1], lhs<128| 64>=!s %t[d0, d1], rhs<128| 64>=!s %y[d0, d1], op=add) engine=vector
  nisa.release %t : !s
  nisa.release %x : !s
  nisa.release %y : !s
  nisa.release %c : !c
  return
}

// A quotient: Vector divides by a tensor in an instruction of its own.
// CHECK-LABEL: func.func @divides
// CHECK:       nisa.tensor_scalar_arith
// CHECK-NEXT:  nisa.tensor_tensor_arith
func.func @divides(%o: !s) {
  %x = nisa.alloc : !s
  %y = nisa.alloc : !s
  %c = nisa.alloc : !c
  %two = arith.constant 2.0 : f32
  %t = nisa.alloc : !s
  nisa.tensor_scalar_arith(dst<128| 64>=!s %t[d0, d1], src<128| 64>=!s %x[d0, d1], operand0=f32 %two, op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 64>=!s %o[d0, d1], lhs<128| 64>=!s %t[d0, d1], rhs<128| 64>=!s %y[d0, d1], op=divide) engine=vector
  nisa.release %t : !s
  nisa.release %x : !s
  nisa.release %y : !s
  nisa.release %c : !c
  return
}

}
