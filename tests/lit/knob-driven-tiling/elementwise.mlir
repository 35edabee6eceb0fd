// The payload stays; the script has one group per operation: find it, loops, operands and destination to SBUF.
// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s
func.func @f(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.add {nkipy.op_id = 5 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 64>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK:      module attributes {transform.with_named_sequence}
// CHECK:        linalg.add {nkipy.op_id = 5 : i64} ins(%arg0, %arg1
// CHECK-NEXT:   "nkipy.tile_op"
// CHECK:        transform.named_sequence @__transform_main(%[[ROOT:.*]]: !transform.any_op {transform.readonly}) {
// CHECK-NEXT:     %[[OP:.*]] = transform.structured.match ops{["linalg.add"]} attributes {nkipy.op_id = 5 : i64} in %[[ROOT]]
// CHECK-NEXT:     %[[T:.*]], %{{.*}}:2 = transform.structured.tile_using_for %[[OP]] tile_sizes [128, 64]
// CHECK-NEXT:     %[[A:.*]] = transform.get_operand %[[T]][0]
// CHECK-NEXT:     transform.structured.promote_tensor to 3 : i32 %[[A]]
// CHECK-NEXT:     %[[B:.*]] = transform.get_operand %[[T]][1]
// CHECK-NEXT:     transform.structured.promote_tensor to 3 : i32 %[[B]]
// CHECK-NEXT:     %[[C:.*]] = transform.get_operand %[[T]][2]
// CHECK-NEXT:     transform.structured.promote_tensor to 3 : i32 %[[C]]
// CHECK-NEXT:     transform.yield
