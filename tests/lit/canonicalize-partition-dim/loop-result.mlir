// On what no linalg operation computes the partition dimension only informs.
// RUN: nkx opt --canonicalize-partition-dim %s | FileCheck %s
// CHECK-NOT: linalg.transpose
// CHECK: partition_dim = 1
func.func @f(%x: tensor<4x128x64xf32>) -> tensor<2x128x64xf32> {
  %s = tensor.extract_slice %x[1, 0, 0] [2, 128, 64] [1, 1, 1] : tensor<4x128x64xf32> to tensor<2x128x64xf32>
  "nkipy.layout"(%s) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 64>} : (tensor<2x128x64xf32>) -> ()
  return %s : tensor<2x128x64xf32>
}
