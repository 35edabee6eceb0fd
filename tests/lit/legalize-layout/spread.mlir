// RUN: nkx opt --legalize-layout %s | FileCheck %s
// A row that all partitions read is loaded to each of them, without a buffer for the row itself.  All operands that read it
// the same way read what was loaded.
// CHECK-LABEL: func @same
// CHECK-NOT: memref.copy
// CHECK: linalg.broadcast ins(%{{.*}} : {{.*}}, 4 : i32>) outs(%[[ALL:.*]] : memref<8x1xf32, 3 : i32>)
// CHECK-NOT: linalg.broadcast
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[ALL]], %[[ALL]] :
func.func @same(%h: memref<1x1xf32, 4 : i32>, %c: memref<8x4xi1, 3 : i32>, %y: memref<8x4xf32, 3 : i32>) {
  %row = memref.alloc() : memref<1x1xf32, 3 : i32>
  memref.copy %h, %row : memref<1x1xf32, 4 : i32> to memref<1x1xf32, 3 : i32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (0, 0)>, affine_map<(i, j) -> (0, 0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c, %row, %row : memref<8x4xi1, 3 : i32>, memref<1x1xf32, 3 : i32>, memref<1x1xf32, 3 : i32>) outs(%y : memref<8x4xf32, 3 : i32>) {
  ^bb0(%x: i1, %a: f32, %b: f32, %o: f32):
    %s = arith.select %x, %a, %b : f32
    linalg.yield %s : f32
  }
  return
}
// Two ways to read it: the buffer for the row stays, and is filled.
// CHECK-LABEL: func @other
// CHECK: %[[ROW:.*]] = memref.alloc() {{.*}}memref<1x1xf32, 3 : i32>
// CHECK: memref.copy %{{.*}}, %[[ROW]]
// CHECK: %[[V:.*]] = memref.{{.*}} %[[ROW]]
// CHECK: linalg.broadcast ins(%[[V]]
func.func @other(%h: memref<1x1xf32, 4 : i32>, %c: memref<8x1xi1, 3 : i32>, %y: memref<8x1xf32, 3 : i32>) {
  %row = memref.alloc() : memref<1x1xf32, 3 : i32>
  memref.copy %h, %row : memref<1x1xf32, 4 : i32> to memref<1x1xf32, 3 : i32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (0, 0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%c, %row, %row : memref<8x1xi1, 3 : i32>, memref<1x1xf32, 3 : i32>, memref<1x1xf32, 3 : i32>) outs(%y : memref<8x1xf32, 3 : i32>) {
  ^bb0(%x: i1, %a: f32, %b: f32, %o: f32):
    %s = arith.select %x, %a, %b : f32
    linalg.yield %s : f32
  }
  return
}
