// nisa text 1
// RUN: nkx opt --schedule --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// The first part of a round is done before the last part of the round before it.

!x = memref<16x128x512xf32, #nisa.mem<shared_hbm>>
!h = memref<128x128xbf16, #nisa.mem<sbuf>>
!w = memref<128x512xbf16, #nisa.mem<sbuf>>
!t = memref<128x512xf32, #nisa.mem<sbuf>>
!e = memref<128x512xbf16, #nisa.mem<sbuf>>
!p = memref<128x512xf32, #nisa.mem<psum>>

module attributes {nisa.target = #nisa.target<trn2>} {

// A product, exp of it, and a product of that: Tensor has the next first product while the others compute.  The first one of all comes
// before the loop, which runs 15 times, and the rest of the last round after it.
// CHECK-LABEL: func.func @two_products
// CHECK:         %[[LAST:.*]] = arith.constant 15 : index
// CHECK:         %[[KEPT:.*]] = nisa.alloc {{.*}}: memref<128x512x{{.*}}sbuf
// CHECK:         nisa.matmul
// CHECK:         scf.for %[[I:.*]] = %c0 to %[[LAST]] step %c1 {
// CHECK:           nisa.matmul
// CHECK:           nisa.dma_copy(dst{{.*}}%arg0[%[[I]],
// CHECK:         }
// CHECK:         nisa.matmul
// CHECK-NOT:     nisa.activation
// CHECK:         nisa.dma_copy(dst{{.*}}%arg0[%[[LAST]],
// CHECK:         return
// REMARK:      the first {{[0-9]+}} of its {{[0-9]+}} steps beside the last {{[0-9]+}} of the round before: a round takes {{[0-9.]+}} us instead of {{[0-9.]+}}
func.func @two_products(%y: !x, %q: memref<128x16x128xbf16, #nisa.mem<sbuf>>, %k: !w, %v: memref<128x512xbf16, #nisa.mem<sbuf>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c16 step %c1 {
    %s = nisa.alloc : !p
    nisa.matmul(dst<128| 512>=!p %s[d0, d1], stationary<128| 128>=memref<128x16x128xbf16, #nisa.mem<sbuf>> %q[d0, %i, d1], moving<128| 512>=!w %k[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    %a = nisa.alloc : !t
    nisa.tensor_copy(dst<128| 512>=!t %a[d0, d1], src<128| 512>=!p %s[d0, d1]) engine=vector
    nisa.release %s : !p
    %e = nisa.alloc : !e
    nisa.activation(dst<128| 512>=!e %e[d0, d1], src<128| 512>=!t %a[d0, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
    nisa.release %a : !t
    %o = nisa.alloc : !p
    nisa.matmul(dst<128| 512>=!p %o[d0, d1], stationary<128| 128>=!e %e[d0, d1], moving<128| 512>=memref<128x512xbf16, #nisa.mem<sbuf>> %v[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.release %e : !e
    %r = nisa.alloc : !t
    nisa.tensor_copy(dst<128| 512>=!t %r[d0, d1], src<128| 512>=!p %o[d0, d1]) engine=vector
    nisa.release %o : !p
    nisa.dma_copy(dst<128| 512>=!x %y[%i, d0, d1], src<128| 512>=!t %r[d0, d1]) engine=dma
    nisa.release %r : !t
  }
  return
}

// The end writes what the next round's first part reads: the rounds follow each other.
// CHECK-LABEL: func.func @carried
// CHECK:         scf.for %{{.*}} = %c0 to %c16 step %c1 {
func.func @carried(%q: !h, %k: !w, %v: memref<128x512xbf16, #nisa.mem<sbuf>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c16 step %c1 {
    %s = nisa.alloc : !p
    nisa.matmul(dst<128| 512>=!p %s[d0, d1], stationary<128| 128>=!h %q[d0, d1], moving<128| 512>=!w %k[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    %e = nisa.alloc : !e
    nisa.activation(dst<128| 512>=!e %e[d0, d1], src<128| 512>=!p %s[d0, d1], bias=f32 %zero, scale=f32 %one, op=exp) engine=scalar
    nisa.release %s : !p
    %o = nisa.alloc : !p
    nisa.matmul(dst<128| 512>=!p %o[d0, d1], stationary<128| 128>=!e %e[d0, d1], moving<128| 512>=memref<128x512xbf16, #nisa.mem<sbuf>> %v[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.release %e : !e
    nisa.tensor_copy(dst<128| 512>=!w %k[d0, d1], src<128| 512>=!p %o[d0, d1]) engine=vector
    nisa.release %o : !p
  }
  return
}
}
