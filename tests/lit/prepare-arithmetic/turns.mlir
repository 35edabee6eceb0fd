// A transpose that keeps its first dimensions is a copy of rows: they lie across the partitions, neighbours that stay neighbours are one dimension.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// CHECK-DAG: #[[FROM:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4, d1, d3)>
// CHECK-DAG: #[[TO:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>

// REMARK: each of 256 rows of 4096 elements is turned by itself
// CHECK-LABEL: func.func @shuffle
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %arg0 {{.*}} into tensor<256x2x2x32x32xf32>
// CHECK: %[[TURNED:.*]] = linalg.generic {indexing_maps = [#[[FROM]], #[[TO]]]{{.*}} ins(%[[ROWS]] : tensor<256x2x2x32x32xf32>) outs(%{{.*}} : tensor<256x32x2x32x2xf32>)
// CHECK: tensor.expand_shape %[[TURNED]] {{.*}} into tensor<4x64x32x2x32x2xf32>
// CHECK-NOT: linalg.transpose
func.func @shuffle(%x: tensor<4x64x2x2x32x32xf32>) -> tensor<4x64x32x2x32x2xf32> {
  %e = tensor.empty() : tensor<4x64x32x2x32x2xf32>
  %t = linalg.transpose ins(%x : tensor<4x64x2x2x32x32xf32>) outs(%e : tensor<4x64x32x2x32x2xf32>) permutation = [0, 1, 4, 2, 5, 3]
  return %t : tensor<4x64x32x2x32x2xf32>
}

// Few long rows, rows of which the last dimension stays, a matrix, and what a product reads stay transposes.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-4: linalg.transpose
// CHECK: return
func.func @stay(%x: tensor<2x256x1024xf32>, %y: tensor<64x4x8x256xf32>, %z: tensor<128x512xf32>, %k: tensor<64x32x16xf32>, %q: tensor<64x8x16xf32>)
    -> (tensor<2x1024x256xf32>, tensor<64x8x4x256xf32>, tensor<512x128xf32>, tensor<64x8x32xf32>) {
  %e = tensor.empty() : tensor<2x1024x256xf32>
  %a = linalg.transpose ins(%x : tensor<2x256x1024xf32>) outs(%e : tensor<2x1024x256xf32>) permutation = [0, 2, 1]
  %f = tensor.empty() : tensor<64x8x4x256xf32>
  %b = linalg.transpose ins(%y : tensor<64x4x8x256xf32>) outs(%f : tensor<64x8x4x256xf32>) permutation = [0, 2, 1, 3]
  %g = tensor.empty() : tensor<512x128xf32>
  %c = linalg.transpose ins(%z : tensor<128x512xf32>) outs(%g : tensor<512x128xf32>) permutation = [1, 0]
  %h = tensor.empty() : tensor<64x16x32xf32>
  %kt = linalg.transpose ins(%k : tensor<64x32x16xf32>) outs(%h : tensor<64x16x32xf32>) permutation = [0, 2, 1]
  %zero = arith.constant 0.0 : f32
  %i = tensor.empty() : tensor<64x8x32xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%i : tensor<64x8x32xf32>) -> tensor<64x8x32xf32>
  %p = linalg.batch_matmul ins(%q, %kt : tensor<64x8x16xf32>, tensor<64x16x32xf32>) outs(%fill : tensor<64x8x32xf32>) -> tensor<64x8x32xf32>
  return %a, %b, %c, %p : tensor<2x1024x256xf32>, tensor<64x8x4x256xf32>, tensor<512x128xf32>, tensor<64x8x32xf32>
}

// What stays a transpose has no two dimensions where one does.
// CHECK-LABEL: func.func @fewer
// CHECK: %[[MATRIX:.*]] = tensor.collapse_shape %arg0 {{.*}} into tensor<256x3136xbf16>
// CHECK: linalg.transpose ins(%[[MATRIX]] : tensor<256x3136xbf16>) outs(%{{.*}} : tensor<3136x256xbf16>) permutation = [1, 0]
// CHECK: tensor.collapse_shape %arg1 {{.*}} into tensor<4x256x784xf32>
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 1]
func.func @fewer(%x: tensor<256x56x56xbf16>, %y: tensor<4x256x28x28xf32>) -> (tensor<56x56x256xbf16>, tensor<4x28x28x256xf32>) {
  %e = tensor.empty() : tensor<56x56x256xbf16>
  %r = linalg.transpose ins(%x : tensor<256x56x56xbf16>) outs(%e : tensor<56x56x256xbf16>) permutation = [1, 2, 0]
  %f = tensor.empty() : tensor<4x28x28x256xf32>
  %s = linalg.transpose ins(%y : tensor<4x256x28x28xf32>) outs(%f : tensor<4x28x28x256xf32>) permutation = [0, 2, 3, 1]
  return %r, %s : tensor<56x56x256xbf16>, tensor<4x28x28x256xf32>
}

// What computes one element from one element does that with the rows, as long as nothing else reads it.
// CHECK-LABEL: func.func @beside
// CHECK: %[[TURNED:.*]] = linalg.generic {indexing_maps = [#[[FROM]], #[[TO]]]{{.*}} outs(%{{.*}} : tensor<256x32x2x32x2xf32>) {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
// CHECK: %[[EXP:.*]] = linalg.exp ins(%[[TURNED]] : tensor<256x32x2x32x2xf32>)
// CHECK: %[[ABS:.*]] = linalg.abs ins(%[[EXP]] : tensor<256x32x2x32x2xf32>)
// CHECK: tensor.expand_shape %[[ABS]]
func.func @beside(%x: tensor<4x64x2x2x32x32xf32>) -> tensor<4x64x32x2x32x2xf32> {
  %c = arith.constant 0.5 : f32
  %d = tensor.empty() : tensor<4x64x2x2x32x32xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b, c, d, e, f) -> (a, b, c, d, e, f)>, affine_map<(a, b, c, d, e, f) -> (a, b, c, d, e, f)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<4x64x2x2x32x32xf32>) outs(%d : tensor<4x64x2x2x32x32xf32>) {
  ^bb0(%in: f32, %out: f32):
    %p = arith.mulf %in, %c : f32
    linalg.yield %p : f32
  } -> tensor<4x64x2x2x32x32xf32>
  %y = linalg.exp ins(%m : tensor<4x64x2x2x32x32xf32>) outs(%d : tensor<4x64x2x2x32x32xf32>) -> tensor<4x64x2x2x32x32xf32>
  %e = tensor.empty() : tensor<4x64x32x2x32x2xf32>
  %t = linalg.transpose ins(%y : tensor<4x64x2x2x32x32xf32>) outs(%e : tensor<4x64x32x2x32x2xf32>) permutation = [0, 1, 4, 2, 5, 3]
  %a = linalg.abs ins(%t : tensor<4x64x32x2x32x2xf32>) outs(%e : tensor<4x64x32x2x32x2xf32>) -> tensor<4x64x32x2x32x2xf32>
  return %a : tensor<4x64x32x2x32x2xf32>
}

// CHECK-LABEL: func.func @read_elsewhere
// CHECK: linalg.exp
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<256x32x2x32x2xf32>) {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: linalg.yield %in
// CHECK-NOT: linalg.exp
// CHECK: return
func.func @read_elsewhere(%x: tensor<4x64x2x2x32x32xf32>) -> (tensor<4x64x32x2x32x2xf32>, tensor<4x64x2x2x32x32xf32>) {
  %d = tensor.empty() : tensor<4x64x2x2x32x32xf32>
  %y = linalg.exp ins(%x : tensor<4x64x2x2x32x32xf32>) outs(%d : tensor<4x64x2x2x32x32xf32>) -> tensor<4x64x2x2x32x32xf32>
  %e = tensor.empty() : tensor<4x64x32x2x32x2xf32>
  %t = linalg.transpose ins(%y : tensor<4x64x2x2x32x32xf32>) outs(%e : tensor<4x64x32x2x32x2xf32>) permutation = [0, 1, 4, 2, 5, 3]
  return %t, %y : tensor<4x64x32x2x32x2xf32>, tensor<4x64x2x2x32x32xf32>
}

// Short rows lie in a partition together, as many as a tile holds.
// CHECK-LABEL: func.func @together
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<256x16x64x2xf32>) outs(%{{.*}} : tensor<256x16x2x64xf32>)
func.func @together(%x: tensor<4096x64x2xf32>) -> tensor<4096x2x64xf32> {
  %e = tensor.empty() : tensor<4096x2x64xf32>
  %t = linalg.transpose ins(%x : tensor<4096x64x2xf32>) outs(%e : tensor<4096x2x64xf32>) permutation = [0, 2, 1]
  return %t : tensor<4096x2x64xf32>
}
