// A column of a matrix that is read along rows becomes a row of the transposed matrix.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// x * w[:, 0] + w[:, 1]: the matrix is transposed once.
// REMARK: a column that is read along rows, of 2: their matrix is transposed
// REMARK-NOT: their matrix is transposed
// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (0, d1)>
// CHECK-LABEL: func.func @scale_and_shift
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg1 : tensor<256x2xf32>) outs(%{{.*}} : tensor<2x256xf32>)
// CHECK-NOT: linalg.transpose
// CHECK: %[[A:.*]] = tensor.extract_slice %[[T]][0, 0] [1, 256]
// CHECK: %[[B:.*]] = tensor.extract_slice %[[T]][1, 0] [1, 256]
// CHECK: linalg.generic {indexing_maps = [#[[ALL]], #[[ROW]], #[[ALL]]]{{.*}} ins(%arg0, %[[A]] : tensor<512x256xf32>, tensor<1x256xf32>)
// CHECK: linalg.generic {indexing_maps = [#[[ALL]], #[[ROW]], #[[ALL]]]{{.*}} ins(%{{.*}}, %[[B]] : tensor<512x256xf32>, tensor<1x256xf32>)
func.func @scale_and_shift(%x: tensor<512x256xf32>, %w: tensor<256x2xf32>) -> tensor<512x256xf32> {
  %e = tensor.empty() : tensor<512x256xf32>
  %a = tensor.extract_slice %w[0, 0] [256, 1] [1, 1] : tensor<256x2xf32> to tensor<256x1xf32>
  %b = tensor.extract_slice %w[0, 1] [256, 1] [1, 1] : tensor<256x2xf32> to tensor<256x1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, 0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %a : tensor<512x256xf32>, tensor<256x1xf32>) outs(%e : tensor<512x256xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.mulf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<512x256xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, 0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%s, %b : tensor<512x256xf32>, tensor<256x1xf32>) outs(%e : tensor<512x256xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<512x256xf32>
  return %t : tensor<512x256xf32>
}

// A column that is read down the partitions stays one, and so does one of a wide matrix.
// CHECK-LABEL: func.func @stay
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @stay(%x: tensor<256x256xf32>, %w: tensor<256x2xf32>, %v: tensor<256x8192xf32>) -> (tensor<256x256xf32>, tensor<256x256xf32>) {
  %e = tensor.empty() : tensor<256x256xf32>
  %a = tensor.extract_slice %w[0, 0] [256, 1] [1, 1] : tensor<256x2xf32> to tensor<256x1xf32>
  %b = tensor.extract_slice %v[0, 7] [256, 1] [1, 1] : tensor<256x8192xf32> to tensor<256x1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %a : tensor<256x256xf32>, tensor<256x1xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.mulf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<256x256xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, 0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<256x256xf32>, tensor<256x1xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<256x256xf32>
  return %s, %t : tensor<256x256xf32>, tensor<256x256xf32>
}
