// Two matmuls, each with its own tiles.
// Blocks of all tiles of the transposed left and of the right operand in SBUF, accumulators in PSUM.
// RUN: nkx opt --knob-driven-tiling --apply-and-strip-transforms %s | FileCheck %s
// CHECK-DAG: #[[KM:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>

func.func @first(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.matmul {nkipy.op_id = 0 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL: func.func @first
// CHECK:         scf.for %[[M:.*]] = %c0{{.*}} to %c256{{.*}} step %c256{{[_ ].*}}iter_args
// CHECK:           %[[A:.*]] = tensor.extract_slice %arg0[%[[M]], 0] [256, 256] [1, 1]
// CHECK:           %[[T:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x256xf32>
// CHECK-NEXT:      linalg.transpose ins(%[[A]] : tensor<256x256xf32>) outs(%[[T]] : tensor<256x256xf32>) permutation = [1, 0]
// CHECK:           scf.for %[[N:.*]] = %c0{{.*}} to %c256{{.*}} step %c256{{[_ ].*}}iter_args
// CHECK:             %[[B:.*]] = tensor.extract_slice %{{.*}}[0, %[[N]]] [256, 256] [1, 1]
// CHECK-NEXT:        %[[S:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x256xf32>
// CHECK-NEXT:        bufferization.materialize_in_destination %[[B]] in %[[S]]
// CHECK:             scf.for %[[m:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:               scf.for %[[n:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                 %[[P:.*]] = bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<128x128xf32>
// CHECK:                 scf.for %[[k:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                   %[[L:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   %[[R:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] {nkipy.op_id = 0 : i64}
// CHECK-SAME:                ins(%[[L]], %[[R]] : tensor<128x128xf32>, tensor<128x128xf32>) outs(%{{.*}} : tensor<128x128xf32>)

func.func @second(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.matmul {nkipy.op_id = 1 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 64, 128, 64>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL: func.func @second
// CHECK:         scf.for %[[M:.*]] = %c0{{.*}} to %c256{{.*}} step %c256{{[_ ].*}}iter_args
// CHECK:           %[[A:.*]] = tensor.extract_slice %arg0[%[[M]], 0] [256, 256] [1, 1]
// CHECK:           %[[T:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x256xf32>
// CHECK-NEXT:      linalg.transpose ins(%[[A]] : tensor<256x256xf32>) outs(%[[T]] : tensor<256x256xf32>) permutation = [1, 0]
// CHECK:           scf.for %[[N:.*]] = %c0{{.*}} to %c256{{.*}} step %c256{{[_ ].*}}iter_args
// CHECK:             %[[B:.*]] = tensor.extract_slice %{{.*}}[0, %[[N]]] [256, 256] [1, 1]
// CHECK-NEXT:        %[[S:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x256xf32>
// CHECK-NEXT:        bufferization.materialize_in_destination %[[B]] in %[[S]]
// CHECK:             scf.for %[[m:.*]] = %c0{{.*}} to %c256{{.*}} step %c64{{[_ ].*}}iter_args
// CHECK:               scf.for %[[n:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                 %[[P:.*]] = bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<64x128xf32>
// CHECK:                 scf.for %[[k:.*]] = %c0{{.*}} to %c256{{.*}} step %c64{{[_ ].*}}iter_args
// CHECK:                   %[[L:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [64, 64] [1, 1]
// CHECK:                   %[[R:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [64, 128] [1, 1]
// CHECK:                   linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] {nkipy.op_id = 1 : i64}
// CHECK-SAME:                ins(%[[L]], %[[R]] : tensor<64x64xf32>, tensor<64x128xf32>) outs(%{{.*}} : tensor<64x128xf32>)
