// nisa text 1
// RUN: nkx opt --schedule=parts=0 --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// What is in no loop gets an order, too, if the simulated program is shorter with it.

!x = memref<128x1024xf32, #nisa.mem<shared_hbm>>
!t = memref<128x1024xf32, #nisa.mem<sbuf>>

module attributes {nisa.target = #nisa.target<trn2>} {

// Scalar begins with what needs the first array only, while Vector computes what it waits for in the program's order.
// CHECK-LABEL: func.func @two_results
// CHECK:         nisa.activation(dst{{.*}}%[[SECOND:.*]][d0, d1], src{{.*}}op=tanh
// CHECK:         nisa.activation(dst{{.*}}, src{{.*}}op=exp
// CHECK:         return
// REMARK:      the {{[0-9]+}} steps in another order: the program takes {{[0-9.]+}} us instead of {{[0-9.]+}}
func.func @two_results(%a: !x, %b: !x) -> (!x, !x) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %y = nisa.alloc : !x
  %z = nisa.alloc : !x
  %ta = nisa.alloc : !t
  nisa.dma_copy(dst<128| 1024>=!t %ta[d0, d1], src<128| 1024>=!x %a[d0, d1]) engine=dma
  %tb = nisa.alloc : !t
  nisa.dma_copy(dst<128| 1024>=!t %tb[d0, d1], src<128| 1024>=!x %b[d0, d1]) engine=dma
  %m = nisa.alloc : !t
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %m[d0, d1], lhs<128| 1024>=!t %tb[d0, d1], rhs<128| 1024>=!t %tb[d0, d1], op=multiply) engine=vector
  %n = nisa.alloc : !t
  nisa.tensor_tensor_arith(dst<128| 1024>=!t %n[d0, d1], lhs<128| 1024>=!t %m[d0, d1], rhs<128| 1024>=!t %tb[d0, d1], op=add) engine=vector
  %e = nisa.alloc : !t
  nisa.activation(dst<128| 1024>=!t %e[d0, d1], src<128| 1024>=!t %n[d0, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
  nisa.dma_copy(dst<128| 1024>=!x %y[d0, d1], src<128| 1024>=!t %e[d0, d1]) engine=dma
  %f = nisa.alloc : !t
  nisa.activation(dst<128| 1024>=!t %f[d0, d1], src<128| 1024>=!t %ta[d0, d1], bias=f32 %zero, scale=f32 %one, op=tanh) engine=scalar
  nisa.dma_copy(dst<128| 1024>=!x %z[d0, d1], src<128| 1024>=!t %f[d0, d1]) engine=dma
  nisa.release %ta : !t
  nisa.release %tb : !t
  nisa.release %m : !t
  nisa.release %n : !t
  nisa.release %e : !t
  nisa.release %f : !t
  return %y, %z : !x, !x
}
}
