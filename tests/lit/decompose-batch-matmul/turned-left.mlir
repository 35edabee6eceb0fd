// A product reads a left operand that is transposed from before the transpose.
// RUN: nkx opt --decompose-batch-matmul %s | FileCheck %s
// CHECK-DAG: #[[KM:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>

// The knobs of the product stay with it.
// CHECK-LABEL: func.func @plain(
// CHECK-NOT:     linalg.transpose
// CHECK:         %[[M:.*]] = linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] {nkipy.op_id = 7 : i64} ins(%arg0, %arg1 :
// CHECK-NEXT:    "nkipy.tile_op"(%[[M]])
// CHECK-NEXT:    return %[[M]]
func.func @plain(%a: tensor<130x517xf32>, %b: tensor<130x64xf32>, %c: tensor<517x64xf32>) -> tensor<517x64xf32> {
  %e = tensor.empty() : tensor<517x130xf32>
  %t = linalg.transpose ins(%a : tensor<130x517xf32>) outs(%e : tensor<517x130xf32>) permutation = [1, 0]
  %r = linalg.matmul {nkipy.op_id = 7 : i64} ins(%t, %b : tensor<517x130xf32>, tensor<130x64xf32>) outs(%c : tensor<517x64xf32>) -> tensor<517x64xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 64, 128>} : (tensor<517x64xf32>) -> ()
  return %r : tensor<517x64xf32>
}

// With a batch, if the transpose leaves it in place.
// CHECK-LABEL: func.func @batch(
// CHECK-NOT:     linalg.transpose
// CHECK:         scf.for
// CHECK:           %[[A:.*]] = tensor.extract_slice %arg0[%{{.*}}, 0, 0] [1, 5, 4]
// CHECK:           linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] ins(%[[A]],
func.func @batch(%a: tensor<3x5x4xf32>, %b: tensor<3x5x6xf32>, %c: tensor<3x4x6xf32>) -> tensor<3x4x6xf32> {
  %e = tensor.empty() : tensor<3x4x5xf32>
  %t = linalg.transpose ins(%a : tensor<3x5x4xf32>) outs(%e : tensor<3x4x5xf32>) permutation = [0, 2, 1]
  %r = linalg.batch_matmul ins(%t, %b : tensor<3x4x5xf32>, tensor<3x5x6xf32>) outs(%c : tensor<3x4x6xf32>) -> tensor<3x4x6xf32>
  return %r : tensor<3x4x6xf32>
}

// A transpose that moves the batch stays.
// CHECK-LABEL: func.func @moved_batch(
// CHECK:         linalg.transpose
func.func @moved_batch(%a: tensor<4x5x3xf32>, %b: tensor<3x5x6xf32>, %c: tensor<3x4x6xf32>) -> tensor<3x4x6xf32> {
  %e = tensor.empty() : tensor<3x4x5xf32>
  %t = linalg.transpose ins(%a : tensor<4x5x3xf32>) outs(%e : tensor<3x4x5xf32>) permutation = [2, 0, 1]
  %r = linalg.batch_matmul ins(%t, %b : tensor<3x4x5xf32>, tensor<3x5x6xf32>) outs(%c : tensor<3x4x6xf32>) -> tensor<3x4x6xf32>
  return %r : tensor<3x4x6xf32>
}

// Another reader keeps the transpose.
// CHECK-LABEL: func.func @read_twice(
// CHECK:         %[[T:.*]] = linalg.transpose
// CHECK:         %[[M:.*]] = linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] ins(%arg0,
// CHECK:         return %[[M]], %[[T]]
func.func @read_twice(%a: tensor<5x4xf32>, %b: tensor<5x6xf32>, %c: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x5xf32>) {
  %e = tensor.empty() : tensor<4x5xf32>
  %t = linalg.transpose ins(%a : tensor<5x4xf32>) outs(%e : tensor<4x5xf32>) permutation = [1, 0]
  %r = linalg.matmul ins(%t, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r, %t : tensor<4x6xf32>, tensor<4x5xf32>
}

// A transpose with knobs is left alone.
// CHECK-LABEL: func.func @knobs(
// CHECK:         %[[T:.*]] = linalg.transpose
// CHECK:         linalg.matmul ins(%[[T]],
func.func @knobs(%a: tensor<5x4xf32>, %b: tensor<5x6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x5xf32>
  %t = linalg.transpose ins(%a : tensor<5x4xf32>) outs(%e : tensor<4x5xf32>) permutation = [1, 0]
  "nkipy.layout"(%t) {mem_space = 3 : i32} : (tensor<4x5xf32>) -> ()
  %r = linalg.matmul ins(%t, %b : tensor<4x5xf32>, tensor<5x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
