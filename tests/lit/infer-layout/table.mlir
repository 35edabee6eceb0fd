// A table that elements are picked from is in HBM, whatever the user says: DMA picks them.
// RUN: nkx opt --infer-layout %s 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARN < %t.err

// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 1 : i32, partition_dim = 0 : i32, tile_size = array<i64: 64, 8>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 64, 8>}
// WARN: warning: a table that elements are picked from lives in HBM, not in SBUF; its tiles are computed as asked [knob-ignored]
func.func @f(%x: tensor<64x8xf32>, %places: tensor<16xi32>) -> tensor<16x8xf32> {
  %e = tensor.empty() : tensor<64x8xf32>
  %a = linalg.exp ins(%x : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) -> tensor<64x8xf32>
  "nkipy.layout"(%a) {mem_space = 3 : i32} : (tensor<64x8xf32>) -> ()
  %e1 = tensor.empty() : tensor<16x8xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
       ins(%places : tensor<16xi32>) outs(%e1 : tensor<16x8xf32>) {
  ^bb0(%p: i32, %o: f32):
    %r = arith.index_cast %p : i32 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %a[%r, %c] : tensor<64x8xf32>
    linalg.yield %v : f32
  } -> tensor<16x8xf32>
  return %g : tensor<16x8xf32>
}
