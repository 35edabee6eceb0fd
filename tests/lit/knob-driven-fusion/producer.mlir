// RUN: nkx opt --knob-driven-fusion %s | FileCheck %s
// RUN: nkx opt --knob-driven-fusion %s | mlir-opt-22 --allow-unregistered-dialect -o /dev/null

// One loop computes both values; the first one is as large as a tile, because nobody else reads it.
// CHECK-LABEL: func.func @chain(
// CHECK:         %[[R:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[B:.*]] = %{{.*}}) -> (tensor<8x8xf32>) {
// CHECK:           %[[X:.*]] = tensor.extract_slice %arg0[%[[I]], 0] [2, 8]
// CHECK-NEXT:      %[[E:.*]] = tensor.empty() : tensor<2x8xf32>
// CHECK-NEXT:      %[[T:.*]] = linalg.exp ins(%[[X]] : {{.*}} outs(%[[E]] :
// CHECK:           %[[U:.*]] = linalg.abs ins(%[[T]] :
// CHECK-NEXT:      %[[P:.*]] = tensor.insert_slice %[[U]] into %[[B]][%[[I]], 0]
// CHECK-NEXT:      scf.yield %[[P]] : tensor<8x8xf32>
// CHECK-NOT:     scf.for
// CHECK-NOT:     nkipy
// CHECK:         return %[[R]]
func.func @chain(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x8xf32>
  %a = scf.for %i = %c0 to %c8 step %c2 iter_args(%o = %e) -> (tensor<8x8xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [2, 8] [1, 1] : tensor<8x8xf32> to tensor<2x8xf32>
    %t = tensor.empty() : tensor<2x8xf32>
    %r = linalg.exp ins(%s : tensor<2x8xf32>) outs(%t : tensor<2x8xf32>) -> tensor<2x8xf32>
    %p = tensor.insert_slice %r into %o[%i, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<8x8xf32>
    scf.yield %p : tensor<8x8xf32>
  }
  "nkipy.layout"(%a) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 2, 8>} : (tensor<8x8xf32>) -> ()
  %b = scf.for %i = %c0 to %c8 step %c2 iter_args(%o = %e) -> (tensor<8x8xf32>) {
    %s = tensor.extract_slice %a[%i, 0] [2, 8] [1, 1] : tensor<8x8xf32> to tensor<2x8xf32>
    %t = tensor.empty() : tensor<2x8xf32>
    %r = linalg.abs ins(%s : tensor<2x8xf32>) outs(%t : tensor<2x8xf32>) -> tensor<2x8xf32>
    %p = tensor.insert_slice %r into %o[%i, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<8x8xf32>
    scf.yield %p : tensor<8x8xf32>
  }
  "nkipy.fuse_op"(%a, %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> ()
  return %b : tensor<8x8xf32>
}

// A value that is read elsewhere, too, stays whole; the merged loop reads its tile.
// CHECK-LABEL: func.func @kept(
// CHECK:         %[[R:.*]]:2 = scf.for
// CHECK:           %[[T:.*]] = linalg.exp
// CHECK:           linalg.abs ins(%[[T]] :
// CHECK:         "nkipy.layout"(%[[R]]#0)
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @kept(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x8xf32>
  %a = scf.for %i = %c0 to %c8 step %c2 iter_args(%o = %e) -> (tensor<8x8xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [2, 8] [1, 1] : tensor<8x8xf32> to tensor<2x8xf32>
    %t = tensor.empty() : tensor<2x8xf32>
    %r = linalg.exp ins(%s : tensor<2x8xf32>) outs(%t : tensor<2x8xf32>) -> tensor<2x8xf32>
    %p = tensor.insert_slice %r into %o[%i, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<8x8xf32>
    scf.yield %p : tensor<8x8xf32>
  }
  "nkipy.layout"(%a) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 2, 8>} : (tensor<8x8xf32>) -> ()
  %b = scf.for %i = %c0 to %c8 step %c2 iter_args(%o = %e) -> (tensor<8x8xf32>) {
    %s = tensor.extract_slice %a[%i, 0] [2, 8] [1, 1] : tensor<8x8xf32> to tensor<2x8xf32>
    %t = tensor.empty() : tensor<2x8xf32>
    %r = linalg.abs ins(%s : tensor<2x8xf32>) outs(%t : tensor<2x8xf32>) -> tensor<2x8xf32>
    %p = tensor.insert_slice %r into %o[%i, 0] [2, 8] [1, 1] : tensor<2x8xf32> into tensor<8x8xf32>
    scf.yield %p : tensor<8x8xf32>
  }
  "nkipy.fuse_op"(%a, %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> ()
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}

// A sum over the columns starts from zero for each tile of rows; the loop over them stays a loop inside.
// CHECK-LABEL: func.func @rows(
// CHECK:         scf.for %[[I:.*]] = {{.*}} -> (tensor<8x8xf32>) {
// CHECK:           %[[Z:.*]] = linalg.fill {{.*}} -> tensor<2x1xf32>
// CHECK:           %[[S:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[Z]]) -> (tensor<2x1xf32>) {
// CHECK:           "nkipy.layout"(%[[S]]) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 2, 1>}
// CHECK:           scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<8x8xf32>) {
// CHECK:             tensor.extract_slice %[[S]][0, 0] [2, 1]
// CHECK-NOT:     tensor<8x1xf32>
// CHECK:         return
func.func @rows(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %f = tensor.empty() : tensor<8x1xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<8x1xf32>) -> tensor<8x1xf32>
  %a = scf.for %i = %c0 to %c8 step %c2 iter_args(%o = %z) -> (tensor<8x1xf32>) {
    %q = scf.for %j = %c0 to %c8 step %c4 iter_args(%n = %o) -> (tensor<8x1xf32>) {
      %s = tensor.extract_slice %x[%i, %j] [2, 4] [1, 1] : tensor<8x8xf32> to tensor<2x4xf32>
      %t = tensor.extract_slice %n[%i, 0] [2, 1] [1, 1] : tensor<8x1xf32> to tensor<2x1xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>], iterator_types = ["parallel", "reduction"]}
        ins(%s : tensor<2x4xf32>) outs(%t : tensor<2x1xf32>) {
      ^bb0(%v: f32, %w: f32):
        %u = arith.addf %v, %w : f32
        linalg.yield %u : f32
      } -> tensor<2x1xf32>
      %p = tensor.insert_slice %r into %n[%i, 0] [2, 1] [1, 1] : tensor<2x1xf32> into tensor<8x1xf32>
      scf.yield %p : tensor<8x1xf32>
    }
    scf.yield %q : tensor<8x1xf32>
  }
  "nkipy.layout"(%a) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 2, 1>} : (tensor<8x1xf32>) -> ()
  %e = tensor.empty() : tensor<8x8xf32>
  %b = scf.for %i = %c0 to %c8 step %c2 iter_args(%o = %e) -> (tensor<8x8xf32>) {
    %q = scf.for %j = %c0 to %c8 step %c4 iter_args(%n = %o) -> (tensor<8x8xf32>) {
      %s = tensor.extract_slice %x[%i, %j] [2, 4] [1, 1] : tensor<8x8xf32> to tensor<2x4xf32>
      %m = tensor.extract_slice %a[%i, 0] [2, 1] [1, 1] : tensor<8x1xf32> to tensor<2x1xf32>
      %t = tensor.empty() : tensor<2x4xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%s, %m : tensor<2x4xf32>, tensor<2x1xf32>) outs(%t : tensor<2x4xf32>) {
      ^bb0(%v: f32, %w: f32, %k: f32):
        %u = arith.subf %v, %w : f32
        linalg.yield %u : f32
      } -> tensor<2x4xf32>
      %p = tensor.insert_slice %r into %n[%i, %j] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x8xf32>
      scf.yield %p : tensor<8x8xf32>
    }
    scf.yield %q : tensor<8x8xf32>
  }
  "nkipy.fuse_op"(%a, %b) : (tensor<8x1xf32>, tensor<8x8xf32>) -> ()
  return %b : tensor<8x8xf32>
}
