// The result before of a scan stays in SBUF, and so does the number that it starts with.
// RUN: nkx opt --infer-layout %s | FileCheck %s
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d0, 0)>

// CHECK:       %[[F:.*]] = linalg.fill
// CHECK-NEXT:  "nkipy.layout"(%[[F]]) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 1>}
// CHECK:       %[[Y:.*]]:2 = linalg.generic
// CHECK-DAG:   "nkipy.layout"(%[[Y]]#1) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 1>}
// CHECK-DAG:   "nkipy.layout"(%[[Y]]#0) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 2048>}
// CHECK-DAG:   "nkipy.tile_op"(%[[Y]]#0) {loop_tile_size = array<i64: 128, 2048>}
func.func @scan(%x: tensor<300x5000xf32>) -> tensor<300x5000xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300x1xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<300x1xf32>) -> tensor<300x1xf32>
  %o = tensor.empty() : tensor<300x5000xf32>
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #col], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<300x5000xf32>) outs(%o, %f : tensor<300x5000xf32>, tensor<300x1xf32>) {
  ^bb0(%a: f32, %u: f32, %c: f32):
    %s = arith.addf %c, %a : f32
    linalg.yield %s, %s : f32, f32
  } -> (tensor<300x5000xf32>, tensor<300x1xf32>)
  return %r#0 : tensor<300x5000xf32>
}
