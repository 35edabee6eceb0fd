// RUN: nkx opt --infer-layout %s | FileCheck %s
// The tile of rows in another order has the short dimensions whole, so that both sides have runs.
#to = affine_map<(n, a, b, h, w) -> (n, h, a, w, b)>
#from = affine_map<(n, b, w, a, h) -> (n, h, a, w, b)>
#id = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>

// CHECK-LABEL: func.func @space_to_depth
// CHECK:       "nkipy.tile_op"(%{{.*}}) {loop_tile_size = array<i64: 64, 2, 2, 8, 56>}
func.func @space_to_depth(%x: tensor<64x56x2x56x2xf32>) -> tensor<64x2x2x56x56xf32> {
  %e = tensor.empty() : tensor<64x2x2x56x56xf32>
  %y = linalg.generic {indexing_maps = [#to, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<64x56x2x56x2xf32>) outs(%e : tensor<64x2x2x56x56xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64x2x2x56x56xf32>
  return %y : tensor<64x2x2x56x56xf32>
}

// Runs of a row and more on both sides: the order of the result decides.
// CHECK-LABEL: func.func @long_runs
// CHECK:       "nkipy.tile_op"(%{{.*}}) {loop_tile_size = array<i64: 64, 1, 8, 256>}
func.func @long_runs(%x: tensor<64x40x40x256xf32>) -> tensor<64x40x40x256xf32> {
  %e = tensor.empty() : tensor<64x40x40x256xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, a, b, w) -> (n, b, a, w)>, affine_map<(n, a, b, w) -> (n, a, b, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x : tensor<64x40x40x256xf32>) outs(%e : tensor<64x40x40x256xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<64x40x40x256xf32>
  return %y : tensor<64x40x40x256xf32>
}
