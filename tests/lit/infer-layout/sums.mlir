// A product that starts from another one has its tiles, and the other one is in no memory but PSUM.
// RUN: nkx opt --infer-layout --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// REMARK: in SBUF: the next product is added to it in PSUM

// CHECK-LABEL: func.func @sums(
// CHECK:         %[[P:.*]] = linalg.matmul
// CHECK:         "nkipy.tile_op"(%[[P]]) {loop_tile_size = array<i64: 32, 100, 128>}
// CHECK:         %[[Q:.*]] = linalg.matmul
// CHECK:         "nkipy.tile_op"(%[[Q]]) {loop_tile_size = array<i64: 32, 100, 100>}
func.func @sums(%x: tensor<64x200xf32>, %w: tensor<200x300xf32>, %h: tensor<64x100xf32>, %u: tensor<100x300xf32>) -> tensor<64x300xf32> {
  %e = tensor.empty() : tensor<64x300xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x200xf32>, tensor<200x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  %q = linalg.matmul ins(%h, %u : tensor<64x100xf32>, tensor<100x300xf32>) outs(%p : tensor<64x300xf32>) -> tensor<64x300xf32>
  %s = linalg.exp ins(%q : tensor<64x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  "nkipy.tile_op"(%s) {loop_tile_size = array<i64: 32, 100>} : (tensor<64x300xf32>) -> ()
  return %s : tensor<64x300xf32>
}
