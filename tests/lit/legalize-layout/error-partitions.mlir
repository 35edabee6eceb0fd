// RUN: not nkx opt --legalize-layout %s 2>&1 | FileCheck %s
// CHECK: 7:3: error: operand 1 lies in the partitions along another dimension than the result
func.func @f() {
  %a = memref.alloc() : memref<1x128x64xf32, 3 : i32>
  %b = memref.alloc() : memref<1x1x64xf32, 3 : i32>
  %c = memref.alloc() : memref<1x128x64xf32, 3 : i32>
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, 0, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a, %b : memref<1x128x64xf32, 3 : i32>, memref<1x1x64xf32, 3 : i32>) outs(%c : memref<1x128x64xf32, 3 : i32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  }
  return
}
