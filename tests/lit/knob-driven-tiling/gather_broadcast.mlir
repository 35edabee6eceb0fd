// Gathers and broadcasts read their operands where they are; their results are made in SBUF.
// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s
#id = affine_map<(d0, d1) -> (d0, d1)>
#i = affine_map<(d0, d1) -> (d0, 0)>
func.func @f(%table: tensor<50x24xf32>, %at: tensor<32x1xi32>, %row: tensor<24xf32>) -> (tensor<32x24xf32>, tensor<32x24xf32>) {
  %e = tensor.empty() : tensor<32x24xf32>
  %g = linalg.generic {indexing_maps = [#i, #id], iterator_types = ["parallel", "parallel"]}
    ins(%at : tensor<32x1xi32>) outs(%e : tensor<32x24xf32>) attrs = {nkipy.op_id = 0 : i64} {
    ^bb0(%k: i32, %o: f32):
      %c = linalg.index 1 : index
      %r = arith.index_cast %k : i32 to index
      %v = tensor.extract %table[%r, %c] : tensor<50x24xf32>
      linalg.yield %v : f32
  } -> tensor<32x24xf32>
  "nkipy.tile_op"(%g) {loop_tile_size = array<i64: 16, 24>} : (tensor<32x24xf32>) -> ()
  %b = linalg.broadcast ins(%row : tensor<24xf32>) outs(%e : tensor<32x24xf32>) dimensions = [0] {nkipy.op_id = 1 : i64}
  "nkipy.tile_op"(%b) {loop_tile_size = array<i64: 16, 24>} : (tensor<32x24xf32>) -> ()
  return %g, %b : tensor<32x24xf32>, tensor<32x24xf32>
}
// CHECK:      match ops{["linalg.generic"]} attributes {nkipy.op_id = 0 : i64}
// CHECK-NEXT: %[[T:.*]], %{{.*}} = transform.structured.tile_using_for
// CHECK-NEXT: get_operand %[[T]][1]
// CHECK-NEXT: promote_tensor to 3 : i32
// CHECK-NEXT: match ops{["linalg.broadcast"]} attributes {nkipy.op_id = 1 : i64}
// CHECK-NEXT: %[[T:.*]], %{{.*}} = transform.structured.tile_using_for
// CHECK-NEXT: get_operand %[[T]][1]
// CHECK-NEXT: promote_tensor to 3 : i32
// CHECK-NEXT: transform.yield
