// A right operand that a transpose makes for one product is transposed matrix by matrix, in the loop.
// RUN: nkx opt --decompose-batch-matmul %s | FileCheck %s

// CHECK-LABEL: func.func @turned(
// CHECK-NOT:     linalg.transpose
// CHECK:         scf.for %[[I:.*]] = %c0{{.*}} iter_args
// CHECK:           %[[X:.*]] = tensor.extract_slice %arg1[%[[I]], 0, 0] [1, 128, 64] [1, 1, 1] : tensor<8x128x64xf32> to tensor<128x64xf32>
// CHECK:           %[[T:.*]] = linalg.transpose ins(%[[X]] : tensor<128x64xf32>) outs(%{{.*}} : tensor<64x128xf32>) permutation = [1, 0]
// CHECK:           linalg.matmul ins(%{{.*}}, %[[T]] : tensor<256x64xf32>, tensor<64x128xf32>)
func.func @turned(%a: tensor<8x256x64xf32>, %b: tensor<8x128x64xf32>, %c: tensor<8x256x128xf32>) -> tensor<8x256x128xf32> {
  %e = tensor.empty() : tensor<8x64x128xf32>
  %t = linalg.transpose ins(%b : tensor<8x128x64xf32>) outs(%e : tensor<8x64x128xf32>) permutation = [0, 2, 1]
  %r = linalg.batch_matmul ins(%a, %t : tensor<8x256x64xf32>, tensor<8x64x128xf32>) outs(%c : tensor<8x256x128xf32>) -> tensor<8x256x128xf32>
  return %r : tensor<8x256x128xf32>
}

// Something else reads the transpose.
// CHECK-LABEL: func.func @shared(
// CHECK:         %[[T:.*]] = linalg.transpose ins(%arg1
// CHECK:         scf.for
// CHECK-NOT:       linalg.transpose
// CHECK:           tensor.extract_slice %[[T]]
// CHECK-NOT:     linalg.transpose
func.func @shared(%a: tensor<8x256x64xf32>, %b: tensor<8x128x64xf32>, %c: tensor<8x256x128xf32>) -> (tensor<8x256x128xf32>, tensor<8x64x128xf32>) {
  %e = tensor.empty() : tensor<8x64x128xf32>
  %t = linalg.transpose ins(%b : tensor<8x128x64xf32>) outs(%e : tensor<8x64x128xf32>) permutation = [0, 2, 1]
  %r = linalg.batch_matmul ins(%a, %t : tensor<8x256x64xf32>, tensor<8x64x128xf32>) outs(%c : tensor<8x256x128xf32>) -> tensor<8x256x128xf32>
  return %r, %t : tensor<8x256x128xf32>, tensor<8x64x128xf32>
}

// The transpose moves the batches.
// CHECK-LABEL: func.func @moved(
// CHECK:         linalg.transpose ins(%arg1
// CHECK:         scf.for
// CHECK-NOT:       linalg.transpose
func.func @moved(%a: tensor<8x256x64xf32>, %b: tensor<128x8x64xf32>, %c: tensor<8x256x128xf32>) -> tensor<8x256x128xf32> {
  %e = tensor.empty() : tensor<8x64x128xf32>
  %t = linalg.transpose ins(%b : tensor<128x8x64xf32>) outs(%e : tensor<8x64x128xf32>) permutation = [1, 2, 0]
  %r = linalg.batch_matmul ins(%a, %t : tensor<8x256x64xf32>, tensor<8x64x128xf32>) outs(%c : tensor<8x256x128xf32>) -> tensor<8x256x128xf32>
  return %r : tensor<8x256x128xf32>
}
