// Reductions turn with their iterators, whatever dimension is reduced and whether or not it is kept.
// RUN: nkx opt --canonicalize-partition-dim %s | FileCheck %s
// RUN: nkx opt --infer-layout --canonicalize-partition-dim %s | FileCheck %s

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[KEEP:.*]] = affine_map<(d0, d1) -> (d0, 0)>

// square, then the maximum of the last dimension, both with the second dimension across the partitions
// CHECK-LABEL: @last
// CHECK: linalg.transpose ins(%arg0 : tensor<8x128x64xf32>)
// CHECK: linalg.square
// CHECK: linalg.fill {{.*}} -> tensor<128x8x1xf32>
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: -> tensor<128x8x1xf32>
// CHECK-NEXT: "nkipy.layout"({{.*}}) {{\{(given, )?}}mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 2, 1>}
// CHECK: linalg.transpose ins({{.*}} : tensor<128x8x1xf32>) outs({{.*}} : tensor<8x128x1xf32>) permutation = [1, 0, 2]
func.func @last(%x: tensor<8x128x64xf32>) -> tensor<8x128x1xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<8x128x64xf32>
  %a = linalg.square ins(%x : tensor<8x128x64xf32>) outs(%e0 : tensor<8x128x64xf32>) -> tensor<8x128x64xf32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, partition_dim = 1 : i32, tile_size = array<i64: 2, 128, 64>} : (tensor<8x128x64xf32>) -> ()
  "nkipy.tile_op"(%a) {loop_tile_size = array<i64: 2, 128, 64>} : (tensor<8x128x64xf32>) -> ()
  %e1 = tensor.empty() : tensor<8x128x1xf32>
  %f = linalg.fill ins(%low : f32) outs(%e1 : tensor<8x128x1xf32>) -> tensor<8x128x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, 0)>], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%a : tensor<8x128x64xf32>) outs(%f : tensor<8x128x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.maximumf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<8x128x1xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 2, 128, 1>} : (tensor<8x128x1xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 2, 128, 64>} : (tensor<8x128x1xf32>) -> ()
  return %r : tensor<8x128x1xf32>
}

// Over the leading dimension: the reduced loop comes second, its iterator with it.
// CHECK-LABEL: @leading
// CHECK: linalg.transpose ins(%arg0 : tensor<1000x512xf32>) outs({{.*}} : tensor<512x1000xf32>) permutation = [1, 0]
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[KEEP]]], iterator_types = ["parallel", "reduction"]}
// CHECK: -> tensor<512x1xf32>
// CHECK: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 100>}
// CHECK: linalg.transpose ins({{.*}} : tensor<512x1xf32>) outs({{.*}} : tensor<1x512xf32>)
func.func @leading(%x: tensor<1000x512xf32>) -> tensor<1x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<1x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x512xf32>) -> tensor<1x512xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (0, b)>], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<1000x512xf32>) outs(%f : tensor<1x512xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<1x512xf32>
  "nkipy.layout"(%s) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128>} : (tensor<1x512xf32>) -> ()
  "nkipy.tile_op"(%s) {loop_tile_size = array<i64: 100, 128>} : (tensor<1x512xf32>) -> ()
  return %s : tensor<1x512xf32>
}

// The reduced leading dimension is dropped: the value's partition dimension is its first, but what is read has to turn.
// CHECK-LABEL: @dropped
// CHECK: linalg.transpose ins(%arg0 : tensor<4x128x64xf32>) outs({{.*}} : tensor<128x4x64xf32>) permutation = [1, 0, 2]
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction", "parallel"]
// CHECK: -> tensor<128x64xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @dropped(%x: tensor<4x128x64xf32>) -> tensor<128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<128x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b, c)>], iterator_types = ["reduction", "parallel", "parallel"]}
       ins(%x : tensor<4x128x64xf32>) outs(%f : tensor<128x64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<128x64xf32>
  "nkipy.layout"(%s) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 64>} : (tensor<128x64xf32>) -> ()
  "nkipy.tile_op"(%s) {loop_tile_size = array<i64: 2, 128, 64>} : (tensor<128x64xf32>) -> ()
  return %s : tensor<128x64xf32>
}
