// A matmul starts from zero: a zero fill in front of it goes, any other value is added behind it.
// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s
func.func @zero(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %z = arith.constant -0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill {nkipy.op_id = 0 : i64} ins(%z : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.matmul {nkipy.op_id = 1 : i64} ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 8, 8, 8>} : (tensor<8x8xf32>) -> ()
  return %r, %f : tensor<8x8xf32>, tensor<8x8xf32>
}
// CHECK-LABEL: @zero
// CHECK:         linalg.fill
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         linalg.matmul {{.*}} outs(%[[E]] : tensor<8x8xf32>)

func.func @value(%a: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = linalg.matmul {nkipy.op_id = 2 : i64} ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, tile_size = array<i64: 8, 4>} : (tensor<8x8xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 8, 4, 2>} : (tensor<8x8xf32>) -> ()
  return %r : tensor<8x8xf32>
}
// CHECK-LABEL: @value
// CHECK-NEXT:    %[[E:.*]] = tensor.empty
// CHECK-NEXT:    %[[P:.*]] = linalg.matmul {nkipy.op_id = 2 : i64} ins(%arg0, %arg0 : {{.*}}) outs(%[[E]]
// CHECK-NEXT:    "nkipy.layout"(%[[P]]) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 8, 4>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[P]]) {loop_tile_size = array<i64: 8, 4, 2>}
// CHECK-NEXT:    %[[O:.*]] = tensor.empty
// CHECK-NEXT:    %[[S:.*]] = linalg.add {nkipy.op_id = 4 : i64} ins(%[[P]], %arg1 : {{.*}}) outs(%[[O]]
// CHECK-NEXT:    "nkipy.tile_op"(%[[S]]) {loop_tile_size = array<i64: 8, 4>}
// CHECK-NEXT:    "nkipy.layout"(%[[S]]) {mem_space = 4 : i32, tile_size = array<i64: 8, 4>}
// CHECK-NEXT:    return %[[S]]

// A loop over a batch starts each product from its own slice of zeros; the loop's fill goes.
func.func @batch(%a: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<2x8x8xf32>
  %f = linalg.fill {nkipy.op_id = 3 : i64} ins(%z : f32) outs(%e : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %f) -> (tensor<2x8x8xf32>) {
    %x = tensor.extract_slice %a[%i, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<2x8x8xf32> to tensor<8x8xf32>
    %o = tensor.extract_slice %acc[%i, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<2x8x8xf32> to tensor<8x8xf32>
    %m = linalg.matmul {nkipy.op_id = 3 : i64} ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%o : tensor<8x8xf32>) -> tensor<8x8xf32>
    "nkipy.tile_op"(%m) {loop_tile_size = array<i64: 8, 8, 8>} : (tensor<8x8xf32>) -> ()
    %s = tensor.insert_slice %m into %acc[%i, 0, 0] [1, 8, 8] [1, 1, 1] : tensor<8x8xf32> into tensor<2x8x8xf32>
    scf.yield %s : tensor<2x8x8xf32>
  }
  return %r : tensor<2x8x8xf32>
}
// CHECK-LABEL: @batch
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %[[E]])
// CHECK-NOT:     linalg.add
// CHECK:         transform.named_sequence
