// What reduces dimensions before the last ones gets rows to reduce: the values are transposed, and back where they leave.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: rows of 130 elements, transposed: 3 operations on 105 rows take {{[0-9]+}} cycles
// CHECK-LABEL: func.func @softmax
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0], [1], [2, 3]] : tensor<3x130x7x5xf32> into tensor<3x130x35xf32>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] : tensor<3x130x35xf32>) outs(%{{.*}} : tensor<3x35x130xf32>) permutation = [0, 2, 1]
// CHECK: %[[M:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[T]] : tensor<3x35x130xf32>) outs(%{{.*}} : tensor<3x35x1xf32>)
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[T]], %[[M]] : tensor<3x35x130xf32>, tensor<3x35x1xf32>)
// CHECK: %[[E:.*]] = linalg.exp ins(%[[S]] : tensor<3x35x130xf32>)
// CHECK: %[[B:.*]] = linalg.transpose ins(%[[E]] : tensor<3x35x130xf32>) outs(%{{.*}} : tensor<3x130x35xf32>) permutation = [0, 2, 1]
// CHECK: tensor.expand_shape %[[B]] {{\[\[}}0], [1], [2, 3]]
func.func @softmax(%x: tensor<3x130x7x5xf32>) -> tensor<3x130x7x5xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<3x1x7x5xf32>
  %e = tensor.empty() : tensor<3x130x7x5xf32>
  %f = linalg.fill ins(%low : f32) outs(%er : tensor<3x1x7x5xf32>) -> tensor<3x1x7x5xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, 0, c, d)>], iterator_types = ["parallel", "reduction", "parallel", "parallel"]}
       ins(%x : tensor<3x130x7x5xf32>) outs(%f : tensor<3x1x7x5xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.maximumf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<3x1x7x5xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, 0, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%x, %m : tensor<3x130x7x5xf32>, tensor<3x1x7x5xf32>) outs(%e : tensor<3x130x7x5xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %v = arith.subf %i, %j : f32
    linalg.yield %v : f32
  } -> tensor<3x130x7x5xf32>
  %p = linalg.exp ins(%s : tensor<3x130x7x5xf32>) outs(%e : tensor<3x130x7x5xf32>) -> tensor<3x130x7x5xf32>
  return %p : tensor<3x130x7x5xf32>
}

// With a knob on one of them the dimensions stay.
// CHECK-LABEL: func.func @knob
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @knob(%x: tensor<3x130x64xf32>) -> tensor<3x64xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<3x64xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<3x64xf32>) -> tensor<3x64xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, c)>], iterator_types = ["parallel", "reduction", "parallel"]}
       ins(%x : tensor<3x130x64xf32>) outs(%f : tensor<3x64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.maximumf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<3x64xf32>
  "nkipy.layout"(%m) {mem_space = 3 : i32} : (tensor<3x64xf32>) -> ()
  return %m : tensor<3x64xf32>
}

// A batch that fills the partitions stays there: each partition reduces its own elements.
// CHECK-LABEL: func.func @batch
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @batch(%x: tensor<256x16x49xf32>) -> tensor<256x49xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<256x49xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<256x49xf32>) -> tensor<256x49xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, c)>], iterator_types = ["parallel", "reduction", "parallel"]}
       ins(%x : tensor<256x16x49xf32>) outs(%f : tensor<256x49xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.maximumf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<256x49xf32>
  return %m : tensor<256x49xf32>
}

// Few columns are not turned: bands of the dimensions after them lie across the partitions, whatever the type.
// REMARK: 32 bands of 3x60 elements, across the partitions: 2 operations take {{[0-9]+}} cycles
// CHECK-LABEL: func.func @bands
// CHECK: %[[B:.*]] = tensor.expand_shape {{.*}} : tensor<4x3x480xi32> into tensor<4x3x8x60xi32>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[B]] : tensor<4x3x8x60xi32>) outs(%{{.*}} : tensor<4x8x3x60xi32>) permutation = [0, 2, 1, 3]
// CHECK: %[[X:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0, 1], [2], [3]] : tensor<4x8x3x60xi32> into tensor<32x3x60xi32>
// CHECK: %[[M:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[X]] : tensor<32x3x60xi32>) outs(%{{.*}} : tensor<32x1x60xi32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[M]] : tensor<32x3x60xi32>, tensor<32x1x60xi32>)
// CHECK: linalg.transpose ins(%{{.*}} : tensor<4x8x3x60xi32>) outs(%{{.*}} : tensor<4x3x8x60xi32>) permutation = [0, 2, 1, 3]
func.func @bands(%x: tensor<4x3x48x10xi32>) -> tensor<4x3x48x10xi32> {
  %low = arith.constant -2147483648 : i32
  %er = tensor.empty() : tensor<4x1x48x10xi32>
  %e = tensor.empty() : tensor<4x3x48x10xi32>
  %f = linalg.fill ins(%low : i32) outs(%er : tensor<4x1x48x10xi32>) -> tensor<4x1x48x10xi32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, 0, c, d)>], iterator_types = ["parallel", "reduction", "parallel", "parallel"]}
       ins(%x : tensor<4x3x48x10xi32>) outs(%f : tensor<4x1x48x10xi32>) {
  ^bb0(%i: i32, %o: i32):
    %v = arith.maxsi %o, %i : i32
    linalg.yield %v : i32
  } -> tensor<4x1x48x10xi32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, 0, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
       ins(%x, %m : tensor<4x3x48x10xi32>, tensor<4x1x48x10xi32>) outs(%e : tensor<4x3x48x10xi32>) {
  ^bb0(%i: i32, %j: i32, %o: i32):
    %v = arith.subi %i, %j : i32
    linalg.yield %v : i32
  } -> tensor<4x3x48x10xi32>
  return %s : tensor<4x3x48x10xi32>
}
