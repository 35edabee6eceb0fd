// RUN: nkx opt --infer-layout --fuse-row-tiles %s | FileCheck %s

// Two operations become one loop: the operand is copied once to SBUF, the value between them is a tile in SBUF, and only
// the result is inserted into the whole value, which keeps its layout.
// CHECK-LABEL: func.func @chain
// CHECK:         %[[ALL:.*]] = tensor.empty() : tensor<256x512xf32>
// CHECK:         %[[OUT:.*]] = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[C:.*]] = %[[ALL]]) -> (tensor<256x512xf32>) {
// CHECK-NEXT:      %[[S:.*]] = tensor.extract_slice %arg0[%[[I]], 0] [128, 512] [1, 1]
// CHECK-NEXT:      %[[A:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x512xf32>
// CHECK-NEXT:      %[[X:.*]] = bufferization.materialize_in_destination %[[S]] in %[[A]]
// CHECK-NEXT:      %[[B:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32}
// CHECK-NEXT:      %[[E:.*]] = linalg.exp ins(%[[X]] : tensor<128x512xf32>) outs(%[[B]] : tensor<128x512xf32>)
// CHECK-NEXT:      %[[D:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32}
// CHECK-NEXT:      %[[M:.*]] = linalg.mul ins(%[[E]], %[[X]] :
// CHECK-NEXT:      %[[R:.*]] = tensor.insert_slice %[[M]] into %[[C]][%[[I]], 0] [128, 512] [1, 1]
// CHECK-NEXT:      scf.yield %[[R]]
// CHECK-NEXT:    }
// CHECK-NEXT:    "nkipy.layout"(%[[OUT]]) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 512>}
// CHECK-NEXT:    return %[[OUT]]
func.func @chain(%x: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %e = tensor.empty() : tensor<256x512xf32>
  %a = linalg.exp ins(%x : tensor<256x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  %b = linalg.mul ins(%a, %x : tensor<256x512xf32>, tensor<256x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %b : tensor<256x512xf32>
}

// A tail of 44 rows comes after the loop; both parts write one value.
// CHECK-LABEL: func.func @tail
// CHECK:         %[[N:.*]] = arith.constant 256 : index
// CHECK:         %[[L:.*]] = scf.for
// CHECK:         tensor.extract_slice %arg0[256, 0] [44, 512]
// CHECK:         %[[M:.*]] = linalg.mul {{.*}} tensor<44x512xf32>
// CHECK:         %[[R:.*]] = tensor.insert_slice %[[M]] into %[[L]][256, 0] [44, 512] [1, 1]
// CHECK:         return %[[R]]
func.func @tail(%x: tensor<300x512xf32>) -> tensor<300x512xf32> {
  %e = tensor.empty() : tensor<300x512xf32>
  %a = linalg.exp ins(%x : tensor<300x512xf32>) outs(%e : tensor<300x512xf32>) -> tensor<300x512xf32>
  %b = linalg.mul ins(%a, %x : tensor<300x512xf32>, tensor<300x512xf32>) outs(%e : tensor<300x512xf32>) -> tensor<300x512xf32>
  return %b : tensor<300x512xf32>
}

// Rows of 128 KiB are cut into pieces of 16 KiB, since nothing needs them whole.
// CHECK-LABEL: func.func @cut
// CHECK:         scf.for %[[I:[a-z0-9]+]] =
// CHECK-NEXT:      arith.constant 0
// CHECK-NEXT:      arith.constant 32768
// CHECK-NEXT:      arith.constant 4096
// CHECK-NEXT:      scf.for %[[J:[a-z0-9]+]] =
// CHECK:             tensor.extract_slice %arg0[%[[I]], %[[J]]] [128, 4096]
func.func @cut(%x: tensor<256x32768xf32>) -> tensor<256x32768xf32> {
  %e = tensor.empty() : tensor<256x32768xf32>
  %a = linalg.exp ins(%x : tensor<256x32768xf32>) outs(%e : tensor<256x32768xf32>) -> tensor<256x32768xf32>
  %b = linalg.mul ins(%a, %x : tensor<256x32768xf32>, tensor<256x32768xf32>) outs(%e : tensor<256x32768xf32>) -> tensor<256x32768xf32>
  return %b : tensor<256x32768xf32>
}

// One tile of rows has no loop that could be shared.
// CHECK-LABEL: func.func @one_tile
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @one_tile(%x: tensor<128x512xf32>) -> tensor<128x512xf32> {
  %e = tensor.empty() : tensor<128x512xf32>
  %a = linalg.exp ins(%x : tensor<128x512xf32>) outs(%e : tensor<128x512xf32>) -> tensor<128x512xf32>
  %b = linalg.mul ins(%a, %x : tensor<128x512xf32>, tensor<128x512xf32>) outs(%e : tensor<128x512xf32>) -> tensor<128x512xf32>
  return %b : tensor<128x512xf32>
}
