// matmul + add, 256x256 in tiles of 128: after the accumulator's allocation there is no copy into it; all others stay.
// RUN: nkx opt --knob-driven-tiling --apply-and-strip-transforms --canonicalize-loop-step --one-shot-bufferize --canonicalize --eliminate-uninitialized-copies %s | FileCheck %s
func.func @f(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>, %c: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %0 = tensor.empty() : tensor<256x256xf32>
  %1 = linalg.matmul {nkipy.op_id = 0 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%1) {mem_space = 3 : i32, tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%1) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<256x256xf32>) -> ()
  %2 = tensor.empty() : tensor<256x256xf32>
  %3 = linalg.add {nkipy.op_id = 1 : i64} ins(%1, %c : tensor<256x256xf32>, tensor<256x256xf32>) outs(%2 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%3) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%3) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %3 : tensor<256x256xf32>
}
// CHECK:      linalg.transpose ins(%arg0
// CHECK:      memref.copy %arg1,
// CHECK:      %[[P:.*]] = memref.alloc() {alignment = 64 : i64} : memref<128x128xf32, 2 : i32>
// CHECK-NEXT: scf.for
// CHECK:        linalg.matmul {{.*}} outs(%[[P]]
// CHECK:      memref.copy %[[P]], %{{.*}} : memref<128x128xf32, 2 : i32> to
// CHECK:      memref.copy {{.*}} : memref<128x256xf32
// CHECK:      memref.copy {{.*}} to memref<128x128xf32, 3 : i32>
// CHECK:      linalg.add
// CHECK:      memref.copy %{{.*}} : memref<128x128xf32, 3 : i32> to
