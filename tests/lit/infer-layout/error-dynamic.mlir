// RUN: not nkx opt --infer-layout %s 2>&1 | FileCheck %s
// CHECK: error: this operation has a dynamic or unreadable dimension
func.func @f(%a: tensor<?x256xf32>, %e: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %x = linalg.exp ins(%a : tensor<?x256xf32>) outs(%e : tensor<?x256xf32>) -> tensor<?x256xf32>
  return %x : tensor<?x256xf32>
}
