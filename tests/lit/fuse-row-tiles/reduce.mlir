// RUN: nkx opt --infer-layout --fuse-row-tiles %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>

// A sum of rows and what reads it: the accumulator is filled for each tile.
// CHECK-LABEL: func.func @rows
// CHECK:         scf.for
// CHECK:           %[[A:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x1xf32>
// CHECK-NEXT:      %[[Z:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[A]] : tensor<128x1xf32>)
// CHECK-NEXT:      %[[S:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<128x64xf32>) outs(%[[Z]] : tensor<128x1xf32>)
// CHECK:           linalg.generic {{.*}} ins(%{{.*}}, %[[S]] : tensor<128x64xf32>, tensor<128x1xf32>)
// CHECK-NOT:     scf.for
func.func @rows(%x: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x64xf32>
  %r = tensor.empty() : tensor<512x1xf32>
  %f = linalg.fill ins(%z : f32) outs(%r : tensor<512x1xf32>) -> tensor<512x1xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<512x64xf32>) outs(%f : tensor<512x1xf32>) {
  ^bb0(%v: f32, %o: f32):
    %m = arith.addf %v, %o : f32
    linalg.yield %m : f32
  } -> tensor<512x1xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<512x64xf32>, tensor<512x1xf32>) outs(%e : tensor<512x64xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %m = arith.subf %v, %w : f32
    linalg.yield %m : f32
  } -> tensor<512x64xf32>
  return %d : tensor<512x64xf32>
}

// A sum by itself: what it accumulates stays in SBUF, and each row goes to HBM once. There is no loop for one tile of rows.
// CHECK-LABEL: func.func @alone
// CHECK:         %[[ALL:.*]] = tensor.empty() : tensor<64x1xf32>
// CHECK:         %[[A:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<64x1xf32>
// CHECK-NEXT:    %[[Z:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[A]] : tensor<64x1xf32>)
// CHECK-NEXT:    %[[S:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<64x96xf32>) outs(%[[Z]] : tensor<64x1xf32>)
// CHECK:         %[[R:.*]] = tensor.insert_slice %[[S]] into %[[ALL]]
// CHECK:         return %[[R]]
func.func @alone(%x: tensor<64x96xf32>) -> tensor<64x1xf32> {
  %z = arith.constant 0.0 : f32
  %r = tensor.empty() : tensor<64x1xf32>
  %f = linalg.fill ins(%z : f32) outs(%r : tensor<64x1xf32>) -> tensor<64x1xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x96xf32>) outs(%f : tensor<64x1xf32>) {
  ^bb0(%v: f32, %o: f32):
    %m = arith.addf %v, %o : f32
    linalg.yield %m : f32
  } -> tensor<64x1xf32>
  return %s : tensor<64x1xf32>
}

// A broadcast along the rows is computed once, before the loop, for one tile; the whole one is gone.
// CHECK-LABEL: func.func @scale
// CHECK:         %[[G:.*]] = linalg.broadcast ins(%arg1 : tensor<64xf32>) outs(%{{.*}} : tensor<128x64xf32>) dimensions = [0]
// CHECK-NEXT:    "nkipy.layout"(%[[G]]) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 64>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[G]]) {loop_tile_size = array<i64: 128, 64>}
// CHECK:         scf.for
// CHECK:           linalg.mul ins(%{{.*}}, %[[G]] : tensor<128x64xf32>, tensor<128x64xf32>)
// CHECK-NOT:     linalg.broadcast
func.func @scale(%x: tensor<512x64xf32>, %g: tensor<64xf32>) -> tensor<512x64xf32> {
  %e = tensor.empty() : tensor<512x64xf32>
  %b = linalg.broadcast ins(%g : tensor<64xf32>) outs(%e : tensor<512x64xf32>) dimensions = [0]
  %m = linalg.mul ins(%x, %b : tensor<512x64xf32>, tensor<512x64xf32>) outs(%e : tensor<512x64xf32>) -> tensor<512x64xf32>
  return %m : tensor<512x64xf32>
}

// Rows that do not fit twice: the sum keeps its own loops, what reads it is fused and cut.
// CHECK-LABEL: func.func @wide
// CHECK-NOT:     scf.for
// CHECK:         linalg.generic {{.*}} ins(%arg0 : tensor<512x65536xf32>) outs(%{{.*}} : tensor<512x1xf32>)
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<128x4096xf32>, tensor<128x1xf32>)
// CHECK:             linalg.exp ins(%{{.*}} : tensor<128x4096xf32>)
func.func @wide(%x: tensor<512x65536xf32>) -> tensor<512x65536xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x65536xf32>
  %r = tensor.empty() : tensor<512x1xf32>
  %f = linalg.fill ins(%z : f32) outs(%r : tensor<512x1xf32>) -> tensor<512x1xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<512x65536xf32>) outs(%f : tensor<512x1xf32>) {
  ^bb0(%v: f32, %o: f32):
    %m = arith.addf %v, %o : f32
    linalg.yield %m : f32
  } -> tensor<512x1xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<512x65536xf32>, tensor<512x1xf32>) outs(%e : tensor<512x65536xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %m = arith.subf %v, %w : f32
    linalg.yield %m : f32
  } -> tensor<512x65536xf32>
  %y = linalg.exp ins(%d : tensor<512x65536xf32>) outs(%e : tensor<512x65536xf32>) -> tensor<512x65536xf32>
  return %y : tensor<512x65536xf32>
}
