// What computes with the results of reductions alone has their dimensions, so that it is in their loop.
// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s

#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#rows = affine_map<(d0, d1, d2) -> (d0, d1)>
#two = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> ()>

// A mean, and what is computed with two reductions and a number that is an operand.
// CHECK-LABEL: func.func @mean
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}}"reduction"]} ins(%arg0 : tensor<8x512x300xf32>) outs(%{{.*}} : tensor<8x512x1xf32>)
// CHECK: %[[MEAN:.*]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<8x512x1xf32>) outs(%{{.*}} : tensor<8x512x1xf32>)
// CHECK: %[[MAX:.*]] = linalg.generic {{.*}}"reduction"]} ins(%arg0 : tensor<8x512x300xf32>) outs(%{{.*}} : tensor<8x512x1xf32>)
// CHECK: %[[D:.*]] = linalg.sub ins(%[[MAX]], %[[MEAN]] : tensor<8x512x1xf32>, tensor<8x512x1xf32>)
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[D]], %{{.*}} : tensor<8x512x1xf32>, tensor<1x1x1xf32>) outs(%{{.*}} : tensor<8x512x1xf32>)
// CHECK: tensor.collapse_shape %[[S]] {{.*}} into tensor<8x512xf32>
func.func @mean(%x: tensor<8x512x300xf32>, %k: tensor<f32>) -> tensor<8x512xf32> {
  %zero = arith.constant 0.0 : f32
  %part = arith.constant 5.1e-03 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<8x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x512xf32>) -> tensor<8x512xf32>
  %s = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<8x512x300xf32>) outs(%f : tensor<8x512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<8x512xf32>
  %m = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<8x512xf32>) outs(%e : tensor<8x512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %part : f32
    linalg.yield %r : f32
  } -> tensor<8x512xf32>
  %g = linalg.fill ins(%low : f32) outs(%e : tensor<8x512xf32>) -> tensor<8x512xf32>
  %t = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<8x512x300xf32>) outs(%g : tensor<8x512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<8x512xf32>
  %d = linalg.sub ins(%t, %m : tensor<8x512xf32>, tensor<8x512xf32>) outs(%e : tensor<8x512xf32>) -> tensor<8x512xf32>
  %u = linalg.generic {indexing_maps = [#two, #one, #two], iterator_types = ["parallel", "parallel"]} ins(%d, %k : tensor<8x512xf32>, tensor<f32>) outs(%e : tensor<8x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<8x512xf32>
  return %u : tensor<8x512xf32>
}

// Another operand of the full shape keeps its dimensions.
// CHECK-LABEL: func.func @stay
// CHECK: linalg.add ins(%{{.*}}, %arg1 : tensor<8x512xf32>, tensor<8x512xf32>)
func.func @stay(%x: tensor<8x512x300xf32>, %y: tensor<8x512xf32>) -> tensor<8x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x512xf32>) -> tensor<8x512xf32>
  %s = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<8x512x300xf32>) outs(%f : tensor<8x512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<8x512xf32>
  %m = linalg.add ins(%s, %y : tensor<8x512xf32>, tensor<8x512xf32>) outs(%e : tensor<8x512xf32>) -> tensor<8x512xf32>
  return %m : tensor<8x512xf32>
}
