// RUN: not nkx opt --nisa-verify=target=trn2 %s 2>&1 | FileCheck %s
// RUN: not nkx opt --nisa-verify=target=trn3 %s 2>&1 | FileCheck %s --check-prefix=TRN3

#v = affine_map<(d0, d1) -> (d0, d1)>
#off = affine_map<(d0, d1) -> (d0, d1 + 256)>
!s = memref<128x1024xf32, #nisa.mem<"sbuf">>
!b = memref<128x1024xbf16, #nisa.mem<"sbuf">>
!p = memref<128x1024xf32, #nisa.mem<"psum">>
!q = memref<128x512xbf16, #nisa.mem<"psum">>

func.func @limits() {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %s = "nisa.alloc"() : () -> !s
  %b = "nisa.alloc"() : () -> !b
  %p = "nisa.alloc"() : () -> !p
  %q = "nisa.alloc"() : () -> !q
  // CHECK: [[@LINE+2]]:3: error: nisa.matmul: N (columns of moving) is 1024; the tensor engine takes at most 512
  // CHECK: [[@LINE+1]]:3: error: nisa.matmul: dst does not lie within 2048 bytes of PSUM per partition
  "nisa.matmul"(%p, %s, %s, %c0, %c0) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>, engine = "tensor", is_transpose = false, perf_opt = "none_", psum_zero_region = "size2048", dst_ap = #v, dst_tile = array<i64: 128, 1024>, dst_par_dims = 1 : i32, stationary_ap = #v, stationary_tile = array<i64: 128, 128>, stationary_par_dims = 1 : i32, moving_ap = #v, moving_tile = array<i64: 128, 1024>, moving_par_dims = 1 : i32} : (!p, !s, !s, index, index) -> ()
  // CHECK: [[@LINE+2]]:3: error: nisa.matmul: M (columns of stationary) is 256; the tensor engine takes at most 128
  // CHECK: [[@LINE+1]]:3: error: nisa.matmul: dst is 128 x 512, the product 256 x 512
  "nisa.matmul"(%p, %s, %s, %c0, %c0) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>, engine = "tensor", is_transpose = false, perf_opt = "none_", psum_zero_region = "size2048", dst_ap = #v, dst_tile = array<i64: 128, 512>, dst_par_dims = 1 : i32, stationary_ap = #v, stationary_tile = array<i64: 128, 256>, stationary_par_dims = 1 : i32, moving_ap = #v, moving_tile = array<i64: 128, 512>, moving_par_dims = 1 : i32} : (!p, !s, !s, index, index) -> ()
  // half of one bank and half of the next
  // CHECK: [[@LINE+1]]:3: error: nisa.matmul: dst does not lie within 2048 bytes of PSUM per partition
  "nisa.matmul"(%p, %s, %s, %c0, %c0) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>, engine = "tensor", is_transpose = false, perf_opt = "none_", psum_zero_region = "size2048", dst_ap = #off, dst_tile = array<i64: 128, 512>, dst_par_dims = 1 : i32, stationary_ap = #v, stationary_tile = array<i64: 128, 128>, stationary_par_dims = 1 : i32, moving_ap = #v, moving_tile = array<i64: 128, 512>, moving_par_dims = 1 : i32} : (!p, !s, !s, index, index) -> ()
  // CHECK: [[@LINE+2]]:3: error: nisa.matmul: f32 can only be multiplied with f32
  // CHECK: [[@LINE+1]]:3: error: nisa.matmul: a product is f32
  "nisa.matmul"(%q, %s, %b, %c0, %c0) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>, engine = "tensor", is_transpose = false, perf_opt = "none_", psum_zero_region = "size2048", dst_ap = #v, dst_tile = array<i64: 128, 512>, dst_par_dims = 1 : i32, stationary_ap = #v, stationary_tile = array<i64: 128, 128>, stationary_par_dims = 1 : i32, moving_ap = #v, moving_tile = array<i64: 128, 512>, moving_par_dims = 1 : i32} : (!q, !s, !b, index, index) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.matmul: stationary has 64 partitions, moving 128
  "nisa.matmul"(%p, %b, %b, %c0, %c0) {operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>, engine = "tensor", is_transpose = false, perf_opt = "none_", psum_zero_region = "size2048", dst_ap = #v, dst_tile = array<i64: 128, 512>, dst_par_dims = 1 : i32, stationary_ap = #v, stationary_tile = array<i64: 64, 128>, stationary_par_dims = 1 : i32, moving_ap = #v, moving_tile = array<i64: 128, 512>, moving_par_dims = 1 : i32} : (!p, !b, !b, index, index) -> ()
  // CHECK: [[@LINE+1]]:3: error: nisa.memset: it writes to PSUM that a matmul accumulates in
  "nisa.memset"(%p, %zero) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 128, 1024>, dst_par_dims = 1 : i32} : (!p, f32) -> ()
  "nisa.release"(%q) : (!q) -> ()
  "nisa.release"(%p) : (!p) -> ()
  "nisa.release"(%b) : (!b) -> ()
  "nisa.release"(%s) : (!s) -> ()
  return
}

// The newest machine writes bf16 and uses all banks.
// TRN3-NOT: columns of moving
// TRN3-NOT: does not lie within
// TRN3:     M (columns of stationary) is 256
// TRN3:     f32 can only be multiplied with f32
// TRN3-NOT: a product is f32
// TRN3:     stationary has 64 partitions
