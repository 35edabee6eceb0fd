// Two chains of insertions that begin alike, as CSE leaves two concatenations, get a buffer each, into which the beginning
// is written: a copy of the first buffer would read what nothing has written.  A whole tensor is copied as ever.
// RUN: nkx opt --one-shot-bufferize %s | FileCheck %s
func.func @two(%x: tensor<4x2xf32>, %h: tensor<4x2xf32>, %r: tensor<4x2xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  %t1 = tensor.insert_slice %x into %e[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x4xf32>
  %t2 = tensor.insert_slice %h into %t1[0, 2] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x4xf32>
  %u2 = tensor.insert_slice %r into %t1[0, 2] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x4xf32>
  return %t2, %u2 : tensor<4x4xf32>, tensor<4x4xf32>
}
// CHECK-LABEL: @two
// CHECK-NOT:     memref<4x4xf32> to memref<4x4xf32>
// CHECK-COUNT-2: memref.copy %arg0
// CHECK-NOT:     memref<4x4xf32> to memref<4x4xf32>
// CHECK:         return

func.func @whole(%x: tensor<4x2xf32>, %h: tensor<4x2xf32>, %r: tensor<4x1xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  %t1 = tensor.insert_slice %x into %e[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x4xf32>
  %t2 = tensor.insert_slice %h into %t1[0, 2] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x4xf32>
  %u = tensor.insert_slice %r into %t2[0, 0] [4, 1] [1, 1] : tensor<4x1xf32> into tensor<4x4xf32>
  return %t2, %u : tensor<4x4xf32>, tensor<4x4xf32>
}
// CHECK-LABEL: @whole
// CHECK-COUNT-1: memref.copy %arg0
// CHECK-NOT:     memref.copy %arg0
// CHECK:         memref<4x4xf32> to memref<4x4xf32>
