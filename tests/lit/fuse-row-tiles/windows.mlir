// RUN: nkx opt --infer-layout --fuse-row-tiles %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// Slices of one value that overlap are read from one tile; a padding is made in the tile.

#all = affine_map<(n, c, h, w) -> (n, c, h, w)>

// The middle of the padding is the value itself.
// CHECK-LABEL: func.func @padded
// CHECK-NOT:     tensor<4x128x10x10xf32>
// CHECK:         scf.for %[[N:[a-z0-9]+]] =
// CHECK:           %[[T:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<1x128x9x10xf32>
// CHECK:           %[[E:.*]] = tensor.extract_slice %[[T]][0, 0, 0, 0] [1, 128, 1, 10]
// CHECK-NEXT:      linalg.fill ins(%{{.*}}) outs(%[[E]]
// CHECK:           tensor.extract_slice %{{.*}}[0, 0, 0, 0] [1, 128, 9, 1]
// CHECK:           tensor.extract_slice %{{.*}}[0, 0, 0, 9] [1, 128, 9, 1]
// CHECK:           %[[X:.*]] = tensor.extract_slice %arg0[%{{.*}}, 0, 0, 0] [1, 128, 8, 8]
// CHECK-NEXT:      %[[P:.*]] = tensor.insert_slice %[[X]] into %{{.*}}[0, 0, 1, 1] [1, 128, 8, 8]
// CHECK-NEXT:      tensor.extract_slice %[[P]][0, 0, 0, 0] [1, 128, 8, 8]
// CHECK-NEXT:      tensor.extract_slice %[[P]][0, 0, 1, 2] [1, 128, 8, 8]
// CHECK:           linalg.add
// CHECK:           tensor.extract_slice %[[P]][0, 0, 1, 1] [1, 128, 8, 8]
// CHECK:           linalg.mul
// REMARK:      3 slices that overlap are read from one tile: 90 elements of each row are loaded
// REMARK:      a load for each slice
// REMARK:      192 elements of each row
func.func @padded(%x: tensor<4x128x8x8xf32>) -> tensor<4x128x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x128x10x10xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x128x10x10xf32>) -> tensor<4x128x10x10xf32>
  %p = tensor.insert_slice %x into %f[0, 0, 1, 1] [4, 128, 8, 8] [1, 1, 1, 1] : tensor<4x128x8x8xf32> into tensor<4x128x10x10xf32>
  %a = tensor.extract_slice %p[0, 0, 0, 0] [4, 128, 8, 8] [1, 1, 1, 1] : tensor<4x128x10x10xf32> to tensor<4x128x8x8xf32>
  %b = tensor.extract_slice %p[0, 0, 1, 2] [4, 128, 8, 8] [1, 1, 1, 1] : tensor<4x128x10x10xf32> to tensor<4x128x8x8xf32>
  %o = tensor.empty() : tensor<4x128x8x8xf32>
  %s = linalg.add ins(%a, %b : tensor<4x128x8x8xf32>, tensor<4x128x8x8xf32>) outs(%o : tensor<4x128x8x8xf32>) -> tensor<4x128x8x8xf32>
  %q = tensor.empty() : tensor<4x128x8x8xf32>
  %t = linalg.mul ins(%s, %x : tensor<4x128x8x8xf32>, tensor<4x128x8x8xf32>) outs(%q : tensor<4x128x8x8xf32>) -> tensor<4x128x8x8xf32>
  return %t : tensor<4x128x8x8xf32>
}

// Neighbours in a row.
// CHECK-LABEL: func.func @rows
// CHECK:         scf.for
// CHECK:           %[[T:.*]] = bufferization.materialize_in_destination %{{.*}} -> tensor<128x64xf32>
// CHECK-NEXT:      tensor.extract_slice %[[T]][0, 0] [128, 63]
// CHECK-NEXT:      tensor.extract_slice %[[T]][0, 1] [128, 63]
func.func @rows(%x: tensor<512x64xf32>) -> tensor<512x63xf32> {
  %a = tensor.extract_slice %x[0, 0] [512, 63] [1, 1] : tensor<512x64xf32> to tensor<512x63xf32>
  %b = tensor.extract_slice %x[0, 1] [512, 63] [1, 1] : tensor<512x64xf32> to tensor<512x63xf32>
  %o = tensor.empty() : tensor<512x63xf32>
  %s = linalg.sub ins(%a, %b : tensor<512x63xf32>, tensor<512x63xf32>) outs(%o : tensor<512x63xf32>) -> tensor<512x63xf32>
  %q = tensor.empty() : tensor<512x63xf32>
  %t = linalg.exp ins(%s : tensor<512x63xf32>) outs(%q : tensor<512x63xf32>) -> tensor<512x63xf32>
  return %t : tensor<512x63xf32>
}

// Rows above and below are in other partitions: those that begin at the same row have one tile.
// CHECK-LABEL: func.func @stencil
// CHECK:         scf.for %[[I:[a-z0-9]+]] =
// CHECK-COUNT-4:   bufferization.materialize_in_destination %{{.*}} -> tensor<128x62xf32>
// CHECK:           %[[AT:.*]] = arith.addi %[[I]], %c1
// CHECK-NEXT:      tensor.extract_slice %arg0[%[[AT]], 0] [128, 64]
// CHECK:           %[[T:.*]] = bufferization.materialize_in_destination %{{.*}} -> tensor<128x64xf32>
// CHECK-NEXT:      tensor.extract_slice %[[T]][0, 0] [128, 62]
// CHECK:           bufferization.materialize_in_destination %{{.*}} -> tensor<128x64xf32>
// CHECK-NOT:       bufferization.materialize_in_destination
// CHECK:           tensor.extract_slice %[[T]][0, 2] [128, 62]
// CHECK:         return
func.func @stencil(%x: tensor<514x64xf32>) -> tensor<512x62xf32> {
  %a = tensor.extract_slice %x[0, 1] [512, 62] [1, 1] : tensor<514x64xf32> to tensor<512x62xf32>
  %b = tensor.extract_slice %x[2, 1] [512, 62] [1, 1] : tensor<514x64xf32> to tensor<512x62xf32>
  %c = tensor.extract_slice %x[1, 0] [512, 62] [1, 1] : tensor<514x64xf32> to tensor<512x62xf32>
  %d = tensor.extract_slice %x[1, 2] [512, 62] [1, 1] : tensor<514x64xf32> to tensor<512x62xf32>
  %o = tensor.empty() : tensor<512x62xf32>
  %s = linalg.sub ins(%a, %b : tensor<512x62xf32>, tensor<512x62xf32>) outs(%o : tensor<512x62xf32>) -> tensor<512x62xf32>
  %q = tensor.empty() : tensor<512x62xf32>
  %t = linalg.sub ins(%s, %c : tensor<512x62xf32>, tensor<512x62xf32>) outs(%q : tensor<512x62xf32>) -> tensor<512x62xf32>
  %r = tensor.empty() : tensor<512x62xf32>
  %u = linalg.mul ins(%t, %d : tensor<512x62xf32>, tensor<512x62xf32>) outs(%r : tensor<512x62xf32>) -> tensor<512x62xf32>
  return %u : tensor<512x62xf32>
}

// Halves of long rows have nothing in common: each is loaded by itself.
// CHECK-LABEL: func.func @halves
// CHECK:           bufferization.materialize_in_destination %{{.*}} -> tensor<128x256xf32>
// CHECK:           bufferization.materialize_in_destination %{{.*}} -> tensor<128x256xf32>
func.func @halves(%x: tensor<512x512xf32>) -> tensor<512x256xf32> {
  %a = tensor.extract_slice %x[0, 0] [512, 256] [1, 1] : tensor<512x512xf32> to tensor<512x256xf32>
  %b = tensor.extract_slice %x[0, 256] [512, 256] [1, 1] : tensor<512x512xf32> to tensor<512x256xf32>
  %o = tensor.empty() : tensor<512x256xf32>
  %s = linalg.sub ins(%a, %b : tensor<512x256xf32>, tensor<512x256xf32>) outs(%o : tensor<512x256xf32>) -> tensor<512x256xf32>
  %q = tensor.empty() : tensor<512x256xf32>
  %t = linalg.exp ins(%s : tensor<512x256xf32>) outs(%q : tensor<512x256xf32>) -> tensor<512x256xf32>
  return %t : tensor<512x256xf32>
}

// Halves of short rows are one transfer.
// CHECK-LABEL: func.func @short_halves
// CHECK:           %[[T:.*]] = bufferization.materialize_in_destination %{{.*}} -> tensor<128x64xf32>
// CHECK-NEXT:      tensor.extract_slice %[[T]][0, 0] [128, 32]
// CHECK-NEXT:      tensor.extract_slice %[[T]][0, 32] [128, 32]
// REMARK:      2 slices side by side are read from one tile: 64 elements of each row are loaded
// REMARK:      each would move a few bytes
func.func @short_halves(%x: tensor<512x64xf32>) -> tensor<512x32xf32> {
  %a = tensor.extract_slice %x[0, 0] [512, 32] [1, 1] : tensor<512x64xf32> to tensor<512x32xf32>
  %b = tensor.extract_slice %x[0, 32] [512, 32] [1, 1] : tensor<512x64xf32> to tensor<512x32xf32>
  %o = tensor.empty() : tensor<512x32xf32>
  %s = linalg.sub ins(%a, %b : tensor<512x32xf32>, tensor<512x32xf32>) outs(%o : tensor<512x32xf32>) -> tensor<512x32xf32>
  %q = tensor.empty() : tensor<512x32xf32>
  %t = linalg.exp ins(%s : tensor<512x32xf32>) outs(%q : tensor<512x32xf32>) -> tensor<512x32xf32>
  return %t : tensor<512x32xf32>
}

// All rows are in one tile: one iteration, for the windows and the weights. An operation without windows keeps its own loops.
// CHECK-LABEL: func.func @single
// CHECK-NOT:     scf.for
// CHECK:         %[[T:.*]] = bufferization.materialize_in_destination %{{.*}} -> tensor<96x12xf32>
// CHECK-NEXT:    tensor.extract_slice %[[T]][0, 0] [96, 10]
// CHECK:         %[[W:.*]] = bufferization.materialize_in_destination %{{.*}} -> tensor<96x2xf32>
// CHECK-NEXT:    tensor.extract_slice %[[W]][0, 0] [96, 1]
// CHECK:         linalg.generic
// CHECK:         tensor.extract_slice %[[T]][0, 2] [96, 10]
// CHECK:         tensor.extract_slice %[[W]][0, 1] [96, 1]
// CHECK:         linalg.generic
// CHECK:         linalg.add
// CHECK:         return
func.func @single(%x: tensor<96x12xf32>, %w: tensor<96x2xf32>) -> tensor<96x10xf32> {
  %a = tensor.extract_slice %x[0, 0] [96, 10] [1, 1] : tensor<96x12xf32> to tensor<96x10xf32>
  %b = tensor.extract_slice %x[0, 2] [96, 10] [1, 1] : tensor<96x12xf32> to tensor<96x10xf32>
  %v = tensor.extract_slice %w[0, 0] [96, 1] [1, 1] : tensor<96x2xf32> to tensor<96x1xf32>
  %u = tensor.extract_slice %w[0, 1] [96, 1] [1, 1] : tensor<96x2xf32> to tensor<96x1xf32>
  %o = tensor.empty() : tensor<96x10xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, 0)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
       ins(%a, %v : tensor<96x10xf32>, tensor<96x1xf32>) outs(%o : tensor<96x10xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32):
    %m = arith.mulf %i, %j : f32
    linalg.yield %m : f32
  } -> tensor<96x10xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, 0)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
       ins(%b, %u : tensor<96x10xf32>, tensor<96x1xf32>) outs(%o : tensor<96x10xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32):
    %m = arith.mulf %i, %j : f32
    linalg.yield %m : f32
  } -> tensor<96x10xf32>
  %s = linalg.add ins(%p, %q : tensor<96x10xf32>, tensor<96x10xf32>) outs(%o : tensor<96x10xf32>) -> tensor<96x10xf32>
  return %s : tensor<96x10xf32>
}
