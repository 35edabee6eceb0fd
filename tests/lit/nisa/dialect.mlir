// RUN: nkx opt --nisa-verify %s | FileCheck %s
// RUN: mlir-opt %s | FileCheck %s
// Every operation in its generic form.

#v = affine_map<(d0, d1) -> (d0, d1)>
#at = affine_map<(d0, d1)[s0] -> (d0 + s0, d1)>
#first = affine_map<(d0, d1) -> (d0, 0)>
#none = affine_map<(d0, d1) -> (0, d1)>
!sbuf = memref<64x64xf32, #nisa.mem<"sbuf">>
!psum = memref<64x64xf32, #nisa.mem<"psum">>
!hbm = memref<256x64xf32, #nisa.mem<"shared_hbm">>
!idx = memref<64x1xi32, #nisa.mem<"sbuf">>
!half = memref<64x2xi16, #nisa.mem<"sbuf">>
!places = memref<64x8xi32, #nisa.mem<"sbuf">>
!row = memref<1x64xf32, #nisa.mem<"sbuf">>

// CHECK: nisa.target = #nisa.target<"trn2">
module attributes {nisa.target = #nisa.target<"trn2">} {
  func.func @all(%h: !hbm, %i: index) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %a = "nisa.alloc"() {alignment = 64 : i64} : () -> !sbuf
    %b = "nisa.alloc"() : () -> !sbuf
    %p = "nisa.alloc"() : () -> !psum
    %x = "nisa.alloc"() : () -> !idx
    %r = "nisa.alloc"() : () -> !row
    %y = "nisa.alloc"() : () -> !places
    // CHECK: "nisa.dma_copy"
    "nisa.dma_copy"(%a, %h, %i) {operandSegmentSizes = array<i32: 1, 0, 1, 1>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #at, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!sbuf, !hbm, index) -> ()
    // CHECK: "nisa.dma_transpose"
    "nisa.dma_transpose"(%b, %h, %i) {operandSegmentSizes = array<i32: 1, 0, 1, 1>, engine = "dma", permutation = array<i64: 1, 0>, dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #at, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!sbuf, !hbm, index) -> ()
    // CHECK: "nisa.all_gather"
    "nisa.all_gather"(%h, %h) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dim = 0 : i64, dst_ap = #v, dst_tile = array<i64: 256, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 256, 64>, src_par_dims = 1 : i32} : (!hbm, !hbm) -> ()
    // CHECK: "nisa.all_reduce"
    "nisa.all_reduce"(%h, %h) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", op = "add", replica_groups = dense<[[0]]> : tensor<1x1xi64>, dst_ap = #v, dst_tile = array<i64: 256, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 256, 64>, src_par_dims = 1 : i32} : (!hbm, !hbm) -> ()
    // CHECK: "nisa.reduce_scatter"
    "nisa.reduce_scatter"(%h, %h) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dim = 1 : i64, op = "min", dst_ap = #v, dst_tile = array<i64: 256, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 256, 64>, src_par_dims = 1 : i32} : (!hbm, !hbm) -> ()
    // CHECK: "nisa.all_to_all"
    "nisa.all_to_all"(%h, %h) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dim = 0 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>, dst_ap = #v, dst_tile = array<i64: 256, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 256, 64>, src_par_dims = 1 : i32} : (!hbm, !hbm) -> ()
    // CHECK: "nisa.collective_permute"
    "nisa.collective_permute"(%h, %h) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>, dst_ap = #v, dst_tile = array<i64: 256, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 256, 64>, src_par_dims = 1 : i32} : (!hbm, !hbm) -> ()
    // CHECK: "nisa.iota"
    "nisa.iota"(%x, %i) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "gpsimd", coefficients = array<i64: 1, 0>, dst_ap = #v, dst_tile = array<i64: 64, 1>, dst_par_dims = 1 : i32} : (!idx, index) -> ()
    // CHECK: "nisa.dma_copy_indirect"
    "nisa.dma_copy_indirect"(%a, %h, %x) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, engine = "dma", src_index_dim = 0 : i64, src_indirect_max_index = 256 : i64, dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #none, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32, src_index_ap = #v, src_index_tile = array<i64: 64, 1>, src_index_par_dims = 1 : i32} : (!sbuf, !hbm, !idx) -> ()
    // CHECK: "nisa.matmul"
    "nisa.matmul"(%p, %a, %b, %c0, %c0) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>, engine = "tensor", is_transpose = false, perf_opt = "none_", psum_zero_region = "size2048", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, stationary_ap = #v, stationary_tile = array<i64: 64, 64>, stationary_par_dims = 1 : i32, moving_ap = #v, moving_tile = array<i64: 64, 64>, moving_par_dims = 1 : i32} : (!psum, !sbuf, !sbuf, index, index) -> ()
    // CHECK: "nisa.tensor_copy"
    "nisa.tensor_copy"(%a, %p) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!sbuf, !psum) -> ()
    // CHECK: "nisa.tensor_copy_predicated"
    "nisa.tensor_copy_predicated"(%a, %one, %x) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, engine = "vector", reverse_pred = false, dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, predicate_ap = #first, predicate_tile = array<i64: 64, 64>, predicate_par_dims = 1 : i32} : (!sbuf, f32, !idx) -> ()
    // CHECK: "nisa.tensor_tensor_arith"
    "nisa.tensor_tensor_arith"(%a, %a, %b) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, engine = "vector", op = "add", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, lhs_ap = #v, lhs_tile = array<i64: 64, 64>, lhs_par_dims = 1 : i32, rhs_ap = #v, rhs_tile = array<i64: 64, 64>, rhs_par_dims = 1 : i32} : (!sbuf, !sbuf, !sbuf) -> ()
    // CHECK: "nisa.tensor_tensor_power"
    "nisa.tensor_tensor_power"(%a, %a, %b) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, engine = "gpsimd", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, lhs_ap = #v, lhs_tile = array<i64: 64, 64>, lhs_par_dims = 1 : i32, rhs_ap = #v, rhs_tile = array<i64: 64, 64>, rhs_par_dims = 1 : i32} : (!sbuf, !sbuf, !sbuf) -> ()
    // CHECK: "nisa.tensor_scalar_arith"
    "nisa.tensor_scalar_arith"(%a, %a, %one, %one) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0>, engine = "vector", op0 = "multiply", op1 = "add", reverse_operands = "none", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!sbuf, !sbuf, f32, f32) -> ()
    // CHECK: "nisa.scalar_tensor_tensor"
    "nisa.scalar_tensor_tensor"(%a, %a, %one, %b) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0>, engine = "vector", op0 = "multiply", op1 = "add", reverse_operands = "none", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32, operand1_ap = #v, operand1_tile = array<i64: 64, 64>, operand1_par_dims = 1 : i32} : (!sbuf, !sbuf, f32, !sbuf) -> ()
    // CHECK: "nisa.tensor_reduce_arith"
    "nisa.tensor_reduce_arith"(%b, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", op = "max", negated = false, num_r_dim = 1 : i64, dst_ap = #v, dst_tile = array<i64: 64, 1>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!sbuf, !sbuf) -> ()
    // CHECK: "nisa.cross_lane_reduce_arith"
    "nisa.cross_lane_reduce_arith"(%r, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "gpsimd", reduce_op = "add", num_r_dim = 0 : i64, dst_ap = #v, dst_tile = array<i64: 1, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!row, !sbuf) -> ()
    // CHECK: "nisa.tensor_tensor_scan"
    "nisa.tensor_tensor_scan"(%a, %a, %b, %one) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0>, engine = "vector", op0 = "multiply", op1 = "add", reverse_operands = "none", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, lhs_ap = #v, lhs_tile = array<i64: 64, 64>, lhs_par_dims = 1 : i32, rhs_ap = #v, rhs_tile = array<i64: 64, 64>, rhs_par_dims = 1 : i32} : (!sbuf, !sbuf, !sbuf, f32) -> ()
    // CHECK: "nisa.tensor_scalar_cumulative"
    "nisa.tensor_scalar_cumulative"(%a, %a, %one, %zero) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0>, engine = "vector", op0 = "multiply", op1 = "add", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!sbuf, !sbuf, f32, f32) -> ()
    // CHECK: "nisa.bn_stats"
    "nisa.bn_stats"(%b, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 6>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!sbuf, !sbuf) -> ()
    // CHECK: "nisa.bn_aggr"
    "nisa.bn_aggr"(%b, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 2>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 63>, src_par_dims = 1 : i32} : (!sbuf, !sbuf) -> ()
    // CHECK: "nisa.max8"
    "nisa.max8"(%b, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 8>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!sbuf, !sbuf) -> ()
    // CHECK: "nisa.find_index8"
    "nisa.find_index8"(%y, %a, %b) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 8>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32, values_ap = #v, values_tile = array<i64: 64, 8>, values_par_dims = 1 : i32} : (!places, !sbuf, !sbuf) -> ()
    // CHECK: "nisa.match_replace8"
    "nisa.match_replace8"(%a, %y, %a, %b, %zero) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, dst_index_ap = #v, dst_index_tile = array<i64: 64, 8>, dst_index_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32, values_ap = #v, values_tile = array<i64: 64, 8>, values_par_dims = 1 : i32} : (!sbuf, !places, !sbuf, !sbuf, f32) -> ()
    %half = "nisa.alloc"() : () -> !half
    // CHECK: "nisa.stream_shuffle"
    "nisa.stream_shuffle"(%a, %b) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, shuffle_mask = array<i64: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 0>, dst_ap = #v, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 64>, src_ap = #v, src_par_dims = 1 : i32, src_tile = array<i64: 64, 64>} : (!sbuf, !sbuf) -> ()
    // CHECK: "nisa.transpose"
    "nisa.transpose"(%a, %b) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #v, dst_par_dims = 1 : i32, dst_tile = array<i64: 32, 16>, src_ap = #v, src_par_dims = 1 : i32, src_tile = array<i64: 16, 32>} : (!sbuf, !sbuf) -> ()
    // CHECK: "nisa.gather"
    "nisa.gather"(%a, %b, %y) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, dst_ap = #v, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 8>, src_ap = #v, src_par_dims = 1 : i32, src_tile = array<i64: 64, 64>, src_index_ap = #v, src_index_par_dims = 1 : i32, src_index_tile = array<i64: 64, 8>} : (!sbuf, !sbuf, !places) -> ()
    // CHECK: "nisa.local_gather"
    "nisa.local_gather"(%a, %b, %half) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, elements_per_index = 1 : i64, n_indices = 32 : i64, dst_ap = #v, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 32>, src_ap = #v, src_par_dims = 1 : i32, src_tile = array<i64: 64, 64>, src_index_ap = #v, src_index_par_dims = 1 : i32, src_index_tile = array<i64: 64, 2>} : (!sbuf, !sbuf, !half) -> ()
    // CHECK: "nisa.sequence_bounds"
    "nisa.sequence_bounds"(%a, %b) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #v, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 16>, src_ap = #v, src_par_dims = 1 : i32, src_tile = array<i64: 1, 8>} : (!sbuf, !sbuf) -> ()
    // CHECK: "nisa.nonzero_with_count"
    "nisa.nonzero_with_count"(%y, %b) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 1, 0>, index_offset = 0 : i64, padding = -1 : i64, dst_ap = #v, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 8>, src_ap = #v, src_par_dims = 1 : i32, src_tile = array<i64: 64, 7>} : (!places, !sbuf) -> ()
    %bf = "nisa.alloc"() : () -> memref<64x8xbf16, #nisa.mem<"sbuf">>
    // CHECK: "nisa.topk"
    "nisa.topk"(%bf, %y, %bf) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, n_elements = 100 : i64, dst_ap = #v, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 2>, dst_index_ap = #v, dst_index_par_dims = 1 : i32, dst_index_tile = array<i64: 64, 2>, src_ap = #v, src_par_dims = 1 : i32, src_tile = array<i64: 64, 8>} : (memref<64x8xbf16, #nisa.mem<"sbuf">>, !places, memref<64x8xbf16, #nisa.mem<"sbuf">>) -> ()
    // CHECK: "nisa.random"
    "nisa.random"(%y) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, dst_ap = #v, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 8>} : (!places) -> ()
    // CHECK: "nisa.random_seed"
    "nisa.random_seed"(%x) {engine = "vector", operandSegmentSizes = array<i32: 1, 0>, src_ap = #v, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!idx) -> ()
    // CHECK: "nisa.random_set_state"
    "nisa.random_set_state"(%y) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0>, src_ap = #v, src_par_dims = 1 : i32, src_tile = array<i64: 64, 6>} : (!places) -> ()
    // CHECK: "nisa.random_get_state"
    "nisa.random_get_state"(%y) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0>, dst_ap = #v, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 6>} : (!places) -> ()
    // CHECK: "nisa.dma_scatter"
    "nisa.dma_scatter"(%h, %a, %x) {engine = "dma", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, dst_index_dim = 0 : i64, dst_indirect_max_index = 256 : i64, dst_ap = #none, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 64>, src_ap = #v, src_par_dims = 1 : i32, src_tile = array<i64: 64, 64>, dst_index_ap = #v, dst_index_par_dims = 1 : i32, dst_index_tile = array<i64: 64, 1>} : (!hbm, !sbuf, !idx) -> ()
    // CHECK: "nisa.dma_compute"
    "nisa.dma_compute"(%a, %b, %a) {engine = "dma", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, op = "add", dst_ap = #v, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 64>, src_ap = #v, src_par_dims = 1 : i32, src_tile = array<i64: 64, 64>, other_ap = #v, other_par_dims = 1 : i32, other_tile = array<i64: 64, 64>} : (!sbuf, !sbuf, !sbuf) -> ()
    // CHECK: "nisa.activation"
    "nisa.activation"(%a, %a, %zero, %one) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0>, engine = "scalar", op = "exp", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!sbuf, !sbuf, f32, f32) -> ()
    // CHECK: "nisa.reciprocal"
    "nisa.reciprocal"(%a, %a) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 64, 64>, src_par_dims = 1 : i32} : (!sbuf, !sbuf) -> ()
    // CHECK: "nisa.memset"
    "nisa.memset"(%a, %zero) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "gpsimd", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32} : (!sbuf, f32) -> ()
    // CHECK: "nisa.register_load"
    %n = "nisa.register_load"(%x) {operandSegmentSizes = array<i32: 1, 0>, engine = "sync", src_ap = #v, src_tile = array<i64: 1, 1>, src_par_dims = 1 : i32} : (!idx) -> i32
    // CHECK: "nisa.register_store"
    "nisa.register_store"(%x, %n) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "sync", dst_ap = #v, dst_tile = array<i64: 1, 1>, dst_par_dims = 1 : i32} : (!idx, i32) -> ()
    "nisa.release"(%bf) : (memref<64x8xbf16, #nisa.mem<"sbuf">>) -> ()
    "nisa.release"(%half) : (!half) -> ()
    "nisa.release"(%y) : (!places) -> ()
    "nisa.release"(%r) : (!row) -> ()
    "nisa.release"(%x) : (!idx) -> ()
    "nisa.release"(%p) : (!psum) -> ()
    "nisa.release"(%b) : (!sbuf) -> ()
    "nisa.release"(%a) : (!sbuf) -> ()
    return
  }
}
