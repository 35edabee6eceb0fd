// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s
// Eight banks: nine buffers do not fit, however small.

!p = memref<128x4xf32, #nisa.mem<"psum">>
func.func @banks() {
  %a = "nisa.alloc"() : () -> memref<128x3584xf32, #nisa.mem<"psum">>
  %b = "nisa.alloc"() : () -> !p
  // CHECK: [[@LINE+1]]:8: error: nisa.alloc: with it 18432 bytes of every PSUM partition are in use, in whole banks; there are 16384
  %c = "nisa.alloc"() : () -> !p
  "nisa.release"(%c) : (!p) -> ()
  "nisa.release"(%b) : (!p) -> ()
  "nisa.release"(%a) : (memref<128x3584xf32, #nisa.mem<"psum">>) -> ()
  return
}
