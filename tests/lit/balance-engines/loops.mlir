// nisa text 1
// RUN: nkx opt --balance-engines --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// Loops divide their element-wise work among Vector, Scalar and GpSimd.

!x = memref<4096x1024xf32, #nisa.mem<shared_hbm>>
!t = memref<128x1024xf32, #nisa.mem<sbuf>>
!i = memref<128x1024xi32, #nisa.mem<sbuf>>
!c = memref<128x1xf32, #nisa.mem<sbuf>>
!p = memref<128x512xf32, #nisa.mem<psum>>
!h = memref<128x512xbf16, #nisa.mem<sbuf>>

module attributes {nisa.target = #nisa.target<trn2>} {

// Three products of two tensors take Vector longer than the transfers: GpSimd computes some of them.
// CHECK-LABEL: func.func @pairs
// CHECK:         nisa.tensor_tensor_arith({{.*}}op=add) engine=gpsimd
// CHECK:         nisa.tensor_tensor_arith({{.*}}op=multiply) engine=gpsimd
// CHECK:         nisa.tensor_tensor_arith({{.*}}op=subtract) engine=vector
// REMARK-DAG:  tensor_tensor_arith on gpsimd: a round of its loop takes {{[0-9.]+}} us instead of {{[0-9.]+}}
func.func @pairs(%x: !x, %y: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    %a = nisa.alloc : !t
    %b = nisa.alloc : !t
    %d = nisa.alloc : !t
    %e = nisa.alloc : !t
    nisa.dma_copy(dst<128| 1024>=!t %a[d0, d1], src<128| 1024>=!x %x[%i*128 + d0, d1]) engine=dma
    nisa.tensor_tensor_arith(dst<128| 1024>=!t %b[d0, d1], lhs<128| 1024>=!t %a[d0, d1], rhs<128| 1024>=!t %a[d0, d1], op=add) engine=vector
    nisa.tensor_tensor_arith(dst<128| 1024>=!t %d[d0, d1], lhs<128| 1024>=!t %b[d0, d1], rhs<128| 1024>=!t %a[d0, d1], op=multiply) engine=vector
    nisa.tensor_tensor_arith(dst<128| 1024>=!t %e[d0, d1], lhs<128| 1024>=!t %d[d0, d1], rhs<128| 1024>=!t %a[d0, d1], op=subtract) engine=vector
    nisa.dma_copy(dst<128| 1024>=!x %y[%i*128 + d0, d1], src<128| 1024>=!t %e[d0, d1]) engine=dma
    nisa.release %a : !t
    nisa.release %b : !t
    nisa.release %d : !t
    nisa.release %e : !t
  }
  return
}

// A value times itself is an activation of Scalar.  Each round has a place of its own in the long buffers, so that none waits for
// the one before: while Scalar computes the squares of a round, Vector subtracts in the next one.
// CHECK-LABEL: func.func @squares
// CHECK:         nisa.tensor_scalar_arith({{.*}}op0=subtract{{.*}}) engine=vector
// CHECK:         nisa.activation(dst<128| 1024>={{.*}} %arg1[d0, %i, d1], src<128| 1024>={{.*}} %arg0[d0, %i, d1], bias=f32 {{.*}}, op=square) engine=scalar
func.func @squares(%x: memref<128x32x1024xf32, #nisa.mem<sbuf>>, %y: memref<128x32x1024xf32, #nisa.mem<sbuf>>, %c: !c) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    nisa.tensor_scalar_arith(dst<128| 1024>=memref<128x32x1024xf32, #nisa.mem<sbuf>> %x[d0, %i, d1], src<128| 1024>=memref<128x32x1024xf32, #nisa.mem<sbuf>> %x[d0, %i, d1], operand0<128| 1>=!c %c[d0, 0], op0=subtract, reverse_operands=none) engine=vector
    nisa.tensor_tensor_arith(dst<128| 1024>=memref<128x32x1024xf32, #nisa.mem<sbuf>> %y[d0, %i, d1], lhs<128| 1024>=memref<128x32x1024xf32, #nisa.mem<sbuf>> %x[d0, %i, d1], rhs<128| 1024>=memref<128x32x1024xf32, #nisa.mem<sbuf>> %x[d0, %i, d1], op=multiply) engine=vector
  }
  return
}

// What leaves PSUM can go through Scalar, but not through GpSimd.
// CHECK-LABEL: func.func @out_of_psum
// CHECK:         nisa.tensor_copy({{.*}}) engine=scalar
// CHECK-NOT:     engine=gpsimd
// CHECK:         return
func.func @out_of_psum(%w: !h, %x: !h, %o: !h) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    %p = nisa.alloc : !p
    %q = nisa.alloc : !p
    nisa.matmul(dst<128| 512>=!p %p[d0, d1], stationary<128| 128>=!h %w[d0, d1], moving<128| 512>=!h %x[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.tensor_copy(dst<128| 512>=!h %o[d0, d1], src<128| 512>=!p %p[d0, d1]) engine=vector
    nisa.matmul(dst<128| 512>=!p %q[d0, d1], stationary<128| 128>=!h %w[d0, d1], moving<128| 512>=!h %x[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.tensor_copy(dst<128| 512>=!h %x[d0, d1], src<128| 512>=!p %q[d0, d1]) engine=vector
    nisa.release %p : !p
    nisa.release %q : !p
  }
  return
}

// A scale with a bias, and a rectified scale, are activations on Scalar.
// CHECK-LABEL: func.func @activations
// CHECK:         nisa.activation({{.*}}bias=f32 %cst{{.*}}, scale<128| 1>={{.*}}op=copy) engine=scalar
// CHECK:         nisa.activation({{.*}}op=relu) engine=scalar
func.func @activations(%x: !p, %s: !c, %y: !t) {
  %two = arith.constant 2.0 : f32
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    %a = nisa.alloc : !t
    nisa.tensor_tensor_arith(dst<128| 1024>=!t %a[d0, d1], lhs<128| 1024>=!t %y[d0, d1], rhs<128| 1024>=!t %y[d0, d1], op=add) engine=vector
    nisa.tensor_tensor_arith(dst<128| 1024>=!t %a[d0, d1], lhs<128| 1024>=!t %y[d0, d1], rhs<128| 1024>=!t %y[d0, d1], op=add) engine=vector
    nisa.release %a : !t
    %b = nisa.alloc : !t
    nisa.tensor_scalar_arith(dst<128| 512>=!t %b[d0, d1], src<128| 512>=!p %x[d0, d1], operand0<128| 1>=!c %s[d0, 0], operand1=f32 %two, op0=multiply, op1=add, reverse_operands=none) engine=vector
    nisa.tensor_scalar_arith(dst<128| 512>=!t %b[d0, d1 + 512], src<128| 512>=!p %x[d0, d1], operand0=f32 %two, operand1=f32 %zero, op0=multiply, op1=max, reverse_operands=none) engine=vector
    nisa.release %b : !t
  }
  return
}

// Integers stay, because GpSimd does not compute them in f32; and what is in no loop stays.
// CHECK-LABEL: func.func @stay
// CHECK-NOT:     engine=gpsimd
// CHECK:         return
func.func @stay(%x: !i, %y: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    nisa.tensor_tensor_arith(dst<128| 1024>=!i %x[d0, d1], lhs<128| 1024>=!i %x[d0, d1], rhs<128| 1024>=!i %x[d0, d1], op=max) engine=vector
  }
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %y[d0, d1], lhs<128| 1024>=!t %y[d0, d1], rhs<128| 1024>=!t %y[d0, d1], op=add) engine=vector
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %y[d0, d1], lhs<128| 1024>=!t %y[d0, d1], rhs<128| 1024>=!t %y[d0, d1], op=add) engine=vector
  return
}

// The transfers of a round take longer than what Vector does.
// CHECK-LABEL: func.func @waits_for_memory
// CHECK-NOT:     engine=gpsimd
// CHECK:         return
func.func @waits_for_memory(%x: !x, %y: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    %a = nisa.alloc : !t
    %b = nisa.alloc : !t
    nisa.dma_copy(dst<128| 1024>=!t %a[d0, d1], src<128| 1024>=!x %x[%i*128 + d0, d1]) engine=dma
    nisa.tensor_tensor_arith(dst<128| 1024>=!t %b[d0, d1], lhs<128| 1024>=!t %a[d0, d1], rhs<128| 1024>=!t %a[d0, d1], op=add) engine=vector
    nisa.dma_copy(dst<128| 1024>=!x %y[%i*128 + d0, d1], src<128| 1024>=!t %b[d0, d1]) engine=dma
    nisa.release %a : !t
    nisa.release %b : !t
  }
  return
}

// In no loop: a sum of products keeps Vector busy for most of the program, so that another engine adds while Vector computes the next
// product.
// CHECK-LABEL: func.func @program
// CHECK:         nisa.tensor_scalar_arith({{.*}}op0=multiply{{.*}}) engine=vector
// CHECK:         nisa.tensor_tensor_arith({{.*}}op=add) engine=gpsimd
// CHECK:         nisa.tensor_scalar_arith({{.*}}op0=multiply{{.*}}) engine=vector
// REMARK-DAG:  tensor_tensor_arith on gpsimd: the program takes {{[0-9.]+}} us instead of {{[0-9.]+}}
func.func @program(%a: !t, %r: !t, %s: !t, %c: !c) {
  %p0 = nisa.alloc : !t
  nisa.tensor_scalar_arith(dst<128| 1024>=!t %p0[d0, d1], src<128| 1024>=!t %a[d0, d1], operand0<128| 1>=!c %c[d0, 0], op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %s[d0, d1], lhs<128| 1024>=!t %r[d0, d1], rhs<128| 1024>=!t %p0[d0, d1], op=add) engine=vector
  nisa.release %p0 : !t
  %p1 = nisa.alloc : !t
  nisa.tensor_scalar_arith(dst<128| 1024>=!t %p1[d0, d1], src<128| 1024>=!t %a[d0, d1], operand0<128| 1>=!c %c[d0, 0], op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %r[d0, d1], lhs<128| 1024>=!t %s[d0, d1], rhs<128| 1024>=!t %p1[d0, d1], op=add) engine=vector
  nisa.release %p1 : !t
  %p2 = nisa.alloc : !t
  nisa.tensor_scalar_arith(dst<128| 1024>=!t %p2[d0, d1], src<128| 1024>=!t %a[d0, d1], operand0<128| 1>=!c %c[d0, 0], op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %s[d0, d1], lhs<128| 1024>=!t %r[d0, d1], rhs<128| 1024>=!t %p2[d0, d1], op=add) engine=vector
  nisa.release %p2 : !t
  %p3 = nisa.alloc : !t
  nisa.tensor_scalar_arith(dst<128| 1024>=!t %p3[d0, d1], src<128| 1024>=!t %a[d0, d1], operand0<128| 1>=!c %c[d0, 0], op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %r[d0, d1], lhs<128| 1024>=!t %s[d0, d1], rhs<128| 1024>=!t %p3[d0, d1], op=add) engine=vector
  nisa.release %p3 : !t
  %p4 = nisa.alloc : !t
  nisa.tensor_scalar_arith(dst<128| 1024>=!t %p4[d0, d1], src<128| 1024>=!t %a[d0, d1], operand0<128| 1>=!c %c[d0, 0], op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %s[d0, d1], lhs<128| 1024>=!t %r[d0, d1], rhs<128| 1024>=!t %p4[d0, d1], op=add) engine=vector
  nisa.release %p4 : !t
  %p5 = nisa.alloc : !t
  nisa.tensor_scalar_arith(dst<128| 1024>=!t %p5[d0, d1], src<128| 1024>=!t %a[d0, d1], operand0<128| 1>=!c %c[d0, 0], op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %r[d0, d1], lhs<128| 1024>=!t %s[d0, d1], rhs<128| 1024>=!t %p5[d0, d1], op=add) engine=vector
  nisa.release %p5 : !t
  %p6 = nisa.alloc : !t
  nisa.tensor_scalar_arith(dst<128| 1024>=!t %p6[d0, d1], src<128| 1024>=!t %a[d0, d1], operand0<128| 1>=!c %c[d0, 0], op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %s[d0, d1], lhs<128| 1024>=!t %r[d0, d1], rhs<128| 1024>=!t %p6[d0, d1], op=add) engine=vector
  nisa.release %p6 : !t
  %p7 = nisa.alloc : !t
  nisa.tensor_scalar_arith(dst<128| 1024>=!t %p7[d0, d1], src<128| 1024>=!t %a[d0, d1], operand0<128| 1>=!c %c[d0, 0], op0=multiply, reverse_operands=none) engine=vector
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %r[d0, d1], lhs<128| 1024>=!t %s[d0, d1], rhs<128| 1024>=!t %p7[d0, d1], op=add) engine=vector
  nisa.release %p7 : !t
  return
}

}
