// A collective only reads its argument, and what it gives is no view of it: no copies around the call, even where the
// result goes in place of the argument.  A function of which nothing is known gets a copy that it may write to.
// RUN: nkx opt --one-shot-bufferize %s | FileCheck %s
// RUN: nkx opt --one-shot-bufferize %s | mlir-opt -
module {
  // CHECK-LABEL: func.func @reads
  // CHECK-NOT:     memref.copy
  // CHECK:         call @all_gather(%arg0) : (memref<4x6xf32, strided<[?, ?], offset: ?>>) -> memref<8x6xf32>
  // CHECK-NOT:     memref.copy
  // CHECK:         linalg.add ins(%arg0, %arg0
  // CHECK-NOT:     memref.copy
  // CHECK:         return
  func.func @reads(%x: tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<4x6xf32>) {
    %r = call @all_gather(%x) : (tensor<4x6xf32>) -> tensor<8x6xf32>
    %e = tensor.empty() : tensor<4x6xf32>
    %s = linalg.add ins(%x, %x : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
    return %r, %s : tensor<8x6xf32>, tensor<4x6xf32>
  }
  // CHECK-LABEL: func.func @in_place
  // CHECK:         %[[R:.*]] = call @all_reduce(%arg0) {{.*}} -> memref<4x6xf32>
  // CHECK-NEXT:    memref.copy %[[R]], %arg0
  // CHECK-NEXT:    return %arg0
  func.func @in_place(%x: tensor<4x6xf32> {nkipy.alias = 0 : i64}) -> tensor<4x6xf32> {
    %r = call @all_reduce(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return %r : tensor<4x6xf32>
  }
  // CHECK-LABEL: func.func @unknown
  // CHECK:         memref.copy
  // CHECK:         call @opaque
  func.func @unknown(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
    %r = call @opaque(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %e = tensor.empty() : tensor<4x6xf32>
    %s = linalg.add ins(%x, %x : tensor<4x6xf32>, tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
    return %r, %s : tensor<4x6xf32>, tensor<4x6xf32>
  }
  // CHECK: func.func private @all_gather(memref<4x6xf32, strided<[?, ?], offset: ?>>) -> memref<8x6xf32> attributes {nkipy.collective = {
  // CHECK: func.func private @all_reduce(
  // CHECK: func.func private @opaque(memref<4x6xf32, strided<[?, ?], offset: ?>>) -> memref<4x6xf32, strided<[?, ?], offset: ?>>
  func.func private @all_gather(tensor<4x6xf32>) -> tensor<8x6xf32> attributes {nkipy.collective = {kind = "all_gather", dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
  func.func private @all_reduce(tensor<4x6xf32>) -> tensor<4x6xf32> attributes {nkipy.collective = {kind = "all_reduce", op = "add", replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
  func.func private @opaque(tensor<4x6xf32>) -> tensor<4x6xf32>
}
