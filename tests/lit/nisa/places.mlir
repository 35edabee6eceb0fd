// RUN: not nkx opt --nisa-verify=target=trn2 %s 2>&1 | FileCheck %s
// Where allocations can lie.

!s = memref<128x512xf32, #nisa.mem<"sbuf">>
!p = memref<128x512xf32, #nisa.mem<"psum">>
!small = memref<32x64xf32, #nisa.mem<"psum">>
!quarter = memref<32x512xf32, #nisa.mem<"sbuf">>
!h = memref<128x512xf32, #nisa.mem<"hbm">>

// CHECK-NOT: error
func.func @right() {
  %a = "nisa.alloc"() {partition = 0, offset = 0, copies = 2, stride = 2048} : () -> !s
  %b = "nisa.alloc"() {partition = 0, offset = 4096} : () -> !s
  "nisa.release"(%b) : (!s) -> ()
  // after a release the bytes may be used again
  %c = "nisa.alloc"() {partition = 0, offset = 6140, alignment = 4} : () -> !s
  %q = "nisa.alloc"() {partition = 32, offset = 210936} : () -> !quarter
  %r = "nisa.alloc"() {partition = 64, offset = 210936} : () -> !quarter
  %d = "nisa.alloc"() {bank = 6, offset = 0, copies = 2, stride = 2048} : () -> !p
  %e = "nisa.alloc"() {bank = 5, offset = 0} : () -> !small
  %f = "nisa.alloc"() {bank = 5, offset = 256} : () -> !small
  %h = "nisa.alloc"() {offset = 262144} : () -> !h
  %i = "nisa.alloc"() : () -> !h
  "nisa.release"(%a) : (!s) -> ()
  "nisa.release"(%c) : (!s) -> ()
  "nisa.release"(%q) : (!quarter) -> ()
  "nisa.release"(%r) : (!quarter) -> ()
  "nisa.release"(%d) : (!p) -> ()
  "nisa.release"(%e) : (!small) -> ()
  "nisa.release"(%f) : (!small) -> ()
  return
}

func.func @wrong() {
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: its place is not complete: it needs i64 attributes partition and offset
  %a = "nisa.alloc"() : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: its place is not complete
  %b = "nisa.alloc"() {partition = 0} : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: its place is not complete
  %c = "nisa.alloc"() {partition = 0 : i32, offset = 0} : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: it has only one of copies and stride
  %d = "nisa.alloc"() {partition = 0, offset = 0, copies = 2} : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: it has 0 copies; between 1 and 1048576 are possible
  %e = "nisa.alloc"() {partition = 0, offset = 0, copies = 0, stride = 2048} : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: its copies overlap: each takes 2048 bytes, and the stride is 2044
  %f = "nisa.alloc"() {partition = 0, offset = 0, copies = 2, stride = 2044} : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: its stride of 2050 is not a multiple of its alignment
  %g = "nisa.alloc"() {partition = 0, offset = 0, copies = 2, stride = 2050} : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: from offset 210944 on, its 1 copies of 2048 bytes do not fit into the memory
  %h = "nisa.alloc"() {partition = 0, offset = 210944} : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: it has 9223372036854775807 copies; between 1 and 1048576 are possible
  %i = "nisa.alloc"() {partition = 0, offset = 0, copies = 9223372036854775807, stride = 2048} : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: its offset of 32 is not a multiple of its alignment
  %j = "nisa.alloc"() {partition = 0, offset = 32, alignment = 64} : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: its 128 partitions cannot begin at partition 32
  %k = "nisa.alloc"() {partition = 32, offset = 0} : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: its 32 partitions cannot begin at partition 16
  %l = "nisa.alloc"() {partition = 16, offset = 0} : () -> !quarter
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: there is no bank 8
  %m = "nisa.alloc"() {bank = 8, offset = 0} : () -> !p
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: it crosses the end of its bank of 2048 bytes
  %n = "nisa.alloc"() {bank = 0, offset = 4} : () -> !p
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: its stride of 4092 is not a number of banks
  %o = "nisa.alloc"() {bank = 0, offset = 0, copies = 2, stride = 4092} : () -> !p
  // CHECK: [[@LINE+1]]:9: error: nisa.alloc: from offset 0 on, its 2 copies of 2048 bytes do not fit into the memory
  %p2 = "nisa.alloc"() {bank = 7, offset = 0, copies = 2, stride = 2048} : () -> !p
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: from offset -64 on
  %q = "nisa.alloc"() {offset = -64} : () -> !h
  "nisa.release"(%a) : (!s) -> ()
  "nisa.release"(%b) : (!s) -> ()
  "nisa.release"(%c) : (!s) -> ()
  "nisa.release"(%d) : (!s) -> ()
  "nisa.release"(%e) : (!s) -> ()
  "nisa.release"(%f) : (!s) -> ()
  "nisa.release"(%g) : (!s) -> ()
  "nisa.release"(%h) : (!s) -> ()
  "nisa.release"(%i) : (!s) -> ()
  "nisa.release"(%j) : (!s) -> ()
  "nisa.release"(%k) : (!s) -> ()
  "nisa.release"(%l) : (!quarter) -> ()
  "nisa.release"(%m) : (!p) -> ()
  "nisa.release"(%n) : (!p) -> ()
  "nisa.release"(%o) : (!p) -> ()
  "nisa.release"(%p2) : (!p) -> ()
  return
}

func.func @shared(%x: !s) {
  %c0 = arith.constant 0 : index
  %a = "nisa.alloc"() {partition = 0, offset = 0, copies = 2, stride = 4096} : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: it shares memory with an allocation that is alive: 2048 bytes of {{.*}}:[[@LINE-1]]:8
  %b = "nisa.alloc"() {partition = 0, offset = 2048} : () -> !s
  "nisa.release"(%a) : (!s) -> ()
  %h = "nisa.alloc"() {offset = 0} : () -> !h
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: it shares memory with an allocation that is alive
  %i = "nisa.alloc"() {offset = 262140} : () -> !h
  %p = "nisa.alloc"() {bank = 1, offset = 0} : () -> !small
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: matmuls accumulate in it and in another allocation of its bank
  %q = "nisa.alloc"() {bank = 1, offset = 1024} : () -> !small
  "nisa.matmul"(%p, %b, %b, %c0, %c0) {engine = "tensor", psum_zero_region = "size2048", is_transpose = false, perf_opt = "none_",
    operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>,
    dst_ap = affine_map<(d0, d1) -> (d0, d1)>, dst_tile = array<i64: 32, 64>, dst_par_dims = 1 : i32,
    stationary_ap = affine_map<(d0, d1) -> (d0, d1)>, stationary_tile = array<i64: 128, 32>, stationary_par_dims = 1 : i32,
    moving_ap = affine_map<(d0, d1) -> (d0, d1)>, moving_tile = array<i64: 128, 64>, moving_par_dims = 1 : i32}
    : (!small, !s, !s, index, index) -> ()
  "nisa.matmul"(%q, %b, %b, %c0, %c0) {engine = "tensor", psum_zero_region = "size2048", is_transpose = false, perf_opt = "none_",
    operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>,
    dst_ap = affine_map<(d0, d1) -> (d0, d1)>, dst_tile = array<i64: 32, 64>, dst_par_dims = 1 : i32,
    stationary_ap = affine_map<(d0, d1) -> (d0, d1)>, stationary_tile = array<i64: 128, 32>, stationary_par_dims = 1 : i32,
    moving_ap = affine_map<(d0, d1) -> (d0, d1)>, moving_tile = array<i64: 128, 64>, moving_par_dims = 1 : i32}
    : (!small, !s, !s, index, index) -> ()
  "nisa.release"(%q) : (!small) -> ()
  "nisa.release"(%p) : (!small) -> ()
  "nisa.release"(%b) : (!s) -> ()
  return
}
