// The place of an allocation, in both forms and back.
// RUN: nkx opt --print-nisa %s | FileCheck %s
// RUN: nkx opt %s > %t.mlir
// RUN: nkx opt --print-nisa %s > %t.nisa
// RUN: nkx opt %t.nisa | diff %t.mlir -
// RUN: nkx opt --print-nisa %t.nisa | diff %t.nisa -
!s = memref<128x8xf32, #nisa.mem<"sbuf">>
!p = memref<128x8xf32, #nisa.mem<"psum">>
!h = memref<128x8xf32, #nisa.mem<"hbm">>
func.func @f() {
  // CHECK: %sbuf = nisa.alloc alignment=64 at=[32, 4096] copies=2 stride=2048 : memref<128x8xf32, #nisa.mem<sbuf>>
  %0 = "nisa.alloc"() {alignment = 64, partition = 32, offset = 4096, copies = 2, stride = 2048} : () -> !s
  // CHECK: %psum = nisa.alloc at=[7, 16] : memref<128x8xf32, #nisa.mem<psum>>
  %1 = "nisa.alloc"() {bank = 7, offset = 16} : () -> !p
  // CHECK: %hbm = nisa.alloc at=[0] copies=3 stride=0 : memref<128x8xf32, #nisa.mem<hbm>>
  %2 = "nisa.alloc"() {offset = 0, copies = 3, stride = 0} : () -> !h
  // What the form does not have stays generic.
  // CHECK: = "nisa.alloc"() {{.*}}bank
  %3 = "nisa.alloc"() {bank = 7, partition = 1, offset = 16} : () -> !p
  // CHECK: = "nisa.alloc"() {{.*}}copies
  %4 = "nisa.alloc"() {copies = 2, stride = 64} : () -> !s
  // CHECK: = "nisa.alloc"() {{.*}}stride
  %5 = "nisa.alloc"() {partition = 0, offset = 0, stride = 64} : () -> !s
  // CHECK: = "nisa.alloc"() {{.*}}-4
  %6 = "nisa.alloc"() {offset = -4} : () -> !h
  // CHECK: = "nisa.alloc"() {{.*}}i32
  %7 = "nisa.alloc"() {offset = 4 : i32} : () -> !h
  return
}
