// nisa text 1
// Instructions that go along a partition, and a transpose: what the verifier demands of their operands.
// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s

!s = memref<64x64xf32, #nisa.mem<sbuf>>
!u = memref<64x8xi8, #nisa.mem<sbuf>>
!p = memref<64x64xf16, #nisa.mem<psum>>
!h = memref<64x64xbf16, #nisa.mem<sbuf>>
module attributes {nisa.target = #nisa.target<trn2>} {
  func.func @k() {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    %s = nisa.alloc : !s
    %u = nisa.alloc : !u
    %p = nisa.alloc : !p
    %h = nisa.alloc : !h
    // CHECK: nisa.tensor_tensor_scan: rhs has 64 partitions of 63 elements, dst has 64 of 64
    nisa.tensor_tensor_scan(dst<64| 64>=!s %s[d0, d1], lhs<64| 64>=!s %s[d0, d1], rhs<64| 63>=!s %s[d0, d1], initial=f32 %one, op0=add, op1=add, reverse_operands=none) engine=vector
    // CHECK: nisa.scalar_tensor_tensor: operand1 has 64 partitions of 63 elements, dst has 64 of 64
    nisa.scalar_tensor_tensor(dst<64| 64>=!s %s[d0, d1], src<64| 64>=!s %s[d0, d1], operand0=f32 %one, operand1<64| 63>=!s %s[d0, d1], op0=add, op1=add, reverse_operands=none) engine=vector
    // CHECK: nisa.scalar_tensor_tensor: operand0 must have one element for each of the 64 partitions
    nisa.scalar_tensor_tensor(dst<64| 64>=!s %s[d0, d1], src<64| 64>=!s %s[d0, d1], operand0<64| 2>=!s %s[d0, d1], operand1<64| 64>=!s %s[d0, d1], op0=add, op1=add, reverse_operands=none) engine=vector
    // CHECK: nisa.scalar_tensor_tensor: src and operand1 are both in PSUM
    nisa.scalar_tensor_tensor(dst<64| 64>=!s %s[d0, d1], src<64| 64>=!p %p[d0, d1], operand0=f32 %one, operand1<64| 64>=!p %p[d0, d1], op0=add, op1=add, reverse_operands=none) engine=vector
    // CHECK: nisa.tensor_scalar_cumulative: initial must have one element for each of the 64 partitions
    nisa.tensor_scalar_cumulative(dst<64| 64>=!s %s[d0, d1], src<64| 64>=!s %s[d0, d1], operand0=f32 %one, initial<64| 2>=!s %s[d0, d1], op0=add, op1=max) engine=vector
    // CHECK: nisa.bn_stats: dst has 5 elements in each partition, but it must have 6
    nisa.bn_stats(dst<64| 5>=!s %s[d0, d1], src<64| 64>=!s %s[d0, d1]) engine=vector
    // CHECK: nisa.bn_stats: src has 640 elements in each partition, but it must have 1 to 512
    nisa.bn_stats(dst<64| 6>=!s %s[d0, d1], src<64| 10, 64>=!s %s[d0, d2]) engine=vector
    // CHECK: nisa.bn_aggr: src must have groups of three elements
    nisa.bn_aggr(dst<64| 2>=!s %s[d0, d1], src<64| 64>=!s %s[d0, d1]) engine=vector
    // CHECK: nisa.max8: src has 7 elements in each partition, but it must have 8 to 16384
    nisa.max8(dst<64| 8>=!s %s[d0, d1], src<64| 7>=!s %s[d0, d1]) engine=vector
    // CHECK: nisa.find_index8: dst must be an integer of 16 or 32 bits
    nisa.find_index8(dst<64| 8>=!u %u[d0, d1], src<64| 64>=!s %s[d0, d1], values<64| 8>=!s %s[d0, d1]) engine=vector
    // CHECK: nisa.match_replace8: values has 9 elements in each partition, but it must have 8
    nisa.match_replace8(dst<64| 64>=!s %s[d0, d1], src<64| 64>=!s %s[d0, d1], values<64| 9>=!s %s[d0, d1], replacement=f32 %one) engine=vector
    // CHECK: nisa.matmul: a transpose does not convert its operand
    nisa.matmul(dst<64| 64>=!p %p[d0, d1], stationary<64| 64>=!h %h[d0, d1], moving<64| 64>=!h %h[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=true, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.release %h : !h
    nisa.release %p : !p
    nisa.release %u : !u
    nisa.release %s : !s
    return
  }
}
