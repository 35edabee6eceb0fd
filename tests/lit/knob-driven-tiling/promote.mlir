// Operands that lie in SBUF, or are slices of such, and scalars are not copied; one in HBM is.
// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s
#id = affine_map<(d0, d1) -> (d0, d1)>
#none = affine_map<(d0, d1) -> ()>
func.func @f(%a: tensor<64x64xf32>, %s: f32) -> tensor<64x64xf32> {
  %e0 = tensor.empty() : tensor<128x64xf32>
  %big = linalg.fill {nkipy.op_id = 0 : i64} ins(%s : f32) outs(%e0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  "nkipy.layout"(%big) {mem_space = 3 : i32} : (tensor<128x64xf32>) -> ()
  %part = tensor.extract_slice %big[64, 0] [64, 64] [1, 1] : tensor<128x64xf32> to tensor<64x64xf32>
  %e1 = tensor.empty() : tensor<64x64xf32>
  %hbm = linalg.fill {nkipy.op_id = 1 : i64} ins(%s : f32) outs(%e1 : tensor<64x64xf32>) -> tensor<64x64xf32>
  "nkipy.layout"(%hbm) {mem_space = 1 : i32} : (tensor<64x64xf32>) -> ()
  %e2 = tensor.empty() : tensor<64x64xf32>
  %r = linalg.generic {indexing_maps = [#id, #none, #id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%part, %s, %hbm : tensor<64x64xf32>, f32, tensor<64x64xf32>) outs(%e2 : tensor<64x64xf32>) attrs = {nkipy.op_id = 2 : i64} {
    ^bb0(%x: f32, %y: f32, %z: f32, %o: f32):
      %0 = arith.addf %x, %y : f32
      %1 = arith.addf %0, %z : f32
      linalg.yield %1 : f32
  } -> tensor<64x64xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 64, 64>} : (tensor<64x64xf32>) -> ()
  return %r : tensor<64x64xf32>
}
// CHECK:      transform.structured.match ops{["linalg.generic"]} attributes {nkipy.op_id = 2 : i64}
// CHECK-NEXT: %[[T:.*]], %{{.*}} = transform.structured.tile_using_for
// CHECK-NEXT: transform.get_operand %[[T]][2]
// CHECK-NEXT: promote_tensor to 3 : i32
// CHECK-NEXT: transform.get_operand %[[T]][3]
// CHECK-NEXT: promote_tensor to 3 : i32
// CHECK-NEXT: transform.yield
