// A function of the Scalar engine is found in a body, alone and between other operations.
// RUN: nkx opt --linalg-to-nisa=target=trn2 --print-nisa %s | FileCheck %s
#map = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @silu(
// CHECK-NOT:     nisa.reciprocal
// CHECK:         nisa.activation({{.*}}op=silu) engine=scalar
// CHECK-NOT:     engine=
// CHECK:         return
func.func @silu(%x: memref<4x8xf32, 3 : i32>, %y: memref<4x8xf32, 3 : i32>) {
  %one = arith.constant 1.0 : f32
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x8xf32, 3 : i32>) outs(%y : memref<4x8xf32, 3 : i32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    %e = math.exp %n : f32
    %s = arith.addf %e, %one : f32
    %r = arith.divf %one, %s : f32
    %m = arith.mulf %r, %a : f32
    linalg.yield %m : f32
  }
  return
}

// The argument is scaled by the activation; exp has another user and is computed, too.
// CHECK-LABEL: func.func @between(
// CHECK:         nisa.activation({{.*}}op=exp)
// CHECK:         nisa.activation({{.*}}scale=f32 %{{.*}}, op=sigmoid)
// CHECK:         nisa.tensor_tensor_arith({{.*}}op=multiply)
func.func @between(%x: memref<4x8xf32, 3 : i32>, %y: memref<4x8xf32, 3 : i32>) {
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4x8xf32, 3 : i32>) outs(%y : memref<4x8xf32, 3 : i32>) {
  ^bb0(%a: f32, %o: f32):
    %h = arith.mulf %a, %half : f32
    %e = math.exp %h : f32
    %s = arith.addf %e, %one : f32
    %r = arith.divf %e, %s : f32
    %m = arith.mulf %r, %e : f32
    linalg.yield %m : f32
  }
  return
}
