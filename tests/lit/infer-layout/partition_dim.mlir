// The user's partition_dim spreads through element-wise operations.
// RUN: nkx opt --infer-layout %s | FileCheck %s

// CHECK-LABEL: @both
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 3 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 64>}
// CHECK: linalg.mul
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 64>}
func.func @both(%x: tensor<4x128x64xf32>, %y: tensor<4x128x64xf32>) -> tensor<4x128x64xf32> {
  %e0 = tensor.empty() : tensor<4x128x64xf32>
  %a = linalg.exp ins(%x : tensor<4x128x64xf32>) outs(%e0 : tensor<4x128x64xf32>) -> tensor<4x128x64xf32>
  "nkipy.tile_op"(%a) {loop_tile_size = array<i64: 1, 128, 64>} : (tensor<4x128x64xf32>) -> ()
  "nkipy.layout"(%a) {mem_space = 3 : i32, partition_dim = 1 : i32} : (tensor<4x128x64xf32>) -> ()
  %e1 = tensor.empty() : tensor<4x128x64xf32>
  %r = linalg.mul ins(%a, %y : tensor<4x128x64xf32>, tensor<4x128x64xf32>) outs(%e1 : tensor<4x128x64xf32>) -> tensor<4x128x64xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 128, 64>} : (tensor<4x128x64xf32>) -> ()
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32} : (tensor<4x128x64xf32>) -> ()
  return %r : tensor<4x128x64xf32>
}

// Only the last one says it; its partition tile is chosen accordingly.
// CHECK-LABEL: @inherited
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 3 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 64>}
// CHECK: linalg.add
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 64>}
func.func @inherited(%x: tensor<4x200x64xf32>, %y: tensor<4x200x64xf32>) -> tensor<4x200x64xf32> {
  %e0 = tensor.empty() : tensor<4x200x64xf32>
  %a = linalg.exp ins(%x : tensor<4x200x64xf32>) outs(%e0 : tensor<4x200x64xf32>) -> tensor<4x200x64xf32>
  %e1 = tensor.empty() : tensor<4x200x64xf32>
  %r = linalg.add ins(%a, %y : tensor<4x200x64xf32>, tensor<4x200x64xf32>) outs(%e1 : tensor<4x200x64xf32>) -> tensor<4x200x64xf32>
  "nkipy.layout"(%r) {partition_dim = 1 : i32} : (tensor<4x200x64xf32>) -> ()
  return %r : tensor<4x200x64xf32>
}

// Through a reduction of the last dimension, too.
// CHECK-LABEL: @reduced
// CHECK: linalg.square
// CHECK-NEXT: {{.*}}partition_dim = 1
// CHECK: linalg.generic
// CHECK: "nkipy.layout"({{.*}}) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 1>}
func.func @reduced(%x: tensor<8x128x64xf32>) -> tensor<8x128x1xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<8x128x64xf32>
  %a = linalg.square ins(%x : tensor<8x128x64xf32>) outs(%e0 : tensor<8x128x64xf32>) -> tensor<8x128x64xf32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, partition_dim = 1 : i32} : (tensor<8x128x64xf32>) -> ()
  %e1 = tensor.empty() : tensor<8x128x1xf32>
  %f = linalg.fill ins(%low : f32) outs(%e1 : tensor<8x128x1xf32>) -> tensor<8x128x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, 0)>], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%a : tensor<8x128x64xf32>) outs(%f : tensor<8x128x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.maximumf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<8x128x1xf32>
  return %r : tensor<8x128x1xf32>
}
