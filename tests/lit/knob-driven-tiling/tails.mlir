// A dimension that its tile does not divide is split before it is tiled: static sizes everywhere.
// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s
// RUN: nkx opt --remarks --knob-driven-tiling %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: linalg.exp: TILE=[128,512], 2x2 of them
// REMARK: linalg.exp: promoted 1 input to SBUF [
// REMARK: linalg.matmul: TILE=[128,40,128], 2x1x5 of them
func.func @f(%a: tensor<130x517xf32>, %b: tensor<517x40xf32>) -> (tensor<130x517xf32>, tensor<130x40xf32>) {
  %e0 = tensor.empty() : tensor<130x517xf32>
  %x = linalg.exp {nkipy.op_id = 0 : i64} ins(%a : tensor<130x517xf32>) outs(%e0 : tensor<130x517xf32>) -> tensor<130x517xf32>
  "nkipy.tile_op"(%x) {loop_tile_size = array<i64: 128, 512>} : (tensor<130x517xf32>) -> ()
  %e1 = tensor.empty() : tensor<130x40xf32>
  %y = linalg.matmul {nkipy.op_id = 1 : i64} ins(%a, %b : tensor<130x517xf32>, tensor<517x40xf32>) outs(%e1 : tensor<130x40xf32>) -> tensor<130x40xf32>
  "nkipy.tile_op"(%y) {loop_tile_size = array<i64: 128, 40, 128>} : (tensor<130x40xf32>) -> ()
  return %x, %y : tensor<130x517xf32>, tensor<130x40xf32>
}
// CHECK:      %[[OP:.*]] = transform.structured.match ops{["linalg.exp"]}
// CHECK-NEXT: %[[P:.*]] = transform.structured.split %[[OP]] after 128 {dimension = 0
// CHECK-NEXT: %[[H:.*]]:2 = transform.split_handle %[[P]]
// CHECK-NEXT: transform.structured.split %[[H]]#0 after 512 {dimension = 1
// CHECK:      tile_using_for %{{.*}}#0 tile_sizes [128, 512]
// CHECK:      tile_using_for %{{.*}}#1 tile_sizes [128, 5]
// CHECK:      transform.structured.split %[[H]]#1 after 512 {dimension = 1
// CHECK:      tile_using_for %{{.*}}#0 tile_sizes [2, 512]
// CHECK:      tile_using_for %{{.*}}#1 tile_sizes [2, 5]
// CHECK:      %[[MM:.*]] = transform.structured.match ops{["linalg.matmul"]}
// CHECK-NEXT: tile_using_for %[[MM]] tile_sizes [0, 40, 0]
// CHECK:      transform.structured.split %{{.*}} after 128 {dimension = 0
// CHECK:      tile_using_for %{{.*}}#0 tile_sizes [128, 0, 0]
// CHECK:      promote_tensor to 2 : i32
// CHECK-NEXT: transform.structured.split %{{.*}} after 512 {dimension = 2
// CHECK:      tile_using_for %{{.*}}#0 tile_sizes [0, 0, 128]
// CHECK-NEXT: tile_using_for %{{.*}}#1 tile_sizes [0, 0, 5]
// CHECK-NEXT: tile_using_for %{{.*}}#1 tile_sizes [2, 0, 0]
