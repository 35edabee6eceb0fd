// With a constant there is one input: two buffers per tile.
// RUN: nkx opt --knob-driven-tiling --apply-and-strip-transforms %s | FileCheck %s
#id = affine_map<(d0, d1) -> (d0, d1)>

func.func @plus_two(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %c = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) attrs = {nkipy.op_id = 0 : i64} {
    ^bb0(%x: f32, %o: f32):
      %y = arith.addf %x, %c : f32
      linalg.yield %y : f32
  } -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL:   func.func @plus_two
// CHECK-COUNT-2: bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NOT:     alloc_tensor
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<128x128xf32>) outs(%{{.*}} : tensor<128x128xf32>)
// CHECK:         arith.addf

func.func @five_minus(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %c = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) attrs = {nkipy.op_id = 1 : i64} {
    ^bb0(%x: f32, %o: f32):
      %y = arith.subf %c, %x : f32
      linalg.yield %y : f32
  } -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL:   func.func @five_minus
// CHECK-COUNT-2: bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NOT:     alloc_tensor
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<128x128xf32>) outs(%{{.*}} : tensor<128x128xf32>)
// CHECK:         arith.subf

func.func @times_three(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %c = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) attrs = {nkipy.op_id = 2 : i64} {
    ^bb0(%x: f32, %o: f32):
      %y = arith.mulf %x, %c : f32
      linalg.yield %y : f32
  } -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL:   func.func @times_three
// CHECK-COUNT-2: bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NOT:     alloc_tensor
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<128x128xf32>) outs(%{{.*}} : tensor<128x128xf32>)
// CHECK:         arith.mulf

func.func @half(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %c = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) attrs = {nkipy.op_id = 3 : i64} {
    ^bb0(%x: f32, %o: f32):
      %y = arith.mulf %x, %c : f32
      linalg.yield %y : f32
  } -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL:   func.func @half
// CHECK-COUNT-2: bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NOT:     alloc_tensor
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<128x128xf32>) outs(%{{.*}} : tensor<128x128xf32>)
// CHECK:         arith.mulf

func.func @inverse(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.reciprocal {nkipy.op_id = 9 : i64} ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL:   func.func @inverse
// CHECK-COUNT-2: bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NOT:     alloc_tensor
// CHECK:         linalg.reciprocal {nkipy.op_id = 9 : i64} ins(%{{.*}} : tensor<128x128xf32>) outs(%{{.*}} : tensor<128x128xf32>)
