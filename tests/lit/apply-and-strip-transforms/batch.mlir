// The loop over a batch stays around the loops of its matmul.
// RUN: nkx opt --decompose-batch-matmul --assign-linalg-op-ids --knob-driven-tiling --apply-and-strip-transforms %s | FileCheck %s
func.func @bmm(%a: tensor<8x256x256xf32>, %b: tensor<8x256x256xf32>) -> tensor<8x256x256xf32> {
  %e = tensor.empty() : tensor<8x256x256xf32>
  %r = linalg.batch_matmul ins(%a, %b : tensor<8x256x256xf32>, tensor<8x256x256xf32>)
    outs(%e : tensor<8x256x256xf32>) -> tensor<8x256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 128, 128, 128>} : (tensor<8x256x256xf32>) -> ()
  return %r : tensor<8x256x256xf32>
}
// CHECK-LABEL: func.func @bmm
// CHECK:         scf.for %[[B:.*]] = %c0{{.*}} to %c8{{.*}} step %c1
// CHECK:           tensor.extract_slice %arg0[%[[B]], 0, 0] [1, 256, 256]
// CHECK:           scf.for %{{.*}} = %c0{{.*}} to %c256{{.*}} step %c256
// CHECK:             linalg.transpose {{.*}} outs(%{{.*}} : tensor<256x256xf32>) permutation = [1, 0]
// CHECK:             scf.for %{{.*}} = %c0{{.*}} to %c256{{.*}} step %c256
// CHECK:               scf.for %{{.*}} = %c0{{.*}} to %c256{{.*}} step %c128
// CHECK:                 scf.for %{{.*}} = %c0{{.*}} to %c256{{.*}} step %c128
// CHECK:                   memory_space = 2 : i32
// CHECK:                   scf.for %{{.*}} = %c0{{.*}} to %c256{{.*}} step %c128
// CHECK:                     linalg.matmul

func.func @bmm512(%a: tensor<4x512x512xf32>, %b: tensor<4x512x512xf32>) -> tensor<4x512x512xf32> {
  %e = tensor.empty() : tensor<4x512x512xf32>
  %r = linalg.batch_matmul ins(%a, %b : tensor<4x512x512xf32>, tensor<4x512x512xf32>)
    outs(%e : tensor<4x512x512xf32>) -> tensor<4x512x512xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 128, 128, 128>} : (tensor<4x512x512xf32>) -> ()
  return %r : tensor<4x512x512xf32>
}
// CHECK-LABEL: func.func @bmm512
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c4{{.*}} step %c1
// CHECK:           scf.for %{{.*}} = %c0{{.*}} to %c512{{.*}} step %c512
// CHECK:             scf.for %{{.*}} = %c0{{.*}} to %c512{{.*}} step %c128
// CHECK:               scf.for %{{.*}} = %c0{{.*}} to %c512{{.*}} step %c128
// CHECK:                 scf.for %{{.*}} = %c0{{.*}} to %c128{{.*}} step %c128
// CHECK:                   scf.for %{{.*}} = %c0{{.*}} to %c512{{.*}} step %c128
