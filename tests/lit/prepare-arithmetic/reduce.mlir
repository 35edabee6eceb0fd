// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s
#id1 = affine_map<(d0) -> (d0)>
#none1 = affine_map<(d0) -> ()>
#id = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
#none = affine_map<(d0, d1) -> ()>

// Within the partitions, then across them.  The initial value goes into the second step, the first one starts from
// what changes nothing.
// CHECK-LABEL: func.func @max_of_all(
// CHECK-DAG:     %[[FIVE:.*]] = arith.constant 5.000000e+00 : f32
// CHECK-DAG:     %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK:         %[[F:.*]] = linalg.fill ins(%[[LOW]] : f32) outs(%{{.*}} : tensor<130x1xf32>)
// CHECK:         %[[C:.*]] = linalg.generic {{.*}}"parallel", "reduction"]} ins(%arg0 : tensor<130x517xf32>) outs(%[[F]] : tensor<130x1xf32>)
// CHECK:         "nkipy.tile_op"(%[[C]]) {loop_tile_size = array<i64: 65, 517>}
// CHECK:         %[[T:.*]] = linalg.transpose ins(%[[C]] : tensor<130x1xf32>) outs(%{{.*}} : tensor<1x130xf32>) permutation = [1, 0]
// CHECK:         %[[G:.*]] = linalg.fill ins(%[[FIVE]] : f32) outs(%{{.*}} : tensor<1x1xf32>)
// CHECK:         %[[R:.*]] = linalg.generic {{.*}} ins(%[[T]] : tensor<1x130xf32>) outs(%[[G]] : tensor<1x1xf32>)
// CHECK:           arith.maximumf
// CHECK:         "nkipy.layout"(%[[R]]) {mem_space = 4 : i32}
// CHECK:         tensor.collapse_shape %[[R]] [] : tensor<1x1xf32> into tensor<f32>
func.func @max_of_all(%a: tensor<130x517xf32>) -> tensor<f32> {
  %c = arith.constant 5.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]} ins(%a : tensor<130x517xf32>) outs(%f : tensor<f32>) {
  ^bb0(%x: f32, %o: f32):
    %t = arith.maximumf %o, %x : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  "nkipy.layout"(%r) {mem_space = 4 : i32} : (tensor<f32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 65, 517>} : (tensor<f32>) -> ()
  return %r : tensor<f32>
}

// A long vector the same way, from [P, N/P].
// CHECK-LABEL: func.func @sum_of_vector(
// CHECK:         %[[A:.*]] = tensor.expand_shape %arg0 {{.*}} into tensor<128x16xf32>
// CHECK:         linalg.generic {{.*}} ins(%[[A]] : tensor<128x16xf32>) outs(%{{.*}} : tensor<128x1xf32>)
// CHECK:         linalg.transpose
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<1x1xf32>)
func.func @sum_of_vector(%a: tensor<2048xf32>) -> tensor<f32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [#id1, #none1], iterator_types = ["reduction"]} ins(%a : tensor<2048xf32>) outs(%f : tensor<f32>) {
  ^bb0(%x: f32, %o: f32):
    %t = arith.addf %o, %x : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// CHECK-LABEL: func.func @sum_of_short_vector(
// CHECK:         linalg.generic {{.*}}"parallel", "reduction"]} ins(%{{.*}} : tensor<1x100xf32>) outs(%{{.*}} : tensor<1x1xf32>)
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @sum_of_short_vector(%a: tensor<100xf32>) -> tensor<f32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [#id1, #none1], iterator_types = ["reduction"]} ins(%a : tensor<100xf32>) outs(%f : tensor<f32>) {
  ^bb0(%x: f32, %o: f32):
    %t = arith.addf %o, %x : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// The sums of the columns are a row, and what is computed from them stays one.
// CHECK-LABEL: func.func @columns(
// CHECK:         %[[S:.*]] = linalg.generic {{.*}}"reduction", "parallel"]} ins(%arg0 : tensor<130x517xf32>) outs(%{{.*}} : tensor<1x517xf32>)
// CHECK:         "nkipy.layout"(%[[S]]) {mem_space = 3 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128>}
// CHECK:         linalg.sqrt ins(%[[S]] : tensor<1x517xf32>)
func.func @columns(%a: tensor<130x517xf32>) -> tensor<517xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<517xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<517xf32>) -> tensor<517xf32>
  %r = linalg.generic {indexing_maps = [#id, #columns], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<130x517xf32>) outs(%f : tensor<517xf32>) {
  ^bb0(%x: f32, %o: f32):
    %t = arith.addf %o, %x : f32
    linalg.yield %t : f32
  } -> tensor<517xf32>
  "nkipy.layout"(%r) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128>} : (tensor<517xf32>) -> ()
  %q = linalg.sqrt ins(%r : tensor<517xf32>) outs(%e : tensor<517xf32>) -> tensor<517xf32>
  return %q : tensor<517xf32>
}
