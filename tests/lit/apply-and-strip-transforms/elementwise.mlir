// Element-wise: one loop per dimension, tiles of the operands in SBUF, the result of the tile in a buffer of its own.
// RUN: nkx opt --knob-driven-tiling --apply-and-strip-transforms %s | FileCheck %s

// CHECK-NOT: transform.

func.func @add_256(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.add {nkipy.op_id = 0 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL: func.func @add_256
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         %[[L0:.*]] = scf.for %[[I0:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{.*}} iter_args(%[[A0:.*]] = %[[E]]) -> (tensor<256x256xf32>)
// CHECK:         %[[L1:.*]] = scf.for %[[I1:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{.*}} iter_args(%[[A1:.*]] = %[[A0]]) -> (tensor<256x256xf32>)
// CHECK:           %[[S0:.*]] = tensor.extract_slice %arg0[%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<256x256xf32> to tensor<128x128xf32>
// CHECK-NEXT:      %[[M0:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[P0:.*]] = bufferization.materialize_in_destination %[[S0]] in %[[M0]]
// CHECK:           %[[S1:.*]] = tensor.extract_slice %arg1[%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<256x256xf32> to tensor<128x128xf32>
// CHECK-NEXT:      %[[M1:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[P1:.*]] = bufferization.materialize_in_destination %[[S1]] in %[[M1]]
// CHECK:           %[[O:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[R:.*]] = linalg.add {nkipy.op_id = 0 : i64} ins(%[[P0]], %[[P1]] : tensor<128x128xf32>, tensor<128x128xf32>) outs(%[[O]] : tensor<128x128xf32>) -> tensor<128x128xf32>
// CHECK-NEXT:      %[[N:.*]] = tensor.insert_slice %[[R]] into %[[A1]][%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<128x128xf32> into tensor<256x256xf32>
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK:         scf.yield %[[L1]]
// CHECK:         "nkipy.layout"(%[[L0]]) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[L0]]) {loop_tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    return %[[L0]]

func.func @add_512(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512x512xf32>
  %r = linalg.add {nkipy.op_id = 1 : i64} ins(%a, %b : tensor<512x512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>} : (tensor<512x512xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<512x512xf32>) -> ()
  return %r : tensor<512x512xf32>
}
// CHECK-LABEL: func.func @add_512
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         %[[L0:.*]] = scf.for %[[I0:.*]] = %c0{{.*}} to %c512{{.*}} step %c128{{.*}} iter_args(%[[A0:.*]] = %[[E]]) -> (tensor<512x512xf32>)
// CHECK:         %[[L1:.*]] = scf.for %[[I1:.*]] = %c0{{.*}} to %c512{{.*}} step %c128{{.*}} iter_args(%[[A1:.*]] = %[[A0]]) -> (tensor<512x512xf32>)
// CHECK:           %[[S0:.*]] = tensor.extract_slice %arg0[%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<512x512xf32> to tensor<128x128xf32>
// CHECK-NEXT:      %[[M0:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[P0:.*]] = bufferization.materialize_in_destination %[[S0]] in %[[M0]]
// CHECK:           %[[S1:.*]] = tensor.extract_slice %arg1[%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<512x512xf32> to tensor<128x128xf32>
// CHECK-NEXT:      %[[M1:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[P1:.*]] = bufferization.materialize_in_destination %[[S1]] in %[[M1]]
// CHECK:           %[[O:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[R:.*]] = linalg.add {nkipy.op_id = 1 : i64} ins(%[[P0]], %[[P1]] : tensor<128x128xf32>, tensor<128x128xf32>) outs(%[[O]] : tensor<128x128xf32>) -> tensor<128x128xf32>
// CHECK-NEXT:      %[[N:.*]] = tensor.insert_slice %[[R]] into %[[A1]][%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<128x128xf32> into tensor<512x512xf32>
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK:         scf.yield %[[L1]]
// CHECK:         "nkipy.layout"(%[[L0]]) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[L0]]) {loop_tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    return %[[L0]]

func.func @add_64(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.add {nkipy.op_id = 2 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, tile_size = array<i64: 64, 64>} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 64, 64>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL: func.func @add_64
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         %[[L0:.*]] = scf.for %[[I0:.*]] = %c0{{.*}} to %c256{{.*}} step %c64{{.*}} iter_args(%[[A0:.*]] = %[[E]]) -> (tensor<256x256xf32>)
// CHECK:         %[[L1:.*]] = scf.for %[[I1:.*]] = %c0{{.*}} to %c256{{.*}} step %c64{{.*}} iter_args(%[[A1:.*]] = %[[A0]]) -> (tensor<256x256xf32>)
// CHECK:           %[[S0:.*]] = tensor.extract_slice %arg0[%[[I0]], %[[I1]]] [64, 64] [1, 1] : tensor<256x256xf32> to tensor<64x64xf32>
// CHECK-NEXT:      %[[M0:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<64x64xf32>
// CHECK-NEXT:      %[[P0:.*]] = bufferization.materialize_in_destination %[[S0]] in %[[M0]]
// CHECK:           %[[S1:.*]] = tensor.extract_slice %arg1[%[[I0]], %[[I1]]] [64, 64] [1, 1] : tensor<256x256xf32> to tensor<64x64xf32>
// CHECK-NEXT:      %[[M1:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<64x64xf32>
// CHECK-NEXT:      %[[P1:.*]] = bufferization.materialize_in_destination %[[S1]] in %[[M1]]
// CHECK:           %[[O:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<64x64xf32>
// CHECK-NEXT:      %[[R:.*]] = linalg.add {nkipy.op_id = 2 : i64} ins(%[[P0]], %[[P1]] : tensor<64x64xf32>, tensor<64x64xf32>) outs(%[[O]] : tensor<64x64xf32>) -> tensor<64x64xf32>
// CHECK-NEXT:      %[[N:.*]] = tensor.insert_slice %[[R]] into %[[A1]][%[[I0]], %[[I1]]] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<256x256xf32>
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK:         scf.yield %[[L1]]
// CHECK:         "nkipy.layout"(%[[L0]]) {mem_space = 4 : i32, tile_size = array<i64: 64, 64>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[L0]]) {loop_tile_size = array<i64: 64, 64>}
// CHECK-NEXT:    return %[[L0]]

func.func @add_3d(%a: tensor<128x256x64xf32>, %b: tensor<128x256x64xf32>) -> tensor<128x256x64xf32> {
  %e = tensor.empty() : tensor<128x256x64xf32>
  %r = linalg.add {nkipy.op_id = 3 : i64} ins(%a, %b : tensor<128x256x64xf32>, tensor<128x256x64xf32>) outs(%e : tensor<128x256x64xf32>) -> tensor<128x256x64xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, tile_size = array<i64: 64, 128, 32>} : (tensor<128x256x64xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 64, 128, 32>} : (tensor<128x256x64xf32>) -> ()
  return %r : tensor<128x256x64xf32>
}
// CHECK-LABEL: func.func @add_3d
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         %[[L0:.*]] = scf.for %[[I0:.*]] = %c0{{.*}} to %c128{{.*}} step %c64{{.*}} iter_args(%[[A0:.*]] = %[[E]]) -> (tensor<128x256x64xf32>)
// CHECK:         %[[L1:.*]] = scf.for %[[I1:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{.*}} iter_args(%[[A1:.*]] = %[[A0]]) -> (tensor<128x256x64xf32>)
// CHECK:         %[[L2:.*]] = scf.for %[[I2:.*]] = %c0{{.*}} to %c64{{.*}} step %c32{{.*}} iter_args(%[[A2:.*]] = %[[A1]]) -> (tensor<128x256x64xf32>)
// CHECK:           %[[S0:.*]] = tensor.extract_slice %arg0[%[[I0]], %[[I1]], %[[I2]]] [64, 128, 32] [1, 1, 1] : tensor<128x256x64xf32> to tensor<64x128x32xf32>
// CHECK-NEXT:      %[[M0:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<64x128x32xf32>
// CHECK-NEXT:      %[[P0:.*]] = bufferization.materialize_in_destination %[[S0]] in %[[M0]]
// CHECK:           %[[S1:.*]] = tensor.extract_slice %arg1[%[[I0]], %[[I1]], %[[I2]]] [64, 128, 32] [1, 1, 1] : tensor<128x256x64xf32> to tensor<64x128x32xf32>
// CHECK-NEXT:      %[[M1:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<64x128x32xf32>
// CHECK-NEXT:      %[[P1:.*]] = bufferization.materialize_in_destination %[[S1]] in %[[M1]]
// CHECK:           %[[O:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<64x128x32xf32>
// CHECK-NEXT:      %[[R:.*]] = linalg.add {nkipy.op_id = 3 : i64} ins(%[[P0]], %[[P1]] : tensor<64x128x32xf32>, tensor<64x128x32xf32>) outs(%[[O]] : tensor<64x128x32xf32>) -> tensor<64x128x32xf32>
// CHECK-NEXT:      %[[N:.*]] = tensor.insert_slice %[[R]] into %[[A2]][%[[I0]], %[[I1]], %[[I2]]] [64, 128, 32] [1, 1, 1] : tensor<64x128x32xf32> into tensor<128x256x64xf32>
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK:         scf.yield %[[L2]]
// CHECK:         scf.yield %[[L1]]
// CHECK:         "nkipy.layout"(%[[L0]]) {mem_space = 4 : i32, tile_size = array<i64: 64, 128, 32>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[L0]]) {loop_tile_size = array<i64: 64, 128, 32>}
// CHECK-NEXT:    return %[[L0]]

func.func @sub(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.sub {nkipy.op_id = 4 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL: func.func @sub
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         %[[L0:.*]] = scf.for %[[I0:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{.*}} iter_args(%[[A0:.*]] = %[[E]]) -> (tensor<256x256xf32>)
// CHECK:         %[[L1:.*]] = scf.for %[[I1:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{.*}} iter_args(%[[A1:.*]] = %[[A0]]) -> (tensor<256x256xf32>)
// CHECK:           %[[S0:.*]] = tensor.extract_slice %arg0[%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<256x256xf32> to tensor<128x128xf32>
// CHECK-NEXT:      %[[M0:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[P0:.*]] = bufferization.materialize_in_destination %[[S0]] in %[[M0]]
// CHECK:           %[[S1:.*]] = tensor.extract_slice %arg1[%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<256x256xf32> to tensor<128x128xf32>
// CHECK-NEXT:      %[[M1:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[P1:.*]] = bufferization.materialize_in_destination %[[S1]] in %[[M1]]
// CHECK:           %[[O:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[R:.*]] = linalg.sub {nkipy.op_id = 4 : i64} ins(%[[P0]], %[[P1]] : tensor<128x128xf32>, tensor<128x128xf32>) outs(%[[O]] : tensor<128x128xf32>) -> tensor<128x128xf32>
// CHECK-NEXT:      %[[N:.*]] = tensor.insert_slice %[[R]] into %[[A1]][%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<128x128xf32> into tensor<256x256xf32>
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK:         scf.yield %[[L1]]
// CHECK:         "nkipy.layout"(%[[L0]]) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[L0]]) {loop_tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    return %[[L0]]

func.func @mul(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.mul {nkipy.op_id = 5 : i64} ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}
// CHECK-LABEL: func.func @mul
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         %[[L0:.*]] = scf.for %[[I0:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{.*}} iter_args(%[[A0:.*]] = %[[E]]) -> (tensor<256x256xf32>)
// CHECK:         %[[L1:.*]] = scf.for %[[I1:.*]] = %c0{{.*}} to %c256{{.*}} step %c128{{.*}} iter_args(%[[A1:.*]] = %[[A0]]) -> (tensor<256x256xf32>)
// CHECK:           %[[S0:.*]] = tensor.extract_slice %arg0[%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<256x256xf32> to tensor<128x128xf32>
// CHECK-NEXT:      %[[M0:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[P0:.*]] = bufferization.materialize_in_destination %[[S0]] in %[[M0]]
// CHECK:           %[[S1:.*]] = tensor.extract_slice %arg1[%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<256x256xf32> to tensor<128x128xf32>
// CHECK-NEXT:      %[[M1:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[P1:.*]] = bufferization.materialize_in_destination %[[S1]] in %[[M1]]
// CHECK:           %[[O:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x128xf32>
// CHECK-NEXT:      %[[R:.*]] = linalg.mul {nkipy.op_id = 5 : i64} ins(%[[P0]], %[[P1]] : tensor<128x128xf32>, tensor<128x128xf32>) outs(%[[O]] : tensor<128x128xf32>) -> tensor<128x128xf32>
// CHECK-NEXT:      %[[N:.*]] = tensor.insert_slice %[[R]] into %[[A1]][%[[I0]], %[[I1]]] [128, 128] [1, 1] : tensor<128x128xf32> into tensor<256x256xf32>
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK:         scf.yield %[[L1]]
// CHECK:         "nkipy.layout"(%[[L0]]) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[L0]]) {loop_tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    return %[[L0]]

func.func @once(%a: tensor<128x256xf32>, %b: tensor<128x256xf32>) -> tensor<128x256xf32> {
  %e = tensor.empty() : tensor<128x256xf32>
  %r = linalg.add {nkipy.op_id = 6 : i64} ins(%a, %b : tensor<128x256xf32>, tensor<128x256xf32>) outs(%e : tensor<128x256xf32>) -> tensor<128x256xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, tile_size = array<i64: 128, 256>} : (tensor<128x256xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 256>} : (tensor<128x256xf32>) -> ()
  return %r : tensor<128x256xf32>
}
// CHECK-LABEL: func.func @once
// CHECK:         %[[E:.*]] = tensor.empty
// CHECK:         %[[L0:.*]] = scf.for %[[I0:.*]] = %c0{{.*}} to %c128{{.*}} step %c128{{.*}} iter_args(%[[A0:.*]] = %[[E]]) -> (tensor<128x256xf32>)
// CHECK:         %[[L1:.*]] = scf.for %[[I1:.*]] = %c0{{.*}} to %c256{{.*}} step %c256{{.*}} iter_args(%[[A1:.*]] = %[[A0]]) -> (tensor<128x256xf32>)
// CHECK:           %[[S0:.*]] = tensor.extract_slice %arg0[%[[I0]], %[[I1]]] [128, 256] [1, 1] : tensor<128x256xf32> to tensor<128x256xf32>
// CHECK-NEXT:      %[[M0:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x256xf32>
// CHECK-NEXT:      %[[P0:.*]] = bufferization.materialize_in_destination %[[S0]] in %[[M0]]
// CHECK:           %[[S1:.*]] = tensor.extract_slice %arg1[%[[I0]], %[[I1]]] [128, 256] [1, 1] : tensor<128x256xf32> to tensor<128x256xf32>
// CHECK-NEXT:      %[[M1:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x256xf32>
// CHECK-NEXT:      %[[P1:.*]] = bufferization.materialize_in_destination %[[S1]] in %[[M1]]
// CHECK:           %[[O:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x256xf32>
// CHECK-NEXT:      %[[R:.*]] = linalg.add {nkipy.op_id = 6 : i64} ins(%[[P0]], %[[P1]] : tensor<128x256xf32>, tensor<128x256xf32>) outs(%[[O]] : tensor<128x256xf32>) -> tensor<128x256xf32>
// CHECK-NEXT:      %[[N:.*]] = tensor.insert_slice %[[R]] into %[[A1]][%[[I0]], %[[I1]]] [128, 256] [1, 1] : tensor<128x256xf32> into tensor<128x256xf32>
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK:         scf.yield %[[L1]]
// CHECK:         "nkipy.layout"(%[[L0]]) {mem_space = 4 : i32, tile_size = array<i64: 128, 256>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[L0]]) {loop_tile_size = array<i64: 128, 256>}
// CHECK-NEXT:    return %[[L0]]
