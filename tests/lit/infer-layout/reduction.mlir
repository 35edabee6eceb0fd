// Reductions: tiles of what they read, with and without the reduced dimensions; the partitions are never reduced over.
// RUN: nkx opt --infer-layout %s | FileCheck %s

// mean(square(x)): a knob on the squares reaches the sum; its value keeps the reduced dimension as 1.
// CHECK-LABEL: @mean
// CHECK: linalg.square
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>}
// CHECK: arith.addf
// CHECK: "nkipy.layout"({{.*}}) {given, mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 1>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 128>}
// CHECK: arith.mulf
// CHECK: "nkipy.layout"({{.*}}) {given, mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 1>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 1>}
func.func @mean(%x: tensor<256x256xf32>) -> tensor<256x1xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 3.906250e-03 : f32
  %e0 = tensor.empty() : tensor<256x256xf32>
  %a = linalg.square ins(%x : tensor<256x256xf32>) outs(%e0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%a) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.layout"(%a) {mem_space = 3 : i32} : (tensor<256x256xf32>) -> ()
  %e1 = tensor.empty() : tensor<256x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<256x1xf32>) -> tensor<256x1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, 0)>], iterator_types = ["parallel", "reduction"]}
       ins(%a : tensor<256x256xf32>) outs(%f : tensor<256x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<256x1xf32>
  %e2 = tensor.empty() : tensor<256x1xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
       ins(%s : tensor<256x1xf32>) outs(%e2 : tensor<256x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.mulf %i, %n : f32
    linalg.yield %v : f32
  } -> tensor<256x1xf32>
  "nkipy.tile_op"(%m) {loop_tile_size = array<i64: 128, 1>} : (tensor<256x1xf32>) -> ()
  return %m : tensor<256x1xf32>
}

// Without the reduced dimension, which stands before one that stays.
// CHECK-LABEL: @middle
// CHECK: linalg.generic
// CHECK: "nkipy.layout"({{.*}}) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 256>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 4, 256>}
func.func @middle(%x: tensor<300x4x256xf32>) -> tensor<300x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<300x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<300x256xf32>) -> tensor<300x256xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, c)>], iterator_types = ["parallel", "reduction", "parallel"]}
       ins(%x : tensor<300x4x256xf32>) outs(%f : tensor<300x256xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<300x256xf32>
  return %s : tensor<300x256xf32>
}

// Over the leading dimension, which is kept as 1: the other one lies across the partitions.
// CHECK-LABEL: @leading
// CHECK: linalg.generic
// CHECK: "nkipy.layout"({{.*}}) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 128>}
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
  return %s : tensor<1x512xf32>
}

// A knob on the value that is read: its tile is lifted to the right loops although the reduced one comes first.
// CHECK-LABEL: @leading_knob
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 100, 64>}
// CHECK: linalg.generic
// CHECK: "nkipy.layout"({{.*}}) {given, mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 64>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 100, 64>}
func.func @leading_knob(%x: tensor<1000x512xf32>) -> tensor<1x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<1000x512xf32>
  %a = linalg.exp ins(%x : tensor<1000x512xf32>) outs(%e0 : tensor<1000x512xf32>) -> tensor<1000x512xf32>
  "nkipy.tile_op"(%a) {loop_tile_size = array<i64: 100, 64>} : (tensor<1000x512xf32>) -> ()
  %e1 = tensor.empty() : tensor<1x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x512xf32>) -> tensor<1x512xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (0, b)>], iterator_types = ["reduction", "parallel"]}
       ins(%a : tensor<1000x512xf32>) outs(%f : tensor<1x512xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<1x512xf32>
  return %s : tensor<1x512xf32>
}
