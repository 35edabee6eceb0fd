// Products have one batch dimension, the values between them have two: the loops go over both.  Rows without their column get it
// again.
// RUN: nkx opt --flash-attention %s | FileCheck %s
// RUN: nkx opt --flash-attention=form=none %s | FileCheck %s --check-prefix=NONE

#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#row = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>


// NONE-LABEL: func.func @heads(
// NONE:         linalg.batch_matmul
// NONE:         linalg.batch_matmul
// CHECK-LABEL: func.func @heads(
// CHECK-NOT:     linalg.batch_matmul
// CHECK:         scf.for %[[A:.*]] = %c0{{.*}} to %c2{{.*}} -> (tensor<2x3x40x8xf32>)
// CHECK:           scf.for %[[B:.*]] = %c0{{.*}} to %c3{{.*}} -> (tensor<2x3x40x8xf32>)
// CHECK:             tensor.extract_slice %arg1[%[[A]], %[[B]], 0, 0] [1, 1, 40, 8]
// CHECK:             linalg.copy
// CHECK:             linalg.transpose
// CHECK:             tensor.extract_slice %arg2[%[[A]], %[[B]], 0, 0] [1, 1, 40, 8]
// CHECK:             tensor.extract_slice %arg0[%[[A]], %[[B]], 0, 0] [1, 1, 40, 8]
// CHECK:             linalg.matmul {{.*}} -> tensor<40x40xf32>
// CHECK:             linalg.exp
// CHECK:             linalg.reciprocal ins({{.*}} : tensor<40x1xf32>)
// CHECK:             linalg.matmul {{.*}} -> tensor<40x8xf32>
// CHECK:             tensor.insert_slice {{.*}}[%[[A]], %[[B]], 0, 0] [1, 1, 40, 8]
func.func @heads(%q: tensor<2x3x40x8xf32>, %k: tensor<2x3x40x8xf32>, %v: tensor<2x3x40x8xf32>) -> tensor<2x3x40x8xf32> {
  %zero = arith.constant 0.0 : f32
  %q1 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x3x40x8xf32> into tensor<6x40x8xf32>
  %ek = tensor.empty() : tensor<2x3x8x40xf32>
  %kt = linalg.transpose ins(%k : tensor<2x3x40x8xf32>) outs(%ek : tensor<2x3x8x40xf32>) permutation = [0, 1, 3, 2]
  %k1 = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x3x8x40xf32> into tensor<6x8x40xf32>
  %v1 = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x3x40x8xf32> into tensor<6x40x8xf32>
  %e1 = tensor.empty() : tensor<6x40x40xf32>
  %s1 = linalg.batch_matmul ins(%q1, %k1 : tensor<6x40x8xf32>, tensor<6x8x40xf32>) outs(%e1 : tensor<6x40x40xf32>) -> tensor<6x40x40xf32>
  %s = tensor.expand_shape %s1 [[0, 1], [2], [3]] output_shape [2, 3, 40, 40] : tensor<6x40x40xf32> into tensor<2x3x40x40xf32>
  %es = tensor.empty() : tensor<2x3x40x40xf32>
  %e = linalg.exp ins(%s : tensor<2x3x40x40xf32>) outs(%es : tensor<2x3x40x40xf32>) -> tensor<2x3x40x40xf32>
  %er = tensor.empty() : tensor<2x3x40x1xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%er : tensor<2x3x40x1xf32>) -> tensor<2x3x40x1xf32>
  %l = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%e : tensor<2x3x40x40xf32>) outs(%fl : tensor<2x3x40x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.addf %o, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x3x40x1xf32>
  %l1 = tensor.collapse_shape %l [[0], [1], [2, 3]] : tensor<2x3x40x1xf32> into tensor<2x3x40xf32>
  %ei = tensor.empty() : tensor<2x3x40xf32>
  %i = linalg.reciprocal ins(%l1 : tensor<2x3x40xf32>) outs(%ei : tensor<2x3x40xf32>) -> tensor<2x3x40xf32>
  %r = tensor.expand_shape %i [[0], [1], [2, 3]] output_shape [2, 3, 40, 1] : tensor<2x3x40xf32> into tensor<2x3x40x1xf32>
  %w = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%e, %r : tensor<2x3x40x40xf32>, tensor<2x3x40x1xf32>) outs(%es : tensor<2x3x40x40xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %y = arith.mulf %x, %z : f32
    linalg.yield %y : f32
  } -> tensor<2x3x40x40xf32>
  %w1 = tensor.collapse_shape %w [[0, 1], [2], [3]] : tensor<2x3x40x40xf32> into tensor<6x40x40xf32>
  %eo = tensor.empty() : tensor<6x40x8xf32>
  %o1 = linalg.batch_matmul ins(%w1, %v1 : tensor<6x40x40xf32>, tensor<6x40x8xf32>) outs(%eo : tensor<6x40x8xf32>) -> tensor<6x40x8xf32>
  %o = tensor.expand_shape %o1 [[0, 1], [2], [3]] output_shape [2, 3, 40, 8] : tensor<6x40x8xf32> into tensor<2x3x40x8xf32>
  return %o : tensor<2x3x40x8xf32>
}
