// RUN: not nkx opt --legalize-layout %s 2>&1 | FileCheck %s
// Partitions along the last dimension of an operand: only a transpose brings it there, and none stands here.
// CHECK: 7:3: error: operand 0 lies in the partitions along another dimension than the result
func.func @f() {
  %a = memref.alloc() : memref<64x2x32xf32, 3 : i32>
  %c = memref.alloc() : memref<32x64x2xf32, 3 : i32>
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, k, i)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : memref<64x2x32xf32, 3 : i32>) outs(%c : memref<32x64x2xf32, 3 : i32>) {
  ^bb0(%x: f32, %z: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  }
  return
}
