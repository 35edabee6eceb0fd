// Rows of two dimensions that do not fit into SBUF are cut along the first of them, if only the second one is reduced.
// RUN: nkx opt --fuse-row-tiles --remarks %s 2>&1 | FileCheck %s

#all = affine_map<(a, b, c) -> (a, b, c)>

// CHECK: 3 operations in one loop over 4 tiles of 128 rows, two at a time and 32 columns
// CHECK-LABEL: func.func @distances
// CHECK: scf.for
// CHECK: scf.for
// CHECK-COUNT-2: arith.subf
// CHECK-COUNT-2: linalg.mul {{.*}} tensor<128x32x64xf32>
// CHECK: arith.addf
// CHECK: tensor.insert_slice {{.*}} tensor<128x32x1xf32> into tensor<512x512x1xf32>
func.func @distances(%x: tensor<512x1x64xf32>, %y: tensor<1x512x64xf32>) -> tensor<512x512x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x512x64xf32>
  %g = tensor.empty() : tensor<512x512x1xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, 0, c)>, affine_map<(a, b, c) -> (0, b, c)>, #all], iterator_types = ["parallel", "parallel", "parallel"]}
         ins(%x, %y : tensor<512x1x64xf32>, tensor<1x512x64xf32>) outs(%e : tensor<512x512x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<512x512x64xf32>
  "nkipy.layout"(%0) {mem_space = 1 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 32, 64>} : (tensor<512x512x64xf32>) -> ()
  "nkipy.tile_op"(%0) {loop_tile_size = array<i64: 128, 32, 64>} : (tensor<512x512x64xf32>) -> ()
  %1 = linalg.mul ins(%0, %0 : tensor<512x512x64xf32>, tensor<512x512x64xf32>) outs(%e : tensor<512x512x64xf32>) -> tensor<512x512x64xf32>
  "nkipy.layout"(%1) {mem_space = 1 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 32, 64>} : (tensor<512x512x64xf32>) -> ()
  "nkipy.tile_op"(%1) {loop_tile_size = array<i64: 128, 32, 64>} : (tensor<512x512x64xf32>) -> ()
  %f = linalg.fill ins(%zero : f32) outs(%g : tensor<512x512x1xf32>) -> tensor<512x512x1xf32>
  %2 = linalg.generic {indexing_maps = [#all, affine_map<(a, b, c) -> (a, b, 0)>], iterator_types = ["parallel", "parallel", "reduction"]}
         ins(%1 : tensor<512x512x64xf32>) outs(%f : tensor<512x512x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<512x512x1xf32>
  "nkipy.layout"(%2) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 32, 1>} : (tensor<512x512x1xf32>) -> ()
  "nkipy.tile_op"(%2) {loop_tile_size = array<i64: 128, 32, 64>} : (tensor<512x512x1xf32>) -> ()
  return %2 : tensor<512x512x1xf32>
}
