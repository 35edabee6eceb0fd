// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s
#id = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> (0, 0)>
#column = affine_map<(d0, d1) -> (d0, 0)>

// A long row lies in all partitions, and so does what is computed from it.
// CHECK-LABEL: func.func @row(
// CHECK:         %[[X:.*]] = tensor.expand_shape {{.*}} into tensor<128x16xf32>
// CHECK:         %[[E:.*]] = linalg.exp ins(%[[X]] : tensor<128x16xf32>)
// CHECK:         linalg.generic {{.*}} ins(%[[E]], %{{.*}} : tensor<128x16xf32>, tensor<1x1xf32>)
// CHECK:         tensor.expand_shape {{.*}} into tensor<1x2048xf32>
// CHECK-NEXT:    return
func.func @row(%x: tensor<1x2048xf32>, %c: tensor<1x1xf32>) -> tensor<1x2048xf32> {
  %e = tensor.empty() : tensor<1x2048xf32>
  %a = linalg.exp ins(%x : tensor<1x2048xf32>) outs(%e : tensor<1x2048xf32>) -> tensor<1x2048xf32>
  %r = linalg.generic {indexing_maps = [#id, #one, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %c : tensor<1x2048xf32>, tensor<1x1xf32>) outs(%e : tensor<1x2048xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.addf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<1x2048xf32>
  return %r : tensor<1x2048xf32>
}

// So does a column.
// CHECK-LABEL: func.func @column(
// CHECK:         linalg.exp ins(%{{.*}} : tensor<128x16xf32>)
func.func @column(%x: tensor<2048x1x1xf32>) -> tensor<2048x1x1xf32> {
  %e = tensor.empty() : tensor<2048x1x1xf32>
  %a = linalg.exp ins(%x : tensor<2048x1x1xf32>) outs(%e : tensor<2048x1x1xf32>) -> tensor<2048x1x1xf32>
  return %a : tensor<2048x1x1xf32>
}

// A column that is a factor for each partition stays one, and so does all that it is computed from.
// CHECK-LABEL: func.func @factor(
// CHECK:         linalg.exp ins(%arg1 : tensor<2048x1xf32>)
// CHECK:         linalg.abs ins(%{{.*}} : tensor<2048x1xf32>)
func.func @factor(%x: tensor<2048x256xf32>, %f: tensor<2048x1xf32>) -> tensor<2048x256xf32> {
  %e = tensor.empty() : tensor<2048x1xf32>
  %a = linalg.exp ins(%f : tensor<2048x1xf32>) outs(%e : tensor<2048x1xf32>) -> tensor<2048x1xf32>
  %b = linalg.abs ins(%a : tensor<2048x1xf32>) outs(%e : tensor<2048x1xf32>) -> tensor<2048x1xf32>
  %w = tensor.empty() : tensor<2048x256xf32>
  %r = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %b : tensor<2048x256xf32>, tensor<2048x1xf32>) outs(%w : tensor<2048x256xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<2048x256xf32>
  return %r : tensor<2048x256xf32>
}

// A value that the user laid out keeps its shape.
// CHECK-LABEL: func.func @knob(
// CHECK:         linalg.exp ins(%arg0 : tensor<2048x1xf32>)
func.func @knob(%x: tensor<2048x1xf32>) -> tensor<2048x1xf32> {
  %e = tensor.empty() : tensor<2048x1xf32>
  %a = linalg.exp ins(%x : tensor<2048x1xf32>) outs(%e : tensor<2048x1xf32>) -> tensor<2048x1xf32>
  nkipy.tile_op(%a : tensor<2048x1xf32>) {loop_tile_size = [128, 1], tile_size = [128, 1]}
  return %a : tensor<2048x1xf32>
}

// Short ones, and those that no number of partitions divides, stay.
// CHECK-LABEL: func.func @short(
// CHECK:         linalg.exp ins(%arg0 : tensor<1x512xf32>)
// CHECK:         linalg.exp ins(%arg1 : tensor<1x4099xf32>)
func.func @short(%x: tensor<1x512xf32>, %y: tensor<1x4099xf32>) -> (tensor<1x512xf32>, tensor<1x4099xf32>) {
  %e = tensor.empty() : tensor<1x512xf32>
  %f = tensor.empty() : tensor<1x4099xf32>
  %a = linalg.exp ins(%x : tensor<1x512xf32>) outs(%e : tensor<1x512xf32>) -> tensor<1x512xf32>
  %b = linalg.exp ins(%y : tensor<1x4099xf32>) outs(%f : tensor<1x4099xf32>) -> tensor<1x4099xf32>
  return %a, %b : tensor<1x512xf32>, tensor<1x4099xf32>
}

// The sum of a column is reduced within the partitions first, and what is computed from both is spread as well.
// CHECK-LABEL: func.func @sum(
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%{{.*}} : tensor<128x16xf32>)
// CHECK:         linalg.transpose
// CHECK:         linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<128x16xf32>, tensor<1x1xf32>)
func.func @sum(%x: tensor<2048x1xf32>) -> tensor<2048x1xf32> {
  %zero = arith.constant 0.0 : f32
  %n = tensor.empty() : tensor<1x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%n : tensor<1x1xf32>) -> tensor<1x1xf32>
  %s = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (0, d1)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<2048x1xf32>) outs(%f : tensor<1x1xf32>) {
  ^bb0(%p: f32, %o: f32):
    %0 = arith.addf %p, %o : f32
    linalg.yield %0 : f32
  } -> tensor<1x1xf32>
  %e = tensor.empty() : tensor<2048x1xf32>
  %r = linalg.generic {indexing_maps = [#id, #one, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<2048x1xf32>, tensor<1x1xf32>) outs(%e : tensor<2048x1xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %0 = arith.mulf %p, %q : f32
    linalg.yield %0 : f32
  } -> tensor<2048x1xf32>
  return %r : tensor<2048x1xf32>
}
