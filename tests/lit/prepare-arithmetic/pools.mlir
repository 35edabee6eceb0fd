// What reduces windows of an argument has rows of all images: the first dimensions become one.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: the 2 leading dimensions are one of 112
// CHECK-LABEL: func.func @windows
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1], [2], [3], [4], [5]] : tensor<4x28x2x6x2x33xi32> into tensor<112x2x6x2x33xi32>
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel", "reduction", "parallel"]} ins(%[[X]] : tensor<112x2x6x2x33xi32>) outs(%{{.*}} : tensor<112x1x6x1x33xi32>)
func.func @windows(%x: tensor<4x28x2x6x2x33xi32>) -> tensor<4x28x6x33xi32> {
  %low = arith.constant -5 : i32
  %e = tensor.empty() : tensor<4x28x6x33xi32>
  %f = linalg.fill ins(%low : i32) outs(%e : tensor<4x28x6x33xi32>) -> tensor<4x28x6x33xi32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b, c, d, e, f) -> (a, b, c, d, e, f)>, affine_map<(a, b, c, d, e, f) -> (a, b, d, f)>], iterator_types = ["parallel", "parallel", "reduction", "parallel", "reduction", "parallel"]}
       ins(%x : tensor<4x28x2x6x2x33xi32>) outs(%f : tensor<4x28x6x33xi32>) {
  ^bb0(%i: i32, %o: i32):
    %v = arith.maxsi %o, %i : i32
    linalg.yield %v : i32
  } -> tensor<4x28x6x33xi32>
  return %m : tensor<4x28x6x33xi32>
}
