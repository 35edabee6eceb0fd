// RUN: nkx opt --decompose-batch-matmul %s | FileCheck %s
// CHECK: #[[NK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>

// The loop tile goes to the matmul, without the batch; the layout stays outside and takes the tile it lacks from it.
// CHECK-LABEL: func.func @knobs(
// CHECK:         %[[R:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c8{{.*}} step %c1{{.*}} iter_args(%[[ACC:.*]] = %arg2) -> (tensor<8x256x128xf32>) {
// CHECK-NEXT:      %[[A:.*]] = tensor.extract_slice %arg0[%[[I]], 0, 0] [1, 256, 64] [1, 1, 1] : tensor<8x256x64xf32> to tensor<256x64xf32>
// CHECK-NEXT:      %[[B:.*]] = tensor.extract_slice %arg1[%[[I]], 0, 0] [1, 64, 128] [1, 1, 1] : tensor<8x64x128xf32> to tensor<64x128xf32>
// CHECK-NEXT:      %[[C:.*]] = tensor.extract_slice %[[ACC]][%[[I]], 0, 0] [1, 256, 128] [1, 1, 1]
// CHECK-NEXT:      %[[M:.*]] = linalg.matmul {nkipy.op_id = 7 : i64} ins(%[[A]], %[[B]] : {{.*}}) outs(%[[C]] :
// CHECK-NEXT:      "nkipy.tile_op"(%[[M]]) {loop_tile_size = array<i64: 128, 64, 32>}
// CHECK-NEXT:      %[[S:.*]] = tensor.insert_slice %[[M]] into %[[ACC]][%[[I]], 0, 0] [1, 256, 128] [1, 1, 1]
// CHECK-NEXT:      scf.yield %[[S]]
// CHECK-NEXT:    }
// CHECK-NEXT:    "nkipy.layout"(%[[R]]) {mem_space = 4 : i32, tile_size = array<i64: 1, 128, 64>}
// CHECK-NEXT:    return %[[R]]
func.func @knobs(%a: tensor<8x256x64xf32>, %b: tensor<8x64x128xf32>, %c: tensor<8x256x128xf32>) -> tensor<8x256x128xf32> {
  %r = linalg.batch_matmul {nkipy.op_id = 7 : i64} ins(%a, %b : tensor<8x256x64xf32>, tensor<8x64x128xf32>) outs(%c : tensor<8x256x128xf32>) -> tensor<8x256x128xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 128, 64, 32>} : (tensor<8x256x128xf32>) -> ()
  "nkipy.layout"(%r) {mem_space = 4 : i32} : (tensor<8x256x128xf32>) -> ()
  return %r : tensor<8x256x128xf32>
}

// A zero fill is what the loop starts from.  A loop tile alone makes a layout.
// CHECK-LABEL: func.func @fill(
// CHECK:         %[[F:.*]] = linalg.fill
// CHECK:         %[[R:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[F]])
// CHECK:         "nkipy.layout"(%[[R]]) {tile_size = array<i64: 1, 2, 2>}
func.func @fill(%a: tensor<8x4x4xf32>) -> tensor<8x4x4xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x4x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x4x4xf32>) -> tensor<8x4x4xf32>
  %r = linalg.batch_matmul ins(%a, %a : tensor<8x4x4xf32>, tensor<8x4x4xf32>) outs(%f : tensor<8x4x4xf32>) -> tensor<8x4x4xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 2, 2, 4>} : (tensor<8x4x4xf32>) -> ()
  return %r : tensor<8x4x4xf32>
}

// One matrix for all batches is not sliced.
// CHECK-LABEL: func.func @one_matrix(
// CHECK:         linalg.matmul ins(%{{.*}}, %arg1 : tensor<5x7xf32>, tensor<7x6xf32>)
func.func @one_matrix(%a: tensor<3x5x7xf32>, %b: tensor<7x6xf32>, %c: tensor<3x5x6xf32>) -> tensor<3x5x6xf32> {
  %r = linalg.batch_matmul
    indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%a, %b : tensor<3x5x7xf32>, tensor<7x6xf32>) outs(%c : tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  return %r : tensor<3x5x6xf32>
}

// Two batch dimensions, one of them missing on the left; the right operand transposed.
// CHECK-LABEL: func.func @two_batches(
// CHECK:         scf.for %[[I:.*]] = %c0{{.*}} to %c2
// CHECK:           scf.for %[[J:.*]] = %c0{{.*}} to %c3
// CHECK:             tensor.extract_slice %arg0[%[[J]], 0, 0] [1, 4, 6]
// CHECK:             tensor.extract_slice %arg1[%[[I]], %[[J]], 0, 0] [1, 1, 5, 6]
// CHECK:             linalg.matmul indexing_maps = [#{{.*}}, #[[NK]], #{{.*}}]
func.func @two_batches(%a: tensor<3x4x6xf32>, %b: tensor<2x3x5x6xf32>, %c: tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32> {
  %r = linalg.contract
    indexing_maps = [affine_map<(i, j, m, n, k) -> (j, m, k)>, affine_map<(i, j, m, n, k) -> (i, j, n, k)>, affine_map<(i, j, m, n, k) -> (i, j, m, n)>]
    ins(%a, %b : tensor<3x4x6xf32>, tensor<2x3x5x6xf32>) outs(%c : tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  return %r : tensor<2x3x4x5xf32>
}

// Not a product of sums: left alone.
// CHECK-LABEL: func.func @max_plus(
// CHECK-NOT:     scf.for
// CHECK:         linalg.generic
func.func @max_plus(%a: tensor<2x4x4xf32>, %c: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%a, %a : tensor<2x4x4xf32>, tensor<2x4x4xf32>) outs(%c : tensor<2x4x4xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.addf %x, %y : f32
    %s = arith.maximumf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x4x4xf32>
  return %r : tensor<2x4x4xf32>
}
