// Annotations end on the buffers, with their attributes, and cause no copies; nothing is left on tensors.
// RUN: nkx opt --one-shot-bufferize %s | FileCheck %s
// CHECK-NOT: to_tensor
// CHECK-NOT: to_buffer
func.func @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %e0 = tensor.empty() : tensor<8x8xf32>
  %x = linalg.exp ins(%a : tensor<8x8xf32>) outs(%e0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  "nkipy.layout"(%x) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 4, 8>} : (tensor<8x8xf32>) -> ()
  "nkipy.tile_op"(%x) {loop_tile_size = array<i64: 4, 8>} : (tensor<8x8xf32>) -> ()
  %e1 = tensor.empty() : tensor<8x8xf32>
  %r = scf.for %i = %c0 to %c8 step %c4 iter_args(%t = %e1) -> (tensor<8x8xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [4, 8] [1, 1] : tensor<8x8xf32> to tensor<4x8xf32>
    %m = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<4x8xf32>
    %y = linalg.tanh ins(%s : tensor<4x8xf32>) outs(%m : tensor<4x8xf32>) -> tensor<4x8xf32>
    %n = tensor.insert_slice %y into %t[%i, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<8x8xf32>
    scf.yield %n : tensor<8x8xf32>
  }
  "nkipy.layout"(%r) {mem_space = 4 : i32, tile_size = array<i64: 4, 8>} : (tensor<8x8xf32>) -> ()
  return %r : tensor<8x8xf32>
}
// CHECK:      func.func @f(%arg0: memref<8x8xf32, strided<[?, ?], offset: ?>>) -> memref<8x8xf32>
// CHECK:      %[[X:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
// CHECK:      linalg.exp ins(%arg0 {{.*}}) outs(%[[X]] : memref<8x8xf32>)
// CHECK-NOT:  memref.copy
// CHECK:      "nkipy.layout"(%[[X]]) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 4, 8>} : (memref<8x8xf32>)
// CHECK-NEXT: "nkipy.tile_op"(%[[X]]) {loop_tile_size = array<i64: 4, 8>} : (memref<8x8xf32>)
// CHECK-NOT:  memref.copy
// CHECK:      %[[R:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
// CHECK-NEXT: %[[L:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[R]])
// CHECK:        memref.alloc() {alignment = 64 : i64} : memref<4x8xf32, 3 : i32>
// CHECK:      "nkipy.layout"(%[[L]]) {mem_space = 4 : i32, tile_size = array<i64: 4, 8>}
// CHECK:      return %[[L]]
