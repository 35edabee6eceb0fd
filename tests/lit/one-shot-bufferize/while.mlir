// A loop whose trips depend on data writes what it carries back into one buffer.
// RUN: nkx opt --one-shot-bufferize --canonicalize %s | FileCheck %s
// CHECK-LABEL: func.func @k
// CHECK: %[[X:.*]] = memref.alloc() {{.*}}: memref<4x4xf32>
// CHECK: scf.while : () -> () {
// CHECK:   memref.load
// CHECK:   scf.condition(%{{.*}})
// CHECK: } do {
// CHECK:   linalg.add ins(%[[X]], %[[X]]
// CHECK:   memref.copy %{{.*}}, %[[X]]
// CHECK:   scf.yield
// CHECK: }
// CHECK: return %[[X]]
func.func @k(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %c = arith.constant 1.0e3 : f32
  %z = arith.constant 0 : index
  %e0 = tensor.empty() : tensor<4x4xf32>
  %x0 = linalg.exp ins(%x : tensor<4x4xf32>) outs(%e0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = scf.while (%a = %x0) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    %v = tensor.extract %a[%z, %z] : tensor<4x4xf32>
    %t = arith.cmpf olt, %v, %c : f32
    scf.condition(%t) %a : tensor<4x4xf32>
  } do {
  ^bb0(%a: tensor<4x4xf32>):
    %e = tensor.empty() : tensor<4x4xf32>
    %n = linalg.add ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    %m = linalg.exp ins(%n : tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
    %s = linalg.add ins(%n, %m : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %s : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}
