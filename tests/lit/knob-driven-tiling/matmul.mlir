// Blocks, the transposed left operand, the right operand, tiles, the accumulator, K: in this order.
// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s
// RUN: nkx opt --remarks --knob-driven-tiling %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: linalg.matmul: TILE=[128,512,64], 4x2x4 of them
// REMARK: linalg.matmul: promoted 2 inputs to SBUF, in blocks that serve several tiles
// REMARK: linalg.matmul: accumulates in PSUM
// REMARK: linalg.matmul: the left input is transposed
func.func @f(%a: tensor<512x256xf32>, %b: tensor<256x1024xf32>) -> tensor<512x1024xf32> {
  %e = tensor.empty() : tensor<512x1024xf32>
  %r = linalg.matmul {nkipy.op_id = 3 : i64} ins(%a, %b : tensor<512x256xf32>, tensor<256x1024xf32>) outs(%e : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 512, 64>} : (tensor<512x1024xf32>) -> ()
  return %r : tensor<512x1024xf32>
}
// CHECK:      %[[OP:.*]] = transform.structured.match ops{["linalg.matmul"]} attributes {nkipy.op_id = 3 : i64}
// CHECK-NEXT: %[[BM:.*]], %{{.*}} = transform.structured.tile_using_for %[[OP]] tile_sizes [512, 0, 0]
// CHECK-NEXT: %[[TR:.*]] = transform.structured.transpose_matmul %[[BM]]
// CHECK-NEXT: %[[ID:.*]] = transform.param.constant 3 : i64
// CHECK-NEXT: transform.annotate %[[TR]] "nkipy.op_id" = %[[ID]]
// CHECK-NEXT: %[[AT:.*]] = transform.get_producer_of_operand %[[TR]][0]
// CHECK-NEXT: %[[V:.*]] = transform.get_operand %[[AT]][1]
// CHECK-NEXT: promote_tensor to 3 : i32 %[[V]]
// CHECK-NEXT: %[[BN:.*]], %{{.*}} = transform.structured.tile_using_for %[[TR]] tile_sizes [0, 512, 0]
// CHECK-NEXT: %[[V:.*]] = transform.get_operand %[[BN]][1]
// CHECK-NEXT: promote_tensor to 3 : i32 %[[V]]
// CHECK-NEXT: %[[M:.*]], %{{.*}} = transform.structured.tile_using_for %[[BN]] tile_sizes [128, 0, 0]
// CHECK-NEXT: %[[N:.*]], %{{.*}} = transform.structured.tile_using_for %[[M]] tile_sizes [0, 512, 0]
// CHECK-NEXT: %[[V:.*]] = transform.get_operand %[[N]][2]
// CHECK-NEXT: promote_tensor to 2 : i32 %[[V]]
// CHECK-NEXT: transform.structured.tile_using_for %[[N]] tile_sizes [0, 0, 64]
// CHECK-NEXT: transform.yield
