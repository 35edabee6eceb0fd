// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s
// Collectives: whole arrays in HBM, of sizes that fit the groups.

#v = affine_map<(d0, d1) -> (d0, d1)>
!x = memref<4x6xf32, #nisa.mem<"shared_hbm">>
!g = memref<8x6xf32, #nisa.mem<"hbm">>
!i = memref<4x6xi32, #nisa.mem<"shared_hbm">>
!s = memref<4x6xf32, #nisa.mem<"sbuf">>

func.func @cases(%x: !x, %y: !x, %g: !g, %i: !i) {
  %s = "nisa.alloc"() : () -> !s
  // CHECK: [[@LINE+1]]:3: error: nisa.all_reduce: src must be in HBM
  "nisa.all_reduce"(%y, %s) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 4, 6>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 4, 6>, src_par_dims = 1 : i32, op = "add"} : (!x, !s) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.all_reduce: src is not the whole array
  "nisa.all_reduce"(%y, %x) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 4, 6>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 2, 6>, src_par_dims = 1 : i32, op = "add"} : (!x, !x) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.all_reduce: dst and src must have the same type
  "nisa.all_reduce"(%i, %x) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 4, 6>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 4, 6>, src_par_dims = 1 : i32, op = "add"} : (!i, !x) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.all_reduce: devices do not combine the bits of floats
  "nisa.all_reduce"(%y, %x) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 4, 6>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 4, 6>, src_par_dims = 1 : i32, op = "bitwise_or"} : (!x, !x) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.all_reduce: replica_groups must be a matrix of device numbers
  "nisa.all_reduce"(%y, %x) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 4, 6>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 4, 6>, src_par_dims = 1 : i32, op = "add", replica_groups = dense<0> : tensor<2xi64>} : (!x, !x) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.all_gather: dimension 0 is 8 in dst and 4 in src, which does not fit 3 devices
  "nisa.all_gather"(%g, %x) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 8, 6>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 4, 6>, src_par_dims = 1 : i32, dim = 0 : i64, replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>} : (!g, !x) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.all_gather: dst and src have other numbers of dimensions, or no dimension dim
  "nisa.all_gather"(%g, %x) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 8, 6>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 4, 6>, src_par_dims = 1 : i32, dim = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (!g, !x) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.reduce_scatter: dimension 0 is 8 in dst and 4 in src, which does not fit 2 devices
  "nisa.reduce_scatter"(%g, %x) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 8, 6>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 4, 6>, src_par_dims = 1 : i32, dim = 0 : i64, op = "max", replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (!g, !x) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.all_to_all: dimension 1 is 6 in dst and 6 in src, which does not fit 4 devices
  "nisa.all_to_all"(%y, %x) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 4, 6>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 4, 6>, src_par_dims = 1 : i32, dim = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (!x, !x) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.collective_permute: source_target_pairs must be a matrix of two columns
  "nisa.collective_permute"(%y, %x) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "dma", dst_ap = #v, dst_tile = array<i64: 4, 6>, dst_par_dims = 1 : i32, src_ap = #v, src_tile = array<i64: 4, 6>, src_par_dims = 1 : i32, source_target_pairs = dense<[[0, 1, 2]]> : tensor<1x3xi64>} : (!x, !x) -> ()
  // CHECK-NOT: error
  "nisa.release"(%s) : (!s) -> ()
  return
}
