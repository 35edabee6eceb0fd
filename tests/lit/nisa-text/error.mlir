// nisa text 1
// RUN: not nkx opt %s 2>&1 | FileCheck %s
// An error that MLIR finds has the place where the value stands in this text.
func.func @k(%a: memref<64x256xf32, #nisa.mem<sbuf>>) {
  // CHECK: error.mlir:[[#@LINE+1]]:86: error: use of undeclared SSA value name
  nisa.memset(dst<64| 100>=memref<64x256xf32, #nisa.mem<sbuf>> %a[d0, d1], value=f32 %b) engine=vector
  return
}
