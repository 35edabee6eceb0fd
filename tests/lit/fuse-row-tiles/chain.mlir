// RUN: nkx opt --infer-layout --fuse-row-tiles %s | FileCheck %s

// Two operations become one loop, which computes two tiles of rows side by side: the operand is copied once to SBUF, the value
// between them is a tile in SBUF, and only the result is inserted into the whole value, which keeps its layout.
// CHECK-LABEL: func.func @chain
// CHECK:         %[[ALL:.*]] = tensor.empty() : tensor<512x512xf32>
// CHECK:         %[[OUT:.*]] = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[C:.*]] = %[[ALL]]) -> (tensor<512x512xf32>) {
// CHECK:           %[[I2:.*]] = arith.addi %[[I]],
// CHECK-NEXT:      %[[S:.*]] = tensor.extract_slice %arg0[%[[I]], 0] [128, 512] [1, 1]
// CHECK-NEXT:      %[[A:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<128x512xf32>
// CHECK-NEXT:      %[[X:.*]] = bufferization.materialize_in_destination %[[S]] in %[[A]]
// CHECK-NEXT:      %[[B:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32}
// CHECK-NEXT:      %[[E:.*]] = linalg.exp ins(%[[X]] : tensor<128x512xf32>) outs(%[[B]] : tensor<128x512xf32>)
// CHECK-NEXT:      tensor.extract_slice %arg0[%[[I2]], 0] [128, 512] [1, 1]
// CHECK:           %[[E2:.*]] = linalg.exp
// CHECK:           %[[M:.*]] = linalg.mul ins(%[[E]], %[[X]] :
// CHECK-NEXT:      %[[R:.*]] = tensor.insert_slice %[[M]] into %[[C]][%[[I]], 0] [128, 512] [1, 1]
// CHECK:           %[[M2:.*]] = linalg.mul ins(%[[E2]],
// CHECK-NEXT:      %[[R2:.*]] = tensor.insert_slice %[[M2]] into %[[R]][%[[I2]], 0] [128, 512] [1, 1]
// CHECK-NEXT:      scf.yield %[[R2]]
// CHECK-NEXT:    }
// CHECK-NEXT:    "nkipy.layout"(%[[OUT]]) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 512>}
// CHECK-NEXT:    return %[[OUT]]
func.func @chain(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512x512xf32>
  %a = linalg.exp ins(%x : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %b = linalg.mul ins(%a, %x : tensor<512x512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %b : tensor<512x512xf32>
}

// A tail of 44 rows comes after the loop; both parts write one value.
// CHECK-LABEL: func.func @tail
// CHECK:         %[[N:.*]] = arith.constant 512 : index
// CHECK:         %[[L:.*]] = scf.for
// CHECK:         tensor.extract_slice %arg0[512, 0] [44, 512]
// CHECK:         %[[M:.*]] = linalg.mul {{.*}} tensor<44x512xf32>
// CHECK:         %[[R:.*]] = tensor.insert_slice %[[M]] into %[[L]][512, 0] [44, 512] [1, 1]
// CHECK:         return %[[R]]
func.func @tail(%x: tensor<556x512xf32>) -> tensor<556x512xf32> {
  %e = tensor.empty() : tensor<556x512xf32>
  %a = linalg.exp ins(%x : tensor<556x512xf32>) outs(%e : tensor<556x512xf32>) -> tensor<556x512xf32>
  %b = linalg.mul ins(%a, %x : tensor<556x512xf32>, tensor<556x512xf32>) outs(%e : tensor<556x512xf32>) -> tensor<556x512xf32>
  return %b : tensor<556x512xf32>
}

// Rows of 128 KiB are cut into pieces of 16 KiB, since nothing needs them whole.  The rows are the inner loop.
// CHECK-LABEL: func.func @cut
// CHECK:         arith.constant 32768
// CHECK-NEXT:    arith.constant 4096
// CHECK-NEXT:    scf.for %[[J:[a-z0-9]+]] =
// CHECK-NEXT:      arith.constant 0
// CHECK-NEXT:      arith.constant 256
// CHECK-NEXT:      arith.constant 128
// CHECK-NEXT:      scf.for %[[I:[a-z0-9]+]] =
// CHECK:             tensor.extract_slice %arg0[%[[I]], %[[J]]] [128, 4096]
func.func @cut(%x: tensor<256x32768xf32>) -> tensor<256x32768xf32> {
  %e = tensor.empty() : tensor<256x32768xf32>
  %a = linalg.exp ins(%x : tensor<256x32768xf32>) outs(%e : tensor<256x32768xf32>) -> tensor<256x32768xf32>
  %b = linalg.mul ins(%a, %x : tensor<256x32768xf32>, tensor<256x32768xf32>) outs(%e : tensor<256x32768xf32>) -> tensor<256x32768xf32>
  return %b : tensor<256x32768xf32>
}

// A loop with more values than transfers has narrow pieces, so that each value of two tiles has room twice.
// CHECK-LABEL: func.func @many_values
// CHECK:         scf.for %[[J:[a-z0-9]+]] =
// CHECK:           scf.for %[[I:[a-z0-9]+]] =
// CHECK:             tensor.extract_slice %arg0[%[[I]], %[[J]]] [128, 1024]
// CHECK:             tensor.extract_slice %arg0[%{{.*}}, %[[J]]] [128, 1024]
func.func @many_values(%x: tensor<512x4096xf32>) -> tensor<512x4096xf32> {
  %e = tensor.empty() : tensor<512x4096xf32>
  %a = linalg.exp ins(%x : tensor<512x4096xf32>) outs(%e : tensor<512x4096xf32>) -> tensor<512x4096xf32>
  %b = linalg.mul ins(%a, %x : tensor<512x4096xf32>, tensor<512x4096xf32>) outs(%e : tensor<512x4096xf32>) -> tensor<512x4096xf32>
  %c = linalg.add ins(%b, %x : tensor<512x4096xf32>, tensor<512x4096xf32>) outs(%e : tensor<512x4096xf32>) -> tensor<512x4096xf32>
  %d = linalg.exp ins(%c : tensor<512x4096xf32>) outs(%e : tensor<512x4096xf32>) -> tensor<512x4096xf32>
  return %d : tensor<512x4096xf32>
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
