// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s
// A reduction to one element gets another rank: a tile of the old one goes, the memory space stays.
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
// CHECK: "nkipy.layout"(%{{.*}}) {mem_space = 1 : i32} : (tensor<1x1xf32>)
#in = affine_map<(i) -> (i)>
#out = affine_map<(i) -> (0)>
func.func @f(%x: tensor<4xf32>) -> tensor<1xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %z = linalg.fill ins(%c : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %r = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["reduction"]} ins(%x : tensor<4xf32>) outs(%z : tensor<1xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<1xf32>
  "nkipy.layout"(%r) {mem_space = 1 : i32, partition_dim = 0 : i32, tile_size = array<i64: 1>} : (tensor<1xf32>) -> ()
  return %r : tensor<1xf32>
}
