// RUN: nkx opt --prepare-arithmetic %s 2>/dev/null | FileCheck %s
// RUN: nkx opt --prepare-arithmetic %s 2>&1 >/dev/null | FileCheck %s --check-prefix=KNOB
#x = affine_map<(n, o, i, j, c, p, q) -> (n, c, i * 2 + p, j + q * 3)>
#w = affine_map<(n, o, i, j, c, p, q) -> (o, c, p, q)>
#y = affine_map<(n, o, i, j, c, p, q) -> (n, o, i, j)>
#x1 = affine_map<(n, i, j, o, c, p, q) -> (n, i + p, j + q, c)>
#w1 = affine_map<(n, i, j, o, c, p, q) -> (p, q, c, o)>
#y1 = affine_map<(n, i, j, o, c, p, q) -> (n, i, j, o)>
#x2 = affine_map<(n, c, i, u, v, p) -> (n + u, c + v, i * 2 + p)>
#w2 = affine_map<(n, c, i, u, v, p) -> (u, v, p)>
#y2 = affine_map<(n, c, i, u, v, p) -> (n, c, i)>
#x3 = affine_map<(c, i, p) -> (c, i + p)>
#w3 = affine_map<(c, i, p) -> (p)>
#y3 = affine_map<(c, i, p) -> (c, i)>

// Images of a batch are batches, features and windows are summed up, positions are columns.
// CHECK-LABEL: func.func @nchw(
// CHECK:         %[[K:.*]] = tensor.collapse_shape %arg1 {{\[\[}}0], [1, 2, 3]] : tensor<5x3x2x2xf32> into tensor<5x12xf32>
// CHECK:         %[[S:.*]] = tensor.extract_slice %arg0[0, 0, 0, 0] [2, 3, 4, 8] [1, 1, 2, 1]
// CHECK:         %[[I:.*]] = tensor.insert_slice %[[S]] into %{{.*}}[0, 0, 0, 0, 0] [2, 3, 1, 4, 8] [1, 1, 1, 1, 1] {{.*}} into tensor<2x3x2x4x8xf32>
// CHECK:         tensor.extract_slice %arg0[0, 0, 1, 0] [2, 3, 4, 8] [1, 1, 2, 1]
// CHECK:         %[[J:.*]] = tensor.insert_slice %{{.*}} into %[[I]][0, 0, 1, 0, 0]
// CHECK:         tensor.extract_slice %[[J]][0, 0, 0, 0, 0] [2, 3, 2, 4, 5] [1, 1, 1, 1, 1]
// CHECK:         tensor.extract_slice %[[J]][0, 0, 0, 0, 3] [2, 3, 2, 4, 5] [1, 1, 1, 1, 1]
// CHECK:         %[[P:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2, 3], [4, 5]] : tensor<2x3x2x2x4x5xf32> into tensor<2x12x20xf32>
// CHECK:         %[[R:.*]] = linalg.contract {{.*}} ins(%[[K]], %[[P]] : tensor<5x12xf32>, tensor<2x12x20xf32>) outs(%{{.*}} : tensor<2x5x20xf32>)
// CHECK:         tensor.expand_shape %[[R]] {{.*}} into tensor<2x5x4x5xf32>
func.func @nchw(%x: tensor<2x3x9x8xf32>, %k: tensor<5x3x2x2xf32>) -> tensor<2x5x4x5xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x4x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x5x4x5xf32>) -> tensor<2x5x4x5xf32>
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %k : tensor<2x3x9x8xf32>, tensor<5x3x2x2xf32>) outs(%f : tensor<2x5x4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x5x4x5xf32>
  return %r : tensor<2x5x4x5xf32>
}

// Features last: the kernel is the right operand, and nothing is transposed.
// CHECK-LABEL: func.func @nhwc(
// CHECK-NOT:     linalg.transpose
// CHECK-NOT:     nkipy
// CHECK:         linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<24x12xbf16>, tensor<12x5xbf16>) outs(%{{.*}} : tensor<24x5xf32>)
// CHECK-NOT:     linalg.transpose
func.func @nhwc(%x: tensor<2x4x5x3xbf16>, %k: tensor<2x2x3x5xbf16>) -> tensor<2x3x4x5xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3x4x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  %r = linalg.generic {indexing_maps = [#x1, #w1, #y1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %k : tensor<2x4x5x3xbf16>, tensor<2x2x3x5xbf16>) outs(%f : tensor<2x3x4x5xf32>) {
  ^bb0(%a: bf16, %b: bf16, %o: f32):
    %u = arith.extf %a : bf16 to f32
    %v = arith.extf %b : bf16 to f32
    %m = arith.mulf %u, %v : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<2x3x4x5xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 1, 1, 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> ()
  return %r : tensor<2x3x4x5xf32>
}

// A small window: its elements one by one.
// CHECK-LABEL: func.func @pool(
// CHECK:         %[[A:.*]] = tensor.extract_slice %arg0[0, 0, 0] [4, 6, 5] [1, 1, 2]
// CHECK:         %[[B:.*]] = linalg.generic {{.*}}"parallel", "parallel", "parallel"]} ins(%[[A]], %{{.*}} :
// CHECK:           arith.maximumf
// CHECK:         %[[C:.*]] = tensor.extract_slice %arg0[0, 0, 1] [4, 6, 5] [1, 1, 2]
// CHECK:         linalg.generic {{.*}} ins(%[[C]], %[[B]] :
// CHECK-NOT:     reduction
func.func @pool(%x: tensor<4x6x11xf32>) -> tensor<4x6x5xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6x5xf32>
  %w = tensor.empty() : tensor<1x1x2xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x6x5xf32>) -> tensor<4x6x5xf32>
  %r = linalg.generic {indexing_maps = [#x2, #w2, #y2], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<4x6x11xf32>, tensor<1x1x2xf32>) outs(%f : tensor<4x6x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.maximumf %o, %a : f32
    linalg.yield %m : f32
  } -> tensor<4x6x5xf32>
  return %r : tensor<4x6x5xf32>
}

// A large one over the only long dimension: what position i needs is copied out for partition i, and gives the extents.
// CHECK-LABEL: func.func @long(
// CHECK:         tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 69] [1, 40, 1] [1, 1, 1] {{.*}} into tensor<1x40x70xf32>
// CHECK:         linalg.generic {{.*}}"parallel", "parallel", "reduction"]} ins(%{{.*}} : tensor<1x40x70xf32>)
func.func @long(%x: tensor<1x109xf32>) -> tensor<1x40xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x40xf32>
  %w = tensor.empty() : tensor<70xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<1x40xf32>) -> tensor<1x40xf32>
  %r = linalg.generic {indexing_maps = [#x3, #w3, #y3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x109xf32>, tensor<70xf32>) outs(%f : tensor<1x40xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.addf %o, %a : f32
    linalg.yield %m : f32
  } -> tensor<1x40xf32>
  return %r : tensor<1x40xf32>
}

// A knob of a convolution goes.
// KNOB: warning: {{.*}}this knob has no effect: the convolution is computed as a matrix product, in tiles of its own
