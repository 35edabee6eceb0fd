// RUN: not nkx opt --decompose-batch-matmul %s 2>&1 | FileCheck %s

// CHECK: :6:3: error: tile size [4,128,128]: the batch of a matmul is iterated
func.func @f(%a: tensor<8x256x256xf32>, %c: tensor<8x256x256xf32>) -> tensor<8x256x256xf32> {
  %r = linalg.batch_matmul ins(%a, %a : tensor<8x256x256xf32>, tensor<8x256x256xf32>) outs(%c : tensor<8x256x256xf32>) -> tensor<8x256x256xf32>
  "nkipy.layout"(%r) {tile_size = array<i64: 4, 128, 128>} : (tensor<8x256x256xf32>) -> ()
  return %r : tensor<8x256x256xf32>
}
