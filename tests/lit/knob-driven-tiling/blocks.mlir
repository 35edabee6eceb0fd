// The longer K, the smaller the blocks that are kept in SBUF (trn2: 212984 bytes per partition).
// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s

// 32 steps of K: all rows of the left operand stay, tiles of the right one follow each other.
func.func @one_n(%a: tensor<256x4096xf32>, %b: tensor<4096x1024xf32>) -> tensor<256x1024xf32> {
  %e = tensor.empty() : tensor<256x1024xf32>
  %r = linalg.matmul {nkipy.op_id = 0 : i64} ins(%a, %b : tensor<256x4096xf32>, tensor<4096x1024xf32>) outs(%e : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 512, 128>} : (tensor<256x1024xf32>) -> ()
  return %r : tensor<256x1024xf32>
}
// CHECK:     nkipy.op_id = 0 : i64} in
// CHECK:     tile_sizes [256, 0, 0]
// CHECK:     tile_sizes [0, 512, 0]

// The same in bf16: a second tile of what is inside would not save traffic.
func.func @bf16(%a: tensor<256x4096xbf16>, %b: tensor<4096x1024xbf16>) -> tensor<256x1024xbf16> {
  %e = tensor.empty() : tensor<256x1024xbf16>
  %r = linalg.matmul {nkipy.op_id = 1 : i64} ins(%a, %b : tensor<256x4096xbf16>, tensor<4096x1024xbf16>) outs(%e : tensor<256x1024xbf16>) -> tensor<256x1024xbf16>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 512, 128>} : (tensor<256x1024xbf16>) -> ()
  return %r : tensor<256x1024xbf16>
}
// CHECK:     nkipy.op_id = 1 : i64} in
// CHECK:     tile_sizes [256, 0, 0]
// CHECK:     tile_sizes [0, 512, 0]

// 40 steps: they do not fit twice; once they do, with all rows outside.
func.func @one_m(%a: tensor<256x5120xf32>, %b: tensor<5120x1024xf32>) -> tensor<256x1024xf32> {
  %e = tensor.empty() : tensor<256x1024xf32>
  %r = linalg.matmul {nkipy.op_id = 2 : i64} ins(%a, %b : tensor<256x5120xf32>, tensor<5120x1024xf32>) outs(%e : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 512, 128>} : (tensor<256x1024xf32>) -> ()
  return %r : tensor<256x1024xf32>
}
// CHECK:     nkipy.op_id = 2 : i64} in
// CHECK:     tile_sizes [256, 0, 0]
// CHECK:     transform.structured.transpose_matmul
// CHECK:     tile_sizes [0, 512, 0]

// 128 steps: no block fits, each step brings its own tiles.
func.func @none(%a: tensor<256x16384xf32>, %b: tensor<16384x1024xf32>) -> tensor<256x1024xf32> {
  %e = tensor.empty() : tensor<256x1024xf32>
  %r = linalg.matmul {nkipy.op_id = 3 : i64} ins(%a, %b : tensor<256x16384xf32>, tensor<16384x1024xf32>) outs(%e : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 512, 128>} : (tensor<256x1024xf32>) -> ()
  return %r : tensor<256x1024xf32>
}
// CHECK:     nkipy.op_id = 3 : i64} in
// CHECK-NEXT: tile_sizes [128, 0, 0]
// CHECK-NEXT: tile_sizes [0, 512, 0]
// CHECK-NEXT: tile_sizes [128, 0, 0]
// CHECK-NEXT: tile_sizes [0, 512, 0]
// CHECK-NEXT: transform.get_operand %{{.*}}[2]
// CHECK-NEXT: promote_tensor to 2 : i32
// CHECK-NEXT: %[[K:.*]], %{{.*}} = transform.structured.tile_using_for %{{.*}} tile_sizes [0, 0, 128]
// CHECK-NEXT: %[[T:.*]] = transform.structured.transpose_matmul %[[K]]
// CHECK:      promote_tensor to 3 : i32
// CHECK-NEXT: transform.get_operand %[[T]][1]
// CHECK-NEXT: promote_tensor to 3 : i32
// CHECK-NEXT: transform.yield
