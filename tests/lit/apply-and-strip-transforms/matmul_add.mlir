// A product in SBUF is used where it is: only the other operand of the addition is copied.
// RUN: nkx opt --knob-driven-tiling --apply-and-strip-transforms %s | FileCheck %s
func.func @f(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>, %c: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %0 = tensor.empty() : tensor<256x256xf32>
  %1 = linalg.matmul {nkipy.op_id = 0 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%1) {mem_space = 3 : i32, tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%1) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<256x256xf32>) -> ()
  %2 = tensor.empty() : tensor<256x256xf32>
  %3 = linalg.add {nkipy.op_id = 1 : i64} ins(%1, %c : tensor<256x256xf32>, tensor<256x256xf32>) outs(%2 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%3) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%3) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %3 : tensor<256x256xf32>
}
// CHECK:         %[[C:.*]] = scf.for %{{.*}} = %c0{{.*}} to %c256{{.*}} step %c256
// CHECK:         "nkipy.layout"(%[[C]]) {mem_space = 3 : i32
// CHECK-NEXT:    "nkipy.tile_op"(%[[C]])
// CHECK:         %[[R:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c256{{.*}} step %c128
// CHECK:           scf.for %[[J:.*]] = %c0{{.*}} to %c256{{.*}} step %c128
// CHECK:             %[[X:.*]] = tensor.extract_slice %[[C]][%[[I]], %[[J]]] [128, 128]
// CHECK-NEXT:        %[[Y:.*]] = tensor.extract_slice %arg2[%[[I]], %[[J]]] [128, 128]
// CHECK-NEXT:        %[[S:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32}
// CHECK-NEXT:        %[[P:.*]] = bufferization.materialize_in_destination %[[Y]] in %[[S]]
// CHECK:             linalg.add {nkipy.op_id = 1 : i64} ins(%[[X]], %[[P]]
