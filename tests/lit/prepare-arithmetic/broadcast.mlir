// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s
#id = affine_map<(d0, d1) -> (d0, d1)>
#bias = affine_map<(d0, d1) -> (d1)>
#scale = affine_map<(d0, d1) -> (d0)>
#none = affine_map<(d0, d1) -> ()>
#first = affine_map<(d0, d1) -> (0, d1)>

// Inputs get full rank; what they lack is a dimension of one element, and nothing is copied.
// CHECK-DAG:   #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROW:.*]] = affine_map<(d0, d1) -> (0, d1)>
// CHECK-DAG:   #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-DAG:   #[[ONE:.*]] = affine_map<(d0, d1) -> (0, 0)>
// CHECK-LABEL: func.func @all(
// CHECK-NOT:     linalg.broadcast
// CHECK-DAG:     %[[B:.*]] = tensor.expand_shape %arg1 {{.*}} into tensor<1x517xf32>
// CHECK-DAG:     %[[S:.*]] = tensor.expand_shape %arg2 {{.*}} into tensor<130x1xf32>
// CHECK-DAG:     %[[N:.*]] = tensor.expand_shape %arg3 {{.*}} into tensor<1x1xf32>
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[ROW]], #[[COLUMN]], #[[ONE]], #[[ID]]]
// CHECK-SAME:      ins(%arg0, %[[B]], %[[S]], %[[N]] :
func.func @all(%a: tensor<130x517xf32>, %b: tensor<517xf32>, %s: tensor<130xf32>, %n: tensor<f32>) -> tensor<130x517xf32> {
  %e = tensor.empty() : tensor<130x517xf32>
  %r = linalg.generic {indexing_maps = [#id, #bias, #scale, #none, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b, %s, %n : tensor<130x517xf32>, tensor<517xf32>, tensor<130xf32>, tensor<f32>) outs(%e : tensor<130x517xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %w: f32, %o: f32):
    %0 = arith.addf %x, %y : f32
    %1 = arith.mulf %0, %z : f32
    %2 = arith.addf %1, %w : f32
    linalg.yield %2 : f32
  } -> tensor<130x517xf32>
  return %r : tensor<130x517xf32>
}
