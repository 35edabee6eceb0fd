// A product that is only read to be rounded is rounded as it leaves PSUM; one that something else reads stays.
// RUN: nkx opt --knob-driven-tiling --apply-and-strip-transforms --round-products --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// REMARK-COUNT-1: the product leaves PSUM in the type of the result
// REMARK-NOT: leaves PSUM

#id = affine_map<(d0, d1) -> (d0, d1)>

// Tails of all loops: each accumulator is rounded where it is complete.
// CHECK-LABEL: @rounded
// CHECK-NOT:     -> (tensor<130x600xf32>)
// CHECK:         memory_space = 2 : i32} : tensor<128x512xf32>
// CHECK:         linalg.matmul
// CHECK:         %[[TO:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x512xbf16>
// CHECK-NEXT:    linalg.generic {{.*}} outs(%[[TO]] : tensor<128x512xbf16>)
// CHECK-COUNT-3: arith.truncf
// CHECK:         return
func.func @rounded(%a: tensor<130x300xbf16>, %b: tensor<300x600xbf16>) -> tensor<130x600xbf16> {
  %e = tensor.empty() : tensor<130x600xf32>
  %p = linalg.matmul {nkipy.op_id = 0 : i64} ins(%a, %b : tensor<130x300xbf16>, tensor<300x600xbf16>) outs(%e : tensor<130x600xf32>) -> tensor<130x600xf32>
  "nkipy.layout"(%p) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 512>} : (tensor<130x600xf32>) -> ()
  "nkipy.tile_op"(%p) {loop_tile_size = array<i64: 128, 512, 128>} : (tensor<130x600xf32>) -> ()
  %f = tensor.empty() : tensor<130x600xbf16>
  %r = linalg.generic {nkipy.op_id = 1 : i64, indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<130x600xf32>) outs(%f : tensor<130x600xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<130x600xbf16>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 512>} : (tensor<130x600xbf16>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 512>} : (tensor<130x600xbf16>) -> ()
  return %r : tensor<130x600xbf16>
}

// CHECK-LABEL: @read_twice
// CHECK:         iter_args({{.*}}) -> (tensor<128x512xf32>)
// CHECK:         return
func.func @read_twice(%a: tensor<128x128xbf16>, %b: tensor<128x512xbf16>) -> (tensor<128x512xbf16>, tensor<128x512xf32>) {
  %e = tensor.empty() : tensor<128x512xf32>
  %p = linalg.matmul {nkipy.op_id = 2 : i64} ins(%a, %b : tensor<128x128xbf16>, tensor<128x512xbf16>) outs(%e : tensor<128x512xf32>) -> tensor<128x512xf32>
  "nkipy.tile_op"(%p) {loop_tile_size = array<i64: 128, 512, 128>} : (tensor<128x512xf32>) -> ()
  %f = tensor.empty() : tensor<128x512xbf16>
  %r = linalg.generic {nkipy.op_id = 3 : i64, indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<128x512xf32>) outs(%f : tensor<128x512xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<128x512xbf16>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 512>} : (tensor<128x512xbf16>) -> ()
  return %r, %p : tensor<128x512xbf16>, tensor<128x512xf32>
}
