// A right operand in SBUF is used where it is; a left operand that is stored transposed is not transposed again.
// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s
#km = affine_map<(d0, d1, d2) -> (d2, d0)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @f(%at: tensor<64x64xf32>, %x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e0 = tensor.empty() : tensor<64x64xf32>
  %b = linalg.exp {nkipy.op_id = 0 : i64} ins(%x : tensor<64x64xf32>) outs(%e0 : tensor<64x64xf32>) -> tensor<64x64xf32>
  "nkipy.layout"(%b) {mem_space = 3 : i32} : (tensor<64x64xf32>) -> ()
  %e1 = tensor.empty() : tensor<64x64xf32>
  %r = linalg.matmul indexing_maps = [#km, #kn, #mn] {nkipy.op_id = 1 : i64} ins(%at, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e1 : tensor<64x64xf32>) -> tensor<64x64xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 64, 64, 64>} : (tensor<64x64xf32>) -> ()
  return %r : tensor<64x64xf32>
}
// CHECK:      %[[BM:.*]], %{{.*}} = transform.structured.tile_using_for %{{.*}} tile_sizes [64, 0, 0]
// CHECK-NEXT: %[[V:.*]] = transform.get_operand %[[BM]][0]
// CHECK-NEXT: promote_tensor to 3 : i32 %[[V]]
// CHECK-NEXT: transform.structured.tile_using_for %[[BM]] tile_sizes [0, 64, 0]
// CHECK-NEXT: tile_sizes [64, 0, 0]
// CHECK-NEXT: tile_sizes [0, 64, 0]
// CHECK-NEXT: transform.get_operand %{{.*}}[2]
// CHECK-NEXT: promote_tensor to 2 : i32
