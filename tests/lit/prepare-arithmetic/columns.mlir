// A sum over leading dimensions is a matrix product with ones, unless another dimension can lie across the partitions.
// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s

// CHECK-DAG: #[[A:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: func.func @columns
// CHECK: %[[ONES:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<4096x1xf32>)
// CHECK: linalg.matmul indexing_maps = [#[[A]], #[[B]], #{{.*}}] ins(%[[ONES]], %arg0 : tensor<4096x1xf32>, tensor<4096x2048xf32>)
// CHECK-SAME: -> tensor<1x2048xf32>
func.func @columns(%x: tensor<4096x2048xf32>) -> tensor<2048xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2048xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2048xf32>) -> tensor<2048xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (b)>], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<4096x2048xf32>) outs(%f : tensor<2048xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<2048xf32>
  return %r : tensor<2048xf32>
}

// Of each of four matrices: a product with a batch.
// CHECK-LABEL: func.func @batch
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%{{.*}}, %arg0 : tensor<1000x1xf32>, tensor<4x1000x64xf32>)
func.func @batch(%x: tensor<4x1000x64xf32>) -> tensor<4x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, c)>], iterator_types = ["parallel", "reduction", "parallel"]}
       ins(%x : tensor<4x1000x64xf32>) outs(%f : tensor<4x64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<4x64xf32>
  return %r : tensor<4x64xf32>
}

// The channels of images fill the partitions; a maximum, another type and a sum with a knob are no products.
// CHECK-LABEL: func.func @images
// CHECK-NOT: linalg.matmul
// CHECK: return
func.func @images(%x: tensor<64x128x32xf32>) -> tensor<128x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x32xf32>) -> tensor<128x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b, c)>], iterator_types = ["reduction", "parallel", "parallel"]}
       ins(%x : tensor<64x128x32xf32>) outs(%f : tensor<128x32xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<128x32xf32>
  return %r : tensor<128x32xf32>
}

// Rows of images that are fewer than the channels do not keep the sum: all channels lie across the partitions.
// CHECK-LABEL: func.func @few_rows
// CHECK: linalg.matmul {{.*}} ins(%{{.*}}, %{{.*}} : tensor<96x1xf32>, tensor<96x784xf32>)
func.func @few_rows(%x: tensor<96x28x28xf32>) -> tensor<28x28xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<28x28xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<28x28xf32>) -> tensor<28x28xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b, c)>], iterator_types = ["reduction", "parallel", "parallel"]}
       ins(%x : tensor<96x28x28xf32>) outs(%f : tensor<28x28xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<28x28xf32>
  return %r : tensor<28x28xf32>
}

// A maximum over them is one over the rows of the transposed image; of integers, which the Tensor engine does not transpose, it gets two
// dimensions.
// CHECK-LABEL: func.func @maximum
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0], [1, 2]] : tensor<96x28x28xf32> into tensor<96x784xf32>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[X]] : tensor<96x784xf32>) outs(%{{.*}} : tensor<784x96xf32>) permutation = [1, 0]
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%[[T]] : tensor<784x96xf32>) outs(%{{.*}} : tensor<784x1xf32>)
func.func @maximum(%x: tensor<96x28x28xf32>) -> tensor<28x28xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<28x28xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<28x28xf32>) -> tensor<28x28xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b, c)>], iterator_types = ["reduction", "parallel", "parallel"]}
       ins(%x : tensor<96x28x28xf32>) outs(%f : tensor<28x28xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.maximumf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<28x28xf32>
  return %r : tensor<28x28xf32>
}

// CHECK-LABEL: func.func @integers
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0], [1, 2]] : tensor<96x28x28xi32> into tensor<96x784xi32>
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%[[X]] : tensor<96x784xi32>) outs(%{{.*}} : tensor<1x784xi32>)
func.func @integers(%x: tensor<96x28x28xi32>) -> tensor<28x28xi32> {
  %low = arith.constant -5 : i32
  %e = tensor.empty() : tensor<28x28xi32>
  %f = linalg.fill ins(%low : i32) outs(%e : tensor<28x28xi32>) -> tensor<28x28xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b, c)>], iterator_types = ["reduction", "parallel", "parallel"]}
       ins(%x : tensor<96x28x28xi32>) outs(%f : tensor<28x28xi32>) {
  ^bb0(%i: i32, %o: i32):
    %v = arith.maxsi %o, %i : i32
    linalg.yield %v : i32
  } -> tensor<28x28xi32>
  return %r : tensor<28x28xi32>
}

// CHECK-LABEL: func.func @others
// CHECK-NOT: linalg.matmul
// CHECK: return
func.func @others(%x: tensor<512x64xf32>, %h: tensor<512x64xbf16>) -> (tensor<1x64xf32>, tensor<1x64xbf16>, tensor<1x64xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<1x64xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<1x64xf32>) -> tensor<1x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (0, b)>], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<512x64xf32>) outs(%f : tensor<1x64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.maximumf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<1x64xf32>
  %e1 = tensor.empty() : tensor<1x64xbf16>
  %f1 = linalg.fill ins(%none : bf16) outs(%e1 : tensor<1x64xbf16>) -> tensor<1x64xbf16>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (0, b)>], iterator_types = ["reduction", "parallel"]}
       ins(%h : tensor<512x64xbf16>) outs(%f1 : tensor<1x64xbf16>) {
  ^bb0(%i: bf16, %o: bf16):
    %v = arith.addf %o, %i : bf16
    linalg.yield %v : bf16
  } -> tensor<1x64xbf16>
  %f2 = linalg.fill ins(%zero : f32) outs(%e : tensor<1x64xf32>) -> tensor<1x64xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (0, b)>], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<512x64xf32>) outs(%f2 : tensor<1x64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<1x64xf32>
  "nkipy.tile_op"(%t) {loop_tile_size = array<i64: 128, 64>} : (tensor<1x64xf32>) -> ()
  return %r, %s, %t : tensor<1x64xf32>, tensor<1x64xbf16>, tensor<1x64xf32>
}
