// nisa text 1
// Products of packed elements with scales, and how they are made: what the verifier demands.
// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s

!x = memref<64x64xi32, #nisa.mem<sbuf>>
!e = memref<64x64xi8, #nisa.mem<sbuf>>
!f = memref<64x64xi16, #nisa.mem<sbuf>>
!h = memref<64x64xbf16, #nisa.mem<sbuf>>
!p = memref<64x64xf32, #nisa.mem<psum>>
module attributes {nisa.target = #nisa.target<trn3>} {
  func.func @k() {
    %c0 = arith.constant 0 : index
    %c96 = arith.constant 96 : index
    %x = nisa.alloc : !x
    %e = nisa.alloc : !e
    %f = nisa.alloc : !f
    %h = nisa.alloc : !h
    %p = nisa.alloc : !p
    // these are right
    nisa.quantize_mx(dst<64| 16>=!x %x[d0, d1], dst_scale<64| 16>=!e %e[d0, d1], src<64| 64>=!h %h[d0, d1], format=f8E4M3FN) engine=vector
    nisa.matmul_mx(dst<16| 8>=!p %p[d0, d1], stationary<64| 16>=!x %x[d0, d1], moving<64| 8>=!f %f[d0, d1], stationary_scale<36| 16>=!e %e[d0, d1], moving_scale<64| 8>=!e %e[d0, d1], row_pos=index %c0, moving_format=f4E2M1FN, stationary_format=f8E5M2) engine=tensor
    // CHECK: nisa.quantize_mx: src must be bf16 or f16
    nisa.quantize_mx(dst<64| 16>=!x %x[d0, d1], dst_scale<64| 16>=!e %e[d0, d1], src<64| 64>=!e %e[d0, d1], format=f8E4M3FN) engine=vector
    // CHECK: nisa.quantize_mx: src must have dst's partitions, and four elements for each of dst's
    nisa.quantize_mx(dst<64| 16>=!x %x[d0, d1], dst_scale<64| 16>=!e %e[d0, d1], src<64| 63>=!h %h[d0, d1], format=f8E4M3FN) engine=vector
    // CHECK: nisa.quantize_mx: dst has 48 partitions, which are no groups of 32
    nisa.quantize_mx(dst<48| 16>=!x %x[d0, d1], dst_scale<48| 16>=!e %e[d0, d1], src<48| 64>=!h %h[d0, d1], format=f8E4M3FN) engine=vector
    // CHECK: nisa.matmul_mx: moving must be integers of 16 bits, which have four f4E2M1FN
    nisa.matmul_mx(dst<16| 8>=!p %p[d0, d1], stationary<64| 16>=!x %x[d0, d1], moving<64| 8>=!x %x[d0, d1], stationary_scale<64| 16>=!e %e[d0, d1], moving_scale<64| 8>=!e %e[d0, d1], row_pos=index %c0, moving_format=f4E2M1FN, stationary_format=f8E5M2) engine=tensor
    // CHECK: nisa.matmul_mx: stationary_scale must be integers of 8 bits
    nisa.matmul_mx(dst<16| 8>=!p %p[d0, d1], stationary<64| 16>=!x %x[d0, d1], moving<64| 8>=!f %f[d0, d1], stationary_scale<64| 16>=!f %f[d0, d1], moving_scale<64| 8>=!e %e[d0, d1], row_pos=index %c0, moving_format=f4E2M1FN, stationary_format=f8E5M2) engine=tensor
    // CHECK: nisa.matmul_mx: moving_scale has 35 partitions of 8 elements, which do not fit moving
    nisa.matmul_mx(dst<16| 8>=!p %p[d0, d1], stationary<64| 16>=!x %x[d0, d1], moving<64| 8>=!f %f[d0, d1], stationary_scale<64| 16>=!e %e[d0, d1], moving_scale<35| 8>=!e %e[d0, d1], row_pos=index %c0, moving_format=f4E2M1FN, stationary_format=f8E5M2) engine=tensor
    // CHECK: nisa.matmul_mx: row_pos must be 0, 32, 64 or 96, with the product inside the array
    nisa.matmul_mx(dst<16| 8>=!p %p[d0, d1], stationary<64| 16>=!x %x[d0, d1], moving<64| 8>=!f %f[d0, d1], stationary_scale<64| 16>=!e %e[d0, d1], moving_scale<64| 8>=!e %e[d0, d1], row_pos=index %c96, moving_format=f4E2M1FN, stationary_format=f8E5M2) engine=tensor
    // CHECK: nisa.matmul_mx: dst is 16 x 9, the product 16 x 8
    nisa.matmul_mx(dst<16| 9>=!p %p[d0, d1], stationary<64| 16>=!x %x[d0, d1], moving<64| 8>=!f %f[d0, d1], stationary_scale<64| 16>=!e %e[d0, d1], moving_scale<64| 8>=!e %e[d0, d1], row_pos=index %c0, moving_format=f4E2M1FN, stationary_format=f8E5M2) engine=tensor
    nisa.release %p : !p
    nisa.release %h : !h
    nisa.release %f : !f
    nisa.release %e : !e
    nisa.release %x : !x
    return
  }
}
