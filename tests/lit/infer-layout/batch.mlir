// Nobody says anything, and a short batch stands in front: the dimension behind it fills the partitions, along the whole
// chain; a tile has one element of the batch, so nothing is transposed.
// RUN: nkx opt --infer-layout %s | FileCheck %s
// RUN: nkx opt --infer-layout --canonicalize-partition-dim %s | FileCheck %s --check-prefix=TURNED

// CHECK-LABEL: @softmax_step
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 3 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 256>}
// CHECK: linalg.generic
// CHECK: "nkipy.layout"({{.*}}) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 1>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 1, 128, 256>}
// TURNED-LABEL: @softmax_step
// TURNED-NOT: linalg.transpose
// TURNED: return
func.func @softmax_step(%x: tensor<8x256x256xf32>) -> tensor<8x256x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x256x256xf32>
  %a = linalg.exp ins(%x : tensor<8x256x256xf32>) outs(%e0 : tensor<8x256x256xf32>) -> tensor<8x256x256xf32>
  %e1 = tensor.empty() : tensor<8x256x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8x256x1xf32>) -> tensor<8x256x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, 0)>], iterator_types = ["parallel", "parallel", "reduction"]}
       ins(%a : tensor<8x256x256xf32>) outs(%f : tensor<8x256x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<8x256x1xf32>
  return %r : tensor<8x256x1xf32>
}

// Four dimensions: the longest one but the last.
// CHECK-LABEL: @four
// CHECK: partition_dim = 2 : i32, tile_size = array<i64: 1, 1, 128, 100>
func.func @four(%x: tensor<2x64x128x100xf32>) -> tensor<2x64x128x100xf32> {
  %e0 = tensor.empty() : tensor<2x64x128x100xf32>
  %a = linalg.exp ins(%x : tensor<2x64x128x100xf32>) outs(%e0 : tensor<2x64x128x100xf32>) -> tensor<2x64x128x100xf32>
  return %a : tensor<2x64x128x100xf32>
}

// Not for little: half of the partitions are filled as it is.
// CHECK-LABEL: @half
// CHECK: partition_dim = 0 : i32, tile_size = array<i64: 64, 64, 32>
func.func @half(%x: tensor<64x128x32xf32>) -> tensor<64x128x32xf32> {
  %e0 = tensor.empty() : tensor<64x128x32xf32>
  %a = linalg.exp ins(%x : tensor<64x128x32xf32>) outs(%e0 : tensor<64x128x32xf32>) -> tensor<64x128x32xf32>
  return %a : tensor<64x128x32xf32>
}

// The user's word stops it where it reaches.
// CHECK-LABEL: @given
// CHECK: partition_dim = 0 : i32, tile_size = array<i64: 4, 64, 32>
func.func @given(%x: tensor<4x128x32xf32>) -> tensor<4x128x32xf32> {
  %e0 = tensor.empty() : tensor<4x128x32xf32>
  %a = linalg.exp ins(%x : tensor<4x128x32xf32>) outs(%e0 : tensor<4x128x32xf32>) -> tensor<4x128x32xf32>
  "nkipy.layout"(%a) {partition_dim = 0 : i32} : (tensor<4x128x32xf32>) -> ()
  return %a : tensor<4x128x32xf32>
}

// Images: the channels fill the partitions, and a tile has as much of an image as it holds.
// CHECK-LABEL: @images
// CHECK: partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 28, 28>
// CHECK: partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 18, 112>
func.func @images(%x: tensor<8x256x28x28xf32>, %y: tensor<8x256x112x112xf32>) -> (tensor<8x256x28x28xf32>, tensor<8x256x112x112xf32>) {
  %e0 = tensor.empty() : tensor<8x256x28x28xf32>
  %a = linalg.exp ins(%x : tensor<8x256x28x28xf32>) outs(%e0 : tensor<8x256x28x28xf32>) -> tensor<8x256x28x28xf32>
  %e1 = tensor.empty() : tensor<8x256x112x112xf32>
  %b = linalg.exp ins(%y : tensor<8x256x112x112xf32>) outs(%e1 : tensor<8x256x112x112xf32>) -> tensor<8x256x112x112xf32>
  return %a, %b : tensor<8x256x28x28xf32>, tensor<8x256x112x112xf32>
}
