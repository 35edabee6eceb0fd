// Matmul: blocks of the transposed left and of the right operand in SBUF, accumulators in PSUM.  Blocks inside have the fewest
// tiles that take 256 KiB, or all; those outside are whole where they fit.
// RUN: nkx opt --knob-driven-tiling --apply-and-strip-transforms %s | FileCheck %s
// CHECK-DAG: #[[KM:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK-DAG: #[[KN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>

func.func @t128(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.matmul {nkipy.op_id = 0 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL: func.func @t128
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

func.func @large(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512x512xf32>
  %r = linalg.matmul {nkipy.op_id = 1 : i64} ins(%a, %b : tensor<512x512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<512x512xf32>) -> ()
  return %r : tensor<512x512xf32>
}
// CHECK-LABEL: func.func @large
// CHECK:         scf.for %[[M:.*]] = %c0{{.*}} to %c512{{.*}} step %c512{{[_ ].*}}iter_args
// CHECK:           %[[A:.*]] = tensor.extract_slice %arg0[%[[M]], 0] [512, 512] [1, 1]
// CHECK:           %[[T:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<512x512xf32>
// CHECK-NEXT:      linalg.transpose ins(%[[A]] : tensor<512x512xf32>) outs(%[[T]] : tensor<512x512xf32>) permutation = [1, 0]
// CHECK:           scf.for %[[N:.*]] = %c0{{.*}} to %c512{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:             %[[B:.*]] = tensor.extract_slice %{{.*}}[0, %[[N]]] [512, 128] [1, 1]
// CHECK-NEXT:        %[[S:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<512x128xf32>
// CHECK-NEXT:        bufferization.materialize_in_destination %[[B]] in %[[S]]
// CHECK:             scf.for %[[m:.*]] = %c0{{.*}} to %c512{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:               scf.for %[[n:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                 %[[P:.*]] = bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<128x128xf32>
// CHECK:                 scf.for %[[k:.*]] = %c0{{.*}} to %c512{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                   %[[L:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   %[[R:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] {nkipy.op_id = 1 : i64}
// CHECK-SAME:                ins(%[[L]], %[[R]] : tensor<128x128xf32>, tensor<128x128xf32>) outs(%{{.*}} : tensor<128x128xf32>)

func.func @t64(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.matmul {nkipy.op_id = 2 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 64, 64, 64>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL: func.func @t64
// CHECK:         scf.for %[[M:.*]] = %c0{{.*}} to %c256{{.*}} step %c256{{[_ ].*}}iter_args
// CHECK:           %[[A:.*]] = tensor.extract_slice %arg0[%[[M]], 0] [256, 256] [1, 1]
// CHECK:           %[[T:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x256xf32>
// CHECK-NEXT:      linalg.transpose ins(%[[A]] : tensor<256x256xf32>) outs(%[[T]] : tensor<256x256xf32>) permutation = [1, 0]
// CHECK:           scf.for %[[N:.*]] = %c0{{.*}} to %c256{{.*}} step %c256{{[_ ].*}}iter_args
// CHECK:             %[[B:.*]] = tensor.extract_slice %{{.*}}[0, %[[N]]] [256, 256] [1, 1]
// CHECK-NEXT:        %[[S:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x256xf32>
// CHECK-NEXT:        bufferization.materialize_in_destination %[[B]] in %[[S]]
// CHECK:             scf.for %[[m:.*]] = %c0{{.*}} to %c256{{.*}} step %c64{{[_ ].*}}iter_args
// CHECK:               scf.for %[[n:.*]] = %c0{{.*}} to %c256{{.*}} step %c64{{[_ ].*}}iter_args
// CHECK:                 %[[P:.*]] = bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<64x64xf32>
// CHECK:                 scf.for %[[k:.*]] = %c0{{.*}} to %c256{{.*}} step %c64{{[_ ].*}}iter_args
// CHECK:                   %[[L:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [64, 64] [1, 1]
// CHECK:                   %[[R:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [64, 64] [1, 1]
// CHECK:                   linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] {nkipy.op_id = 2 : i64}
// CHECK-SAME:                ins(%[[L]], %[[R]] : tensor<64x64xf32>, tensor<64x64xf32>) outs(%{{.*}} : tensor<64x64xf32>)

func.func @mixed(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.matmul {nkipy.op_id = 3 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 64, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL: func.func @mixed
// CHECK:         scf.for %[[M:.*]] = %c0{{.*}} to %c256{{.*}} step %c256{{[_ ].*}}iter_args
// CHECK:           %[[A:.*]] = tensor.extract_slice %arg0[%[[M]], 0] [256, 256] [1, 1]
// CHECK:           %[[T:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x256xf32>
// CHECK-NEXT:      linalg.transpose ins(%[[A]] : tensor<256x256xf32>) outs(%[[T]] : tensor<256x256xf32>) permutation = [1, 0]
// CHECK:           scf.for %[[N:.*]] = %c0{{.*}} to %c256{{.*}} step %c256{{[_ ].*}}iter_args
// CHECK:             %[[B:.*]] = tensor.extract_slice %{{.*}}[0, %[[N]]] [256, 256] [1, 1]
// CHECK-NEXT:        %[[S:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x256xf32>
// CHECK-NEXT:        bufferization.materialize_in_destination %[[B]] in %[[S]]
// CHECK:             scf.for %[[m:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:               scf.for %[[n:.*]] = %c0{{.*}} to %c256{{.*}} step %c64{{[_ ].*}}iter_args
// CHECK:                 %[[P:.*]] = bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<128x64xf32>
// CHECK:                 scf.for %[[k:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                   %[[L:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   %[[R:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 64] [1, 1]
// CHECK:                   linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] {nkipy.op_id = 3 : i64}
// CHECK-SAME:                ins(%[[L]], %[[R]] : tensor<128x128xf32>, tensor<128x64xf32>) outs(%{{.*}} : tensor<128x64xf32>)

func.func @one_tile(%a: tensor<128x128xf32>, %b: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %e = tensor.empty() : tensor<128x128xf32>
  %r = linalg.matmul {nkipy.op_id = 4 : i64} ins(%a, %b : tensor<128x128xf32>, tensor<128x128xf32>) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<128x128xf32>) -> ()
  return %r : tensor<128x128xf32>
}
// CHECK-LABEL: func.func @one_tile
// CHECK:         scf.for %[[M:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:           %[[A:.*]] = tensor.extract_slice %arg0[%[[M]], 0] [128, 128] [1, 1]
// CHECK:           %[[T:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      linalg.transpose ins(%[[A]] : tensor<128x128xf32>) outs(%[[T]] : tensor<128x128xf32>) permutation = [1, 0]
// CHECK:           scf.for %[[N:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:             %[[B:.*]] = tensor.extract_slice %{{.*}}[0, %[[N]]] [128, 128] [1, 1]
// CHECK-NEXT:        %[[S:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:        bufferization.materialize_in_destination %[[B]] in %[[S]]
// CHECK:             scf.for %[[m:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:               scf.for %[[n:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                 %[[P:.*]] = bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<128x128xf32>
// CHECK:                 scf.for %[[k:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                   %[[L:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   %[[R:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] {nkipy.op_id = 4 : i64}
// CHECK-SAME:                ins(%[[L]], %[[R]] : tensor<128x128xf32>, tensor<128x128xf32>) outs(%{{.*}} : tensor<128x128xf32>)

func.func @one_n(%a: tensor<256x256xf32>, %b: tensor<256x128xf32>) -> tensor<256x128xf32> {
  %e = tensor.empty() : tensor<256x128xf32>
  %r = linalg.matmul {nkipy.op_id = 5 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x128xf32>) outs(%e : tensor<256x128xf32>) -> tensor<256x128xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<256x128xf32>) -> ()
  return %r : tensor<256x128xf32>
}
// CHECK-LABEL: func.func @one_n
// CHECK:         scf.for %[[M:.*]] = %c0{{.*}} to %c256{{.*}} step %c256{{[_ ].*}}iter_args
// CHECK:           %[[A:.*]] = tensor.extract_slice %arg0[%[[M]], 0] [256, 256] [1, 1]
// CHECK:           %[[T:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x256xf32>
// CHECK-NEXT:      linalg.transpose ins(%[[A]] : tensor<256x256xf32>) outs(%[[T]] : tensor<256x256xf32>) permutation = [1, 0]
// CHECK:           scf.for %[[N:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:             %[[B:.*]] = tensor.extract_slice %{{.*}}[0, %[[N]]] [256, 128] [1, 1]
// CHECK-NEXT:        %[[S:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x128xf32>
// CHECK-NEXT:        bufferization.materialize_in_destination %[[B]] in %[[S]]
// CHECK:             scf.for %[[m:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:               scf.for %[[n:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                 %[[P:.*]] = bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<128x128xf32>
// CHECK:                 scf.for %[[k:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                   %[[L:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   %[[R:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] {nkipy.op_id = 5 : i64}
// CHECK-SAME:                ins(%[[L]], %[[R]] : tensor<128x128xf32>, tensor<128x128xf32>) outs(%{{.*}} : tensor<128x128xf32>)

func.func @one_m(%a: tensor<128x256xf32>, %b: tensor<256x256xf32>) -> tensor<128x256xf32> {
  %e = tensor.empty() : tensor<128x256xf32>
  %r = linalg.matmul {nkipy.op_id = 6 : i64} ins(%a, %b : tensor<128x256xf32>, tensor<256x256xf32>) outs(%e : tensor<128x256xf32>) -> tensor<128x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<128x256xf32>) -> ()
  return %r : tensor<128x256xf32>
}
// CHECK-LABEL: func.func @one_m
// CHECK:         scf.for %[[M:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:           %[[A:.*]] = tensor.extract_slice %arg0[%[[M]], 0] [128, 256] [1, 1]
// CHECK:           %[[T:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x128xf32>
// CHECK-NEXT:      linalg.transpose ins(%[[A]] : tensor<128x256xf32>) outs(%[[T]] : tensor<256x128xf32>) permutation = [1, 0]
// CHECK:           scf.for %[[N:.*]] = %c0{{.*}} to %c256{{.*}} step %c256{{[_ ].*}}iter_args
// CHECK:             %[[B:.*]] = tensor.extract_slice %{{.*}}[0, %[[N]]] [256, 256] [1, 1]
// CHECK-NEXT:        %[[S:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<256x256xf32>
// CHECK-NEXT:        bufferization.materialize_in_destination %[[B]] in %[[S]]
// CHECK:             scf.for %[[m:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:               scf.for %[[n:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                 %[[P:.*]] = bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<128x128xf32>
// CHECK:                 scf.for %[[k:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                   %[[L:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   %[[R:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] {nkipy.op_id = 6 : i64}
// CHECK-SAME:                ins(%[[L]], %[[R]] : tensor<128x128xf32>, tensor<128x128xf32>) outs(%{{.*}} : tensor<128x128xf32>)

func.func @three(%a: tensor<384x128xf32>, %b: tensor<128x384xf32>) -> tensor<384x384xf32> {
  %e = tensor.empty() : tensor<384x384xf32>
  %r = linalg.matmul {nkipy.op_id = 7 : i64} ins(%a, %b : tensor<384x128xf32>, tensor<128x384xf32>) outs(%e : tensor<384x384xf32>) -> tensor<384x384xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<384x384xf32>) -> ()
  return %r : tensor<384x384xf32>
}
// CHECK-LABEL: func.func @three
// CHECK:         scf.for %[[M:.*]] = %c0{{.*}} to %c384{{.*}} step %c384{{[_ ].*}}iter_args
// CHECK:           %[[A:.*]] = tensor.extract_slice %arg0[%[[M]], 0] [384, 128] [1, 1]
// CHECK:           %[[T:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x384xf32>
// CHECK-NEXT:      linalg.transpose ins(%[[A]] : tensor<384x128xf32>) outs(%[[T]] : tensor<128x384xf32>) permutation = [1, 0]
// CHECK:           scf.for %[[N:.*]] = %c0{{.*}} to %c384{{.*}} step %c384{{[_ ].*}}iter_args
// CHECK:             %[[B:.*]] = tensor.extract_slice %{{.*}}[0, %[[N]]] [128, 384] [1, 1]
// CHECK-NEXT:        %[[S:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x384xf32>
// CHECK-NEXT:        bufferization.materialize_in_destination %[[B]] in %[[S]]
// CHECK:             scf.for %[[m:.*]] = %c0{{.*}} to %c384{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:               scf.for %[[n:.*]] = %c0{{.*}} to %c384{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                 %[[P:.*]] = bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<128x128xf32>
// CHECK:                 scf.for %[[k:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:                   %[[L:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   %[[R:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [128, 128] [1, 1]
// CHECK:                   linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] {nkipy.op_id = 7 : i64}
// CHECK-SAME:                ins(%[[L]], %[[R]] : tensor<128x128xf32>, tensor<128x128xf32>) outs(%{{.*}} : tensor<128x128xf32>)

func.func @five(%a: tensor<640x128xf32>, %b: tensor<128x320xf32>) -> tensor<640x320xf32> {
  %e = tensor.empty() : tensor<640x320xf32>
  %r = linalg.matmul {nkipy.op_id = 8 : i64} ins(%a, %b : tensor<640x128xf32>, tensor<128x320xf32>) outs(%e : tensor<640x320xf32>) -> tensor<640x320xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 64, 64>} : (tensor<640x320xf32>) -> ()
  return %r : tensor<640x320xf32>
}
// CHECK-LABEL: func.func @five
// CHECK:         scf.for %[[M:.*]] = %c0{{.*}} to %c640{{.*}} step %c640{{[_ ].*}}iter_args
// CHECK:           %[[A:.*]] = tensor.extract_slice %arg0[%[[M]], 0] [640, 128] [1, 1]
// CHECK:           %[[T:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x640xf32>
// CHECK-NEXT:      linalg.transpose ins(%[[A]] : tensor<640x128xf32>) outs(%[[T]] : tensor<128x640xf32>) permutation = [1, 0]
// CHECK:           scf.for %[[N:.*]] = %c0{{.*}} to %c320{{.*}} step %c320{{[_ ].*}}iter_args
// CHECK:             %[[B:.*]] = tensor.extract_slice %{{.*}}[0, %[[N]]] [128, 320] [1, 1]
// CHECK-NEXT:        %[[S:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x320xf32>
// CHECK-NEXT:        bufferization.materialize_in_destination %[[B]] in %[[S]]
// CHECK:             scf.for %[[m:.*]] = %c0{{.*}} to %c640{{.*}} step %c128{{[_ ].*}}iter_args
// CHECK:               scf.for %[[n:.*]] = %c0{{.*}} to %c320{{.*}} step %c64{{[_ ].*}}iter_args
// CHECK:                 %[[P:.*]] = bufferization.alloc_tensor() {memory_space = 2 : i32} : tensor<128x64xf32>
// CHECK:                 scf.for %[[k:.*]] = %c0{{.*}} to %c128{{.*}} step %c64{{[_ ].*}}iter_args
// CHECK:                   %[[L:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [64, 128] [1, 1]
// CHECK:                   %[[R:.*]] = tensor.extract_slice %{{.*}}[%[[k]], 0] [64, 64] [1, 1]
// CHECK:                   linalg.matmul indexing_maps = [#[[KM]], #[[KN]], #[[MN]]] {nkipy.op_id = 8 : i64}
// CHECK-SAME:                ins(%[[L]], %[[R]] : tensor<64x128xf32>, tensor<64x64xf32>) outs(%{{.*}} : tensor<128x64xf32>)
