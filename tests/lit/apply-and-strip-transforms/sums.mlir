// Products that start from each other become one loop nest, in which one accumulator goes through the steps of both.
// RUN: nkx opt --knob-driven-tiling --apply-and-strip-transforms %s | FileCheck %s

// CHECK-LABEL: func.func @plain(
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<256x512xf32>
// CHECK:         %[[R:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[E]])
// CHECK:           %[[A:.*]] = bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<128x512xf32>
// CHECK-NEXT:      %[[S:.*]] = bufferization.materialize_in_destination %{{.*}} in %[[A]]
// CHECK:           %[[K:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[S]]) -> (tensor<128x512xf32>)
// CHECK:             linalg.matmul {{.*}} {nkipy.op_id = 0 : i64}
// CHECK:           %[[L:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[K]]) -> (tensor<128x512xf32>)
// CHECK:             linalg.matmul {{.*}} {nkipy.op_id = 1 : i64}
// CHECK:           tensor.insert_slice %[[L]] into
// CHECK-NOT:       memory_space = 2
// CHECK:         "nkipy.tile_op"(%[[R]])
// CHECK-NEXT:    return %[[R]]
func.func @plain(%x: tensor<256x256xf32>, %h: tensor<256x100xf32>, %w: tensor<256x512xf32>, %u: tensor<100x512xf32>) -> tensor<256x512xf32> {
  %e = tensor.empty() : tensor<256x512xf32>
  %p = linalg.matmul {nkipy.op_id = 0 : i64} ins(%x, %w : tensor<256x256xf32>, tensor<256x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  "nkipy.tile_op"(%p) {loop_tile_size = array<i64: 128, 512, 128>} : (tensor<256x512xf32>) -> ()
  %q = linalg.matmul {nkipy.op_id = 1 : i64} ins(%h, %u : tensor<256x100xf32>, tensor<100x512xf32>) outs(%p : tensor<256x512xf32>) -> tensor<256x512xf32>
  "nkipy.tile_op"(%q) {loop_tile_size = array<i64: 128, 512, 100>} : (tensor<256x512xf32>) -> ()
  return %q : tensor<256x512xf32>
}

// Rows, columns and sums that the tiles do not divide: four parts, each with both products.
// CHECK-LABEL: func.func @tails(
// CHECK-COUNT-4: memory_space = 2
// CHECK-NOT:     memory_space = 2
// CHECK:         return
func.func @tails(%x: tensor<300x140xf32>, %h: tensor<300x7xf32>, %w: tensor<140x700xf32>, %u: tensor<7x700xf32>) -> tensor<300x700xf32> {
  %e = tensor.empty() : tensor<300x700xf32>
  %p = linalg.matmul {nkipy.op_id = 2 : i64} ins(%x, %w : tensor<300x140xf32>, tensor<140x700xf32>) outs(%e : tensor<300x700xf32>) -> tensor<300x700xf32>
  "nkipy.tile_op"(%p) {loop_tile_size = array<i64: 128, 512, 128>} : (tensor<300x700xf32>) -> ()
  %q = linalg.matmul {nkipy.op_id = 3 : i64} ins(%h, %u : tensor<300x7xf32>, tensor<7x700xf32>) outs(%p : tensor<300x700xf32>) -> tensor<300x700xf32>
  "nkipy.tile_op"(%q) {loop_tile_size = array<i64: 128, 512, 7>} : (tensor<300x700xf32>) -> ()
  return %q : tensor<300x700xf32>
}

// Three products.
// CHECK-LABEL: func.func @three(
// CHECK:         memory_space = 2
// CHECK:         linalg.matmul {{.*}} {nkipy.op_id = 4 : i64}
// CHECK:         linalg.matmul {{.*}} {nkipy.op_id = 5 : i64}
// CHECK:         linalg.matmul {{.*}} {nkipy.op_id = 6 : i64}
// CHECK-NOT:     memory_space = 2
// CHECK:         return
func.func @three(%x: tensor<64x100xf32>, %w: tensor<100x90xf32>) -> tensor<64x90xf32> {
  %e = tensor.empty() : tensor<64x90xf32>
  %p = linalg.matmul {nkipy.op_id = 4 : i64} ins(%x, %w : tensor<64x100xf32>, tensor<100x90xf32>) outs(%e : tensor<64x90xf32>) -> tensor<64x90xf32>
  "nkipy.tile_op"(%p) {loop_tile_size = array<i64: 64, 90, 100>} : (tensor<64x90xf32>) -> ()
  %q = linalg.matmul {nkipy.op_id = 5 : i64} ins(%x, %w : tensor<64x100xf32>, tensor<100x90xf32>) outs(%p : tensor<64x90xf32>) -> tensor<64x90xf32>
  "nkipy.tile_op"(%q) {loop_tile_size = array<i64: 64, 90, 50>} : (tensor<64x90xf32>) -> ()
  %r = linalg.matmul {nkipy.op_id = 6 : i64} ins(%x, %w : tensor<64x100xf32>, tensor<100x90xf32>) outs(%q : tensor<64x90xf32>) -> tensor<64x90xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 64, 90, 100>} : (tensor<64x90xf32>) -> ()
  return %r : tensor<64x90xf32>
}

// Other tiles: the second one starts from zero, and its initial value is added.
// CHECK-LABEL: func.func @other_tiles(
// CHECK:         linalg.add
func.func @other_tiles(%x: tensor<64x100xf32>, %w: tensor<100x90xf32>) -> tensor<64x90xf32> {
  %e = tensor.empty() : tensor<64x90xf32>
  %p = linalg.matmul {nkipy.op_id = 7 : i64} ins(%x, %w : tensor<64x100xf32>, tensor<100x90xf32>) outs(%e : tensor<64x90xf32>) -> tensor<64x90xf32>
  "nkipy.tile_op"(%p) {loop_tile_size = array<i64: 64, 90, 100>} : (tensor<64x90xf32>) -> ()
  %q = linalg.matmul {nkipy.op_id = 8 : i64} ins(%x, %w : tensor<64x100xf32>, tensor<100x90xf32>) outs(%p : tensor<64x90xf32>) -> tensor<64x90xf32>
  "nkipy.tile_op"(%q) {loop_tile_size = array<i64: 32, 90, 100>} : (tensor<64x90xf32>) -> ()
  return %q : tensor<64x90xf32>
}
