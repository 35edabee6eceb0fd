// A dimension that the tile does not divide: a loop over the whole tiles and, behind it, one over the rest, both on the
// whole value; no slice of a slice is left, and every size is static.
// RUN: nkx opt --knob-driven-tiling --apply-and-strip-transforms %s | FileCheck %s

func.func @rows(%a: tensor<130x64xf32>) -> tensor<130x64xf32> {
  %e = tensor.empty() : tensor<130x64xf32>
  %r = linalg.exp {nkipy.op_id = 0 : i64} ins(%a : tensor<130x64xf32>) outs(%e : tensor<130x64xf32>) -> tensor<130x64xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 64>} : (tensor<130x64xf32>) -> ()
  return %r : tensor<130x64xf32>
}
// CHECK-LABEL: func.func @rows
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK-NOT:     tensor.extract_slice
// CHECK:         %[[MAIN:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{.*}} iter_args(%{{.*}} = %[[E]]) -> (tensor<130x64xf32>)
// CHECK:           scf.for %[[J:.*]] = %c0
// CHECK:             tensor.extract_slice %arg0[%[[I]], %[[J]]] [128, 64] [1, 1] : tensor<130x64xf32> to tensor<128x64xf32>
// CHECK:             tensor.insert_slice %{{.*}} into %{{.*}}[%[[I]], %[[J]]] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<130x64xf32>
// CHECK:         %[[REST:.*]] = scf.for %{{.*}} = %c0{{.*}} to %c2{{.*}} step %c2{{.*}} iter_args(%{{.*}} = %[[MAIN]]) -> (tensor<130x64xf32>)
// CHECK:           scf.for %[[J:.*]] = %c0
// CHECK:             tensor.extract_slice %arg0[128, %[[J]]] [2, 64] [1, 1] : tensor<130x64xf32> to tensor<2x64xf32>
// CHECK:             tensor.insert_slice %{{.*}} into %{{.*}}[128, %[[J]]] [2, 64] [1, 1] : tensor<2x64xf32> into tensor<130x64xf32>
// CHECK-NOT:     tensor.insert_slice
// CHECK:         "nkipy.tile_op"(%[[REST]])
// CHECK-NEXT:    return %[[REST]]

// K: both parts add to one accumulator.
func.func @k(%a: tensor<8x20xf32>, %b: tensor<20x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %r = linalg.matmul {nkipy.op_id = 1 : i64} ins(%a, %b : tensor<8x20xf32>, tensor<20x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 8, 8, 16>} : (tensor<8x8xf32>) -> ()
  return %r : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @k
// CHECK-COUNT-1: memory_space = 2 : i32
// CHECK-NEXT:    %[[ACC:.*]] = bufferization.materialize_in_destination
// CHECK-NOT:     memory_space
// CHECK:         %[[MAIN:.*]] = scf.for %[[K:.*]] = %c0{{.*}} to %c16{{.*}} step %c16{{.*}} iter_args(%{{.*}} = %[[ACC]]) -> (tensor<8x8xf32>)
// CHECK:           tensor.extract_slice %{{.*}}[%[[K]], 0] [16, 8]
// CHECK:           tensor.extract_slice %{{.*}}[%[[K]], 0] [16, 8]
// CHECK:           linalg.matmul {{.*}} ins(%{{.*}}, %{{.*}} : tensor<16x8xf32>, tensor<16x8xf32>)
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c4{{.*}} step %c4{{.*}} iter_args(%{{.*}} = %[[MAIN]]) -> (tensor<8x8xf32>)
// CHECK:           tensor.extract_slice %{{.*}}[16, 0] [4, 8]
// CHECK:           tensor.extract_slice %{{.*}}[16, 0] [4, 8]
// CHECK:           linalg.matmul {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xf32>)

// N: both parts use the transposed block of the left operand.
func.func @n(%a: tensor<8x16xf32>, %b: tensor<16x11xf32>) -> tensor<8x11xf32> {
  %e = tensor.empty() : tensor<8x11xf32>
  %r = linalg.matmul {nkipy.op_id = 2 : i64} ins(%a, %b : tensor<8x16xf32>, tensor<16x11xf32>) outs(%e : tensor<8x11xf32>) -> tensor<8x11xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 8, 8, 16>} : (tensor<8x11xf32>) -> ()
  return %r : tensor<8x11xf32>
}
// CHECK-LABEL: func.func @n
// CHECK:         linalg.transpose
// CHECK-NOT:     linalg.transpose
// CHECK:         [16, 8] [1, 1] : tensor<16x11xf32> to tensor<16x8xf32>
// CHECK-NEXT:    bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<16x8xf32>
// CHECK:         bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<8x8xf32>
// CHECK:         tensor.extract_slice %{{.*}}[0, 8] [16, 3] [1, 1] : tensor<16x11xf32> to tensor<16x3xf32>
// CHECK-NEXT:    bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<16x3xf32>
// CHECK:         bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<8x3xf32>
// CHECK-NOT:     linalg.transpose
// CHECK:         return
