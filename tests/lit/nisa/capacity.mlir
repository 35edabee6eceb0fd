// RUN: nkx opt --nisa-verify=target=trn3 %s
// RUN: not nkx opt --nisa-verify=target=trn2 %s 2>&1 | FileCheck %s
// RUN: not nkx opt --nisa-verify=target=trn1 %s 2>&1 | FileCheck %s --check-prefixes=TRN1
// What is live at once counts, at every point, by the target's size.

!half = memref<128x26400xf32, #nisa.mem<"sbuf">>
!small = memref<128x1400xf32, #nisa.mem<"sbuf">>

// One behind the other is fine: 2 * 105600 bytes fit trn2 but not trn1.
func.func @two() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "nisa.alloc"() : () -> !half
  // TRN1: [[@LINE+1]]:8: error: nisa.alloc: with it 211200 bytes of every SBUF partition are in use; there are 180224
  %b = "nisa.alloc"() : () -> !half
  "nisa.release"(%b) : (!half) -> ()
  %c = "nisa.alloc"() : () -> !half
  "nisa.release"(%c) : (!half) -> ()
  "nisa.release"(%a) : (!half) -> ()
  return
}

// CHECK-NOT: error
// CHECK:     error: nisa.alloc: with it 216800 bytes of every SBUF partition are in use; there are 212984
// CHECK-NOT: error
func.func @in_a_loop() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = "nisa.alloc"() : () -> !half
  %b = "nisa.alloc"() : () -> !half
  scf.for %i = %c0 to %c1 step %c1 {
    %s = "nisa.alloc"() : () -> !small
    "nisa.release"(%s) : (!small) -> ()
  }
  "nisa.release"(%b) : (!half) -> ()
  "nisa.release"(%a) : (!half) -> ()
  return
}
