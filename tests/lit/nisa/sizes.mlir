// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s
// Operands together: sizes, types, PSUM.

#v = affine_map<(d0, d1) -> (d0, d1)>
!s = memref<64x64xf32, #nisa.mem<"sbuf">>
!p = memref<64x64xf32, #nisa.mem<"psum">>
!i = memref<64x64xi8, #nisa.mem<"sbuf">>
!h = memref<64x64xi32, #nisa.mem<"shared_hbm">>

func.func @cases(%h: !h) {
  %c0 = arith.constant 0 : index
  %a = "nisa.alloc"() : () -> !s
  %i = "nisa.alloc"() : () -> !i
  %p = "nisa.alloc"() : () -> !p
  %q = "nisa.alloc"() : () -> !p
  // CHECK: [[@LINE+1]]:3: error: nisa.reciprocal: src has 64 partitions of 32 elements, dst has 64 of 64
  "nisa.reciprocal"(%a, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 32>, src_par_dims = 1 : i32} : (!s, !s) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.tensor_tensor_arith: lhs and rhs are both in PSUM; the engine reads one operand there
  "nisa.tensor_tensor_arith"(%a, %p, %q) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, engine = "vector", op = "add", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, lhs_ap = #v, lhs_tile = array<i64: 64, 64>, lhs_par_dims = 1 : i32, rhs_ap = #v, rhs_tile = array<i64: 64, 64>, rhs_par_dims = 1 : i32} : (!s, !p, !p) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.tensor_scalar_arith: operand0 must have one element for each of the 64 partitions
  "nisa.tensor_scalar_arith"(%a, %a, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 0, 0>, engine = "vector", op0 = "add", reverse_operands = "none", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32, operand0_ap = #v, operand0_tile = array<i64: 64, 2>, operand0_par_dims = 1 : i32} : (!s, !s, !s) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.tensor_reduce_arith: dst has 64 partitions of 2 elements; the reduction leaves 64 of 1
  "nisa.tensor_reduce_arith"(%a, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", op = "add", negated = false, num_r_dim = 1 : i64, dst_ap = #v, dst_tile = array<i64: 64, 2>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!s, !s) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.cross_lane_reduce_arith: dst must be one partition of 64 elements
  "nisa.cross_lane_reduce_arith"(%a, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "gpsimd", reduce_op = "add", num_r_dim = 0 : i64, dst_ap = #v, dst_tile = array<i64: 2, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!s, !s) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.dma_transpose: DMA transposes elements of 2 or 4 bytes, without conversion
  "nisa.dma_transpose"(%i, %i) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", permutation = array<i64: 1, 0>, dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!i, !i) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.dma_copy: DMA does not convert between integer types
  "nisa.dma_copy"(%i, %h) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!i, !h) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.iota: it needs a coefficient for each dimension of dst
  "nisa.iota"(%i, %c0) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "gpsimd", coefficients = array<i64: 1>, dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32} : (!i, index) -> ()
  // CHECK: [[@LINE+1]]:8: error: memref.alloc: it is not a NISA operation, and it may not stand beside them
  %m = memref.alloc() : memref<4xf32>
  "nisa.release"(%q) : (!p) -> ()
  "nisa.release"(%p) : (!p) -> ()
  "nisa.release"(%i) : (!i) -> ()
  "nisa.release"(%a) : (!s) -> ()
  return
}
