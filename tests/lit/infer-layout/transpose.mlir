// RUN: nkx opt --infer-layout %s | FileCheck %s

// Rows stay: a copy in another order, in tiles along the row and the dimension that fills most partitions.
// CHECK-LABEL: func.func @rows_stay
// CHECK: linalg.transpose
// CHECK: "nkipy.tile_op"(%{{.*}}) {loop_tile_size = array<i64: 1, 128, 1, 64>}
func.func @rows_stay(%a: tensor<2x16x128x64xf32>) -> tensor<2x128x16x64xf32> {
  %e = tensor.empty() : tensor<2x128x16x64xf32>
  %r = linalg.transpose ins(%a : tensor<2x16x128x64xf32>) outs(%e : tensor<2x128x16x64xf32>) permutation = [0, 2, 1, 3]
  return %r : tensor<2x128x16x64xf32>
}

// Otherwise two dimensions: the one that becomes the last and the one that was.
// CHECK-LABEL: func.func @rows_turn
// CHECK: "nkipy.tile_op"(%{{.*}}) {loop_tile_size = array<i64: 1, 10, 1, 128>}
func.func @rows_turn(%a: tensor<3x200x4x10xf32>) -> tensor<3x10x4x200xf32> {
  %e = tensor.empty() : tensor<3x10x4x200xf32>
  %r = linalg.transpose ins(%a : tensor<3x200x4x10xf32>) outs(%e : tensor<3x10x4x200xf32>) permutation = [0, 3, 2, 1]
  return %r : tensor<3x10x4x200xf32>
}
