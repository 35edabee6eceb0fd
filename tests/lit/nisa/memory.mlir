// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s

!s = memref<64x64xf32, #nisa.mem<"sbuf">>
#v = affine_map<(d0, d1) -> (d0, d1)>

func.func @lifetimes(%b: i1) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: it is released nowhere
  %a = "nisa.alloc"() : () -> !s
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: it is released more than once
  %c = "nisa.alloc"() : () -> !s
  "nisa.release"(%c) : (!s) -> ()
  "nisa.release"(%c) : (!s) -> ()
  %d = "nisa.alloc"() : () -> !s
  scf.for %i = %c0 to %c1 step %c1 {
    // CHECK: [[@LINE+1]]:5: error: nisa.release: it releases a buffer of another block
    "nisa.release"(%d) : (!s) -> ()
  }
  %e = "nisa.alloc"() : () -> !s
  "nisa.release"(%e) : (!s) -> ()
  scf.for %i = %c0 to %c1 step %c1 {
    // CHECK: [[@LINE+1]]:5: error: nisa.memset: it uses a buffer that was released
    "nisa.memset"(%e, %one) {operandSegmentSizes = array<i32: 1, 0, 1, 0>, engine = "vector", dst_ap = #v, dst_tile = array<i64: 64, 64>, dst_par_dims = 1 : i32} : (!s, f32) -> ()
  }
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: its first dimension of 256 is more than the 128 partitions
  %f = "nisa.alloc"() : () -> memref<256x4xf32, #nisa.mem<"sbuf">>
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: a buffer on chip has at least two dimensions
  %g = "nisa.alloc"() : () -> memref<64xf32, #nisa.mem<"sbuf">>
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: no engine works on elements as wide as these
  %h = "nisa.alloc"() : () -> memref<64x4xf64, #nisa.mem<"sbuf">>
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: it has no memory space
  %i = "nisa.alloc"() : () -> memref<64x4xf32>
  return
}
