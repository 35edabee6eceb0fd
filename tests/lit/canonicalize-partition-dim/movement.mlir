// RUN: nkx opt --canonicalize-partition-dim %s | FileCheck %s

// A transpose into SBUF goes to the wanted order at once; who reads that order takes it as it is.
// CHECK-LABEL: func.func @transpose
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg0 : tensor<4x128x64xf32>) {{.*}} permutation = [1, 2, 0]
// CHECK: "nkipy.layout"(%[[T]]) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 2, 4>}
// CHECK-NOT: linalg.transpose
// CHECK: %[[E:.*]] = linalg.exp ins(%[[T]] : tensor<128x64x4xf32>)
// CHECK: linalg.transpose ins(%[[E]] : tensor<128x64x4xf32>) {{.*}} permutation = [1, 0, 2]
func.func @transpose(%x: tensor<4x128x64xf32>) -> tensor<64x128x4xf32> {
  %e = tensor.empty() : tensor<64x128x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x128x64xf32>) outs(%e : tensor<64x128x4xf32>) permutation = [2, 1, 0]
  "nkipy.layout"(%t) {mem_space = 3 : i32, partition_dim = 1 : i32, tile_size = array<i64: 2, 128, 4>} : (tensor<64x128x4xf32>) -> ()
  "nkipy.tile_op"(%t) {loop_tile_size = array<i64: 2, 128, 4>} : (tensor<64x128x4xf32>) -> ()
  %e1 = tensor.empty() : tensor<64x128x4xf32>
  %r = linalg.exp ins(%t : tensor<64x128x4xf32>) outs(%e1 : tensor<64x128x4xf32>) -> tensor<64x128x4xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 2, 128, 4>} : (tensor<64x128x4xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 2, 128, 4>} : (tensor<64x128x4xf32>) -> ()
  return %r : tensor<64x128x4xf32>
}

// A tile with one element before the partition dimension stays in its order.
// CHECK-LABEL: func.func @in_place
// CHECK: linalg.transpose ins(%arg0 : tensor<4x128x64xf32>) {{.*}} permutation = [2, 1, 0]
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @in_place(%x: tensor<4x128x64xf32>) -> tensor<64x128x4xf32> {
  %e = tensor.empty() : tensor<64x128x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x128x64xf32>) outs(%e : tensor<64x128x4xf32>) permutation = [2, 1, 0]
  "nkipy.layout"(%t) {mem_space = 3 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 4>} : (tensor<64x128x4xf32>) -> ()
  "nkipy.tile_op"(%t) {loop_tile_size = array<i64: 1, 128, 4>} : (tensor<64x128x4xf32>) -> ()
  %e1 = tensor.empty() : tensor<64x128x4xf32>
  %r = linalg.exp ins(%t : tensor<64x128x4xf32>) outs(%e1 : tensor<64x128x4xf32>) -> tensor<64x128x4xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 4>} : (tensor<64x128x4xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 128, 4>} : (tensor<64x128x4xf32>) -> ()
  return %r : tensor<64x128x4xf32>
}

// In HBM nothing lies in partitions: the dimension says nothing there.
// CHECK-LABEL: func.func @hbm
// CHECK: linalg.transpose ins(%arg0 : tensor<64x128xf32>) {{.*}} permutation = [1, 0]
// CHECK: "nkipy.layout"(%{{.*}}) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 64>}
// CHECK-NOT: linalg.transpose
func.func @hbm(%x: tensor<64x128xf32>) -> tensor<128x64xf32> {
  %e = tensor.empty() : tensor<128x64xf32>
  %r = linalg.transpose ins(%x : tensor<64x128xf32>) outs(%e : tensor<128x64xf32>) permutation = [1, 0]
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 128, 64>} : (tensor<128x64xf32>) -> ()
  return %r : tensor<128x64xf32>
}
