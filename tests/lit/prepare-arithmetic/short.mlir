// Short rows follow each other in a partition: what computes with them has the rows of a partition as a dimension of its own.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

#whole = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>
#bias = affine_map<(d0, d1) -> (d1)>
#one = affine_map<(d0, d1) -> ()>

// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
// CHECK-DAG: #[[BIAS:.*]] = affine_map<(d0, d1, d2) -> (0, 0, d2)>

// REMARK: each partition holds 128 rows of 10 elements
// CHECK-LABEL: func.func @softmax_like
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[ROWS]]], iterator_types = ["parallel", "parallel", "reduction"]} ins(%{{.*}} : tensor<512x128x10xf32>) outs(%{{.*}} : tensor<512x128x1xf32>)
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[ROWS]], #{{.*}}]{{.*}} ins(%{{.*}}, %{{.*}} : tensor<512x128x10xf32>, tensor<512x128x1xf32>)
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[BIAS]], #{{.*}}]{{.*}} ins(%{{.*}}, %{{.*}} : tensor<512x128x10xf32>, tensor<1x1x10xf32>)
func.func @softmax_like(%x: tensor<65536x10xf32>, %b: tensor<10xf32>) -> tensor<65536x10xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<65536x1xf32>
  %i = linalg.fill ins(%lowest : f32) outs(%e : tensor<65536x1xf32>) -> tensor<65536x1xf32>
  %m = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<65536x10xf32>) outs(%i : tensor<65536x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.maximumf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<65536x1xf32>
  %f = tensor.empty() : tensor<65536x10xf32>
  %d = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<65536x10xf32>, tensor<65536x1xf32>) outs(%f : tensor<65536x10xf32>) {
  ^bb0(%in: f32, %r: f32, %out: f32):
    %0 = arith.subf %in, %r : f32
    linalg.yield %0 : f32
  } -> tensor<65536x10xf32>
  %y = linalg.generic {indexing_maps = [#whole, #bias, #whole], iterator_types = ["parallel", "parallel"]} ins(%d, %b : tensor<65536x10xf32>, tensor<10xf32>) outs(%f : tensor<65536x10xf32>) {
  ^bb0(%in: f32, %r: f32, %out: f32):
    %0 = arith.addf %in, %r : f32
    linalg.yield %0 : f32
  } -> tensor<65536x10xf32>
  return %y : tensor<65536x10xf32>
}

// A sum of all rows first adds those of a partition.
// CHECK-LABEL: func.func @column_sums
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel"]} ins(%{{.*}} : tensor<512x128x10xf32>) outs(%{{.*}} : tensor<512x1x10xf32>)
// CHECK: linalg.matmul
func.func @column_sums(%x: tensor<65536x10xf32>) -> tensor<10xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<10xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<10xf32>) -> tensor<10xf32>
  %s = linalg.generic {indexing_maps = [#whole, #bias], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<65536x10xf32>) outs(%i : tensor<10xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<10xf32>
  return %s : tensor<10xf32>
}

// CHECK-LABEL: func.func @sum
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "reduction"]} ins(%{{.*}} : tensor<512x128x10xf32>) outs(%{{.*}} : tensor<512x1x1xf32>)
func.func @sum(%x: tensor<65536x10xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#whole, #one], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<65536x10xf32>) outs(%i : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}

// Long rows, few rows, and those of a product stay as they are.
// CHECK-LABEL: func.func @stay
// CHECK: linalg.exp ins(%{{.*}} : tensor<4096x128xf32>)
// CHECK: linalg.exp ins(%{{.*}} : tensor<128x10xf32>)
// CHECK: linalg.exp ins(%{{.*}} : tensor<1024x10xf32>)
func.func @stay(%x: tensor<4096x128xf32>, %y: tensor<128x10xf32>, %a: tensor<1024x64xf32>, %w: tensor<64x10xf32>)
    -> (tensor<4096x128xf32>, tensor<128x10xf32>, tensor<1024x10xf32>) {
  %e = tensor.empty() : tensor<4096x128xf32>
  %p = linalg.exp ins(%x : tensor<4096x128xf32>) outs(%e : tensor<4096x128xf32>) -> tensor<4096x128xf32>
  %f = tensor.empty() : tensor<128x10xf32>
  %q = linalg.exp ins(%y : tensor<128x10xf32>) outs(%f : tensor<128x10xf32>) -> tensor<128x10xf32>
  %zero = arith.constant 0.0 : f32
  %g = tensor.empty() : tensor<1024x10xf32>
  %i = linalg.fill ins(%zero : f32) outs(%g : tensor<1024x10xf32>) -> tensor<1024x10xf32>
  %m = linalg.matmul ins(%a, %w : tensor<1024x64xf32>, tensor<64x10xf32>) outs(%i : tensor<1024x10xf32>) -> tensor<1024x10xf32>
  %r = linalg.exp ins(%m : tensor<1024x10xf32>) outs(%g : tensor<1024x10xf32>) -> tensor<1024x10xf32>
  return %p, %q, %r : tensor<4096x128xf32>, tensor<128x10xf32>, tensor<1024x10xf32>
}
