// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s
// What one operand may be.  Each case has its line in the message.

#v = affine_map<(d0, d1) -> (d0, d1)>
#high = affine_map<(d0, d1) -> (d0 + 32, d1)>
#odd = affine_map<(d0, d1)[s0] -> (d0 + s0, d1)>
#turn = affine_map<(d0, d1) -> (d1, d0)>
#rep = affine_map<(d0, d1) -> (0, d1)>
#five = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4, d5)>
!s = memref<128x64xf32, #nisa.mem<"sbuf">>
!p = memref<128x64xf32, #nisa.mem<"psum">>
!h = memref<256x64xf32, #nisa.mem<"shared_hbm">>
!w = memref<8x4x4x4x4x4xf32, #nisa.mem<"sbuf">>

func.func @cases(%h: !h, %d: memref<64x64xf64, #nisa.mem<"shared_hbm">>, %q: index) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = "nisa.alloc"() : () -> !s
  %p = "nisa.alloc"() : () -> !p
  %w = "nisa.alloc"() : () -> !w
  %u = "nisa.alloc"() : () -> !w
  // CHECK: [[@LINE+1]]:3: error: nisa.reciprocal: src is in shared_hbm, which the vector engine does not read
  "nisa.reciprocal"(%a, %h) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!s, !h) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.memset: dst is in psum, which the gpsimd engine does not write
  "nisa.memset"(%p, %one) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "gpsimd", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32} : (!p, f32) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.dma_copy: src is in psum, which the dma engine does not read
  "nisa.dma_copy"(%h, %p) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!h, !p) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.memset: dst takes 96 partitions, which must start at partition 0
  "nisa.memset"(%a, %one) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #high, dst_tile = array<i64: 96, 64>, dst_par_dims = 1 : i32} : (!s, f32) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.memset: dst takes 64 partitions, which must start at partition 0 or 64
  "nisa.memset"(%a, %one) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #high, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32} : (!s, f32) -> ()
  %half = arith.constant 1 : i16
  // CHECK: [[@LINE+1]]:3: error: nisa.tensor_scalar_arith: bits of floats need one width, but operand0 has another than dst
  "nisa.tensor_scalar_arith"(%a, %a, %half) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 0, 0>, engine = "vector", op0 = "bitwise_or", reverse_operands = "none", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!s, !s, i16) -> ()
  // 32 partitions may start at 32
  "nisa.memset"(%a, %one) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #high, dst_tile = array<i64: 32, 64>, dst_par_dims = 1 : i32} : (!s, f32) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.memset: dst takes 16 partitions, which must start at partition 0, 32, 64 or 96
  "nisa.memset"(%a, %q, %one) {operandSegmentSizes = array<i32: 1, 1, 1, 0>, engine = "vector", dst_ap = #odd, dst_tile = array<i64: 16, 64>, dst_par_dims = 1 : i32} : (!s, index, f32) -> ()
  scf.for %i = %c0 to %c2 step %c1 {
    %c64 = arith.constant 64 : index
    %at = arith.muli %i, %c64 : index
    // at 0 and at 64
    "nisa.memset"(%a, %at, %one) {operandSegmentSizes = array<i32: 1, 1, 1, 0>, engine = "vector", dst_ap = #odd, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32} : (!s, index, f32) -> ()
    // CHECK: [[@LINE+2]]:5: error: nisa.memset: index 0 of dst goes from 0 to 191; the dimension has 128
    // CHECK: [[@LINE+1]]:5: error: nisa.memset: dst takes 128 partitions, which must start at partition 0
    "nisa.memset"(%a, %at, %one) {operandSegmentSizes = array<i32: 1, 1, 1, 0>, engine = "vector", dst_ap = #odd, dst_tile = array<i64: 128, 64>, dst_par_dims = 1 : i32} : (!s, index, f32) -> ()
  }
  // CHECK: [[@LINE+1]]:3: error: nisa.reciprocal: src does not take consecutive partitions
  "nisa.reciprocal"(%a, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #turn, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!s, !s) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.reciprocal: src repeats one partition, which only DMA can read
  "nisa.reciprocal"(%a, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #rep, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!s, !s) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.dma_copy: dst is written several times: no index depends on d0
  "nisa.dma_copy"(%h, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #rep, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!h, !s) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.reciprocal: src needs 5 free dimensions; an access pattern has 4
  "nisa.reciprocal"(%u, %w) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #five, dst_tile = array<i64: 8, 4, 4, 4, 4, 4>, dst_par_dims = 1 : i32, src_ap = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d5, d4, d3, d2, d1)>, src_tile = array<i64: 8, 4, 4, 4, 4, 4>, src_par_dims = 1 : i32} : (!w, !w) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.memset: an operand lacks its _ap, _tile or _par_dims
  "nisa.memset"(%a, %one) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i32: 64, 64>, dst_par_dims = 1 : i32} : (!s, f32) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.memset: a tile needs at least one partition and one free dimension
  "nisa.memset"(%a, %one) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 2 : i32} : (!s, f32) -> ()
  "nisa.release"(%u) : (!w) -> ()
  "nisa.release"(%w) : (!w) -> ()
  "nisa.release"(%p) : (!p) -> ()
  "nisa.release"(%a) : (!s) -> ()
  return
}
