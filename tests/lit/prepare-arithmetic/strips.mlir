// A transpose of matrices with a short side turns pieces of the long one, and moves runs of a piece to their places.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// CHECK-DAG: #[[TURNED:.*]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>

// REMARK: 1568 pieces of 512 by 3 elements are turned by themselves
// CHECK-LABEL: func.func @channels_first
// CHECK: linalg.generic {indexing_maps = [#[[TURNED]], #{{.*}}]{{.*}} ins(%{{.*}} : tensor<1568x512x3xf32>) outs(%{{.*}} : tensor<1568x3x512xf32>)
// CHECK: linalg.transpose ins(%{{.*}} : tensor<16x98x3x512xf32>) outs(%{{.*}} : tensor<16x3x98x512xf32>) permutation = [0, 2, 1, 3]
func.func @channels_first(%x: tensor<16x224x224x3xf32>) -> tensor<16x3x224x224xf32> {
  %e = tensor.empty() : tensor<16x3x224x224xf32>
  %t = linalg.transpose ins(%x : tensor<16x224x224x3xf32>) outs(%e : tensor<16x3x224x224xf32>) permutation = [0, 3, 1, 2]
  return %t : tensor<16x3x224x224xf32>
}

// CHECK-LABEL: func.func @of_few_rows
// CHECK: linalg.transpose ins(%{{.*}} : tensor<1x3x128x512xf32>) outs(%{{.*}} : tensor<1x128x3x512xf32>) permutation = [0, 2, 1, 3]
// CHECK: linalg.generic {indexing_maps = [#[[TURNED]], #{{.*}}]{{.*}} ins(%{{.*}} : tensor<128x3x512xf32>) outs(%{{.*}} : tensor<128x512x3xf32>)
func.func @of_few_rows(%x: tensor<3x65536xf32>) -> tensor<65536x3xf32> {
  %e = tensor.empty() : tensor<65536x3xf32>
  %t = linalg.transpose ins(%x : tensor<3x65536xf32>) outs(%e : tensor<65536x3xf32>) permutation = [1, 0]
  return %t : tensor<65536x3xf32>
}

// A side of 64 fills half of a block: blocks are turned.
// CHECK-LABEL: func.func @stay
// CHECK: linalg.transpose ins(%arg0 : tensor<8192x64xf32>)
func.func @stay(%x: tensor<8192x64xf32>) -> tensor<64x8192xf32> {
  %e = tensor.empty() : tensor<64x8192xf32>
  %t = linalg.transpose ins(%x : tensor<8192x64xf32>) outs(%e : tensor<64x8192xf32>) permutation = [1, 0]
  return %t : tensor<64x8192xf32>
}
