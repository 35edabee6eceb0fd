// Few rows that reduce several dimensions and are too long for parts: the first of these lies across the partitions in a step before.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: reduced in two steps: dimension 1 lies across the partitions in the first one
// CHECK-LABEL: func.func @few
// CHECK: %[[FIRST:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<16x256x1024xf32>) outs(%{{.*}} : tensor<16x256x1xf32>)
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[FIRST]]
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[ROWS]] : tensor<16x256xf32>) outs(%{{.*}} : tensor<16x1xf32>)
func.func @few(%x: tensor<16x256x1024xf32>) -> tensor<16xf32> {
  %zero = arith.constant 3.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a)>], iterator_types = ["parallel", "reduction", "reduction"]}
       ins(%x : tensor<16x256x1024xf32>) outs(%f : tensor<16xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<16xf32>
  return %r : tensor<16xf32>
}

// Rows that fill the partitions, a short second dimension, and a sum that would be rounded between the steps take one.
// CHECK-LABEL: func.func @one_step
// CHECK-COUNT-3: linalg.generic
// CHECK-NOT: linalg.generic
func.func @one_step(%x: tensor<80x256x128xf32>, %y: tensor<16x32x128xi32>, %z: tensor<16x256x128xbf16>) -> (tensor<80xf32>, tensor<16xi32>, tensor<16xbf16>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : bf16
  %nothing = arith.constant 0 : i32
  %e = tensor.empty() : tensor<80xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<80xf32>) -> tensor<80xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a)>], iterator_types = ["parallel", "reduction", "reduction"]}
       ins(%x : tensor<80x256x128xf32>) outs(%f : tensor<80xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<80xf32>
  %e2 = tensor.empty() : tensor<16xi32>
  %f2 = linalg.fill ins(%nothing : i32) outs(%e2 : tensor<16xi32>) -> tensor<16xi32>
  %r2 = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a)>], iterator_types = ["parallel", "reduction", "reduction"]}
       ins(%y : tensor<16x32x128xi32>) outs(%f2 : tensor<16xi32>) {
  ^bb0(%i: i32, %o: i32):
    %v = arith.addi %o, %i : i32
    linalg.yield %v : i32
  } -> tensor<16xi32>
  %e3 = tensor.empty() : tensor<16xbf16>
  %f3 = linalg.fill ins(%none : bf16) outs(%e3 : tensor<16xbf16>) -> tensor<16xbf16>
  %r3 = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a)>], iterator_types = ["parallel", "reduction", "reduction"]}
       ins(%z : tensor<16x256x128xbf16>) outs(%f3 : tensor<16xbf16>) {
  ^bb0(%i: bf16, %o: bf16):
    %v = arith.addf %o, %i : bf16
    linalg.yield %v : bf16
  } -> tensor<16xbf16>
  return %r, %r2, %r3 : tensor<80xf32>, tensor<16xi32>, tensor<16xbf16>
}
