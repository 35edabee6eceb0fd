// A while on NISA carries nothing: what changes is in memory, and the condition is a register.
// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s
// CHECK-COUNT-1: error: scf.while: what it carries must be in memory: it may have no operands and no results
// CHECK-NOT: error:
module attributes {nisa.target = #nisa.target<"trn2">} {
  func.func @good(%c: i1) {
    scf.while : () -> () {
      scf.condition(%c)
    } do {
      scf.yield
    }
    return
  }
  func.func @bad(%c: i1, %n: index) {
    %0 = scf.while (%i = %n) : (index) -> index {
      scf.condition(%c) %i : index
    } do {
    ^bb0(%i: index):
      scf.yield %i : index
    }
    return
  }
}
