// RUN: nkx opt --infer-layout --fuse-row-tiles %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// A transpose whose result goes to HBM takes the rows from the loop that computes them: its tiles are columns of the result.

// CHECK-LABEL: func.func @turned
// CHECK:         %[[OUT:.*]] = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[C:.*]] = %{{.*}}) -> (tensor<512x640xf32>) {
// CHECK:           %[[X:.*]] = tensor.extract_slice %arg0[%[[I]], 0] [128, 512] [1, 1]
// CHECK:           %[[E:.*]] = linalg.exp {{.*}} -> tensor<128x512xf32>
// CHECK:           %[[F:.*]] = linalg.exp {{.*}} -> tensor<128x512xf32>
// Both tiles of the round lie side by side in what is stored.
// CHECK:           %[[B:.*]] = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<512x256xf32>
// CHECK-NEXT:      %[[L:.*]] = tensor.extract_slice %[[B]][0, 0] [512, 128] [1, 1]
// CHECK-NEXT:      %[[T:.*]] = linalg.transpose ins(%[[E]] : tensor<128x512xf32>) outs(%[[L]] : tensor<512x128xf32>) permutation = [1, 0]
// CHECK-NEXT:      %[[M:.*]] = tensor.insert_slice %[[T]] into %[[B]][0, 0] [512, 128] [1, 1]
// CHECK-NEXT:      %[[R:.*]] = tensor.extract_slice %[[M]][0, 128] [512, 128] [1, 1]
// CHECK-NEXT:      %[[U:.*]] = linalg.transpose ins(%[[F]] : tensor<128x512xf32>) outs(%[[R]] : tensor<512x128xf32>) permutation = [1, 0]
// CHECK-NEXT:      %[[N:.*]] = tensor.insert_slice %[[U]] into %[[M]][0, 128] [512, 128] [1, 1]
// CHECK-NEXT:      tensor.insert_slice %[[N]] into %[[C]][0, %[[I]]] [512, 256] [1, 1]
// CHECK:         linalg.transpose {{.*}} outs(%{{.*}} : tensor<512x128xf32>)
// CHECK-NOT:     linalg.transpose
// CHECK:         return
// REMARK:      2 operations in one loop over 5 tiles of 128 rows, two at a time
func.func @turned(%x: tensor<640x512xf32>) -> tensor<512x640xf32> {
  %e = tensor.empty() : tensor<640x512xf32>
  %a = linalg.exp ins(%x : tensor<640x512xf32>) outs(%e : tensor<640x512xf32>) -> tensor<640x512xf32>
  %t = tensor.empty() : tensor<512x640xf32>
  %b = linalg.transpose ins(%a : tensor<640x512xf32>) outs(%t : tensor<512x640xf32>) permutation = [1, 0]
  return %b : tensor<512x640xf32>
}

// Pieces of long rows are whole blocks of partitions: 4096 of 8192 columns.
// CHECK-LABEL: func.func @pieces
// CHECK:         linalg.transpose ins(%{{.*}} : tensor<128x4096xf32>) outs(%{{.*}} : tensor<4096x128xf32>)
func.func @pieces(%x: tensor<256x8192xf32>) -> tensor<8192x256xf32> {
  %e = tensor.empty() : tensor<256x8192xf32>
  %a = linalg.exp ins(%x : tensor<256x8192xf32>) outs(%e : tensor<256x8192xf32>) -> tensor<256x8192xf32>
  %t = tensor.empty() : tensor<8192x256xf32>
  %b = linalg.transpose ins(%a : tensor<256x8192xf32>) outs(%t : tensor<8192x256xf32>) permutation = [1, 0]
  return %b : tensor<8192x256xf32>
}

// What reads the result has other rows, and so another loop.
// CHECK-LABEL: func.func @read_again
// CHECK:         scf.for
// CHECK:           linalg.exp
// CHECK:           linalg.transpose
// CHECK:         }
// CHECK:         linalg.mul
func.func @read_again(%x: tensor<4096x4096xf32>, %y: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %e = tensor.empty() : tensor<4096x4096xf32>
  %a = linalg.exp ins(%x : tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %b = linalg.transpose ins(%a : tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>) permutation = [1, 0]
  %c = linalg.mul ins(%b, %y : tensor<4096x4096xf32>, tensor<4096x4096xf32>) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %c : tensor<4096x4096xf32>
}

// The Tensor engine does not pass integers through: this transpose keeps loops of its own.
// CHECK-LABEL: func.func @stay
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @stay(%x: tensor<384x512xi32>) -> tensor<512x384xi32> {
  %e = tensor.empty() : tensor<384x512xi32>
  %a = linalg.add ins(%x, %x : tensor<384x512xi32>, tensor<384x512xi32>) outs(%e : tensor<384x512xi32>) -> tensor<384x512xi32>
  %t = tensor.empty() : tensor<512x384xi32>
  %b = linalg.transpose ins(%a : tensor<384x512xi32>) outs(%t : tensor<512x384xi32>) permutation = [1, 0]
  return %b : tensor<512x384xi32>
}

// 300 columns are two blocks of partitions and a part of one, each of which is transposed alone.
// CHECK-LABEL: func.func @parts
// CHECK-COUNT-4: linalg.transpose ins(%{{.*}} : tensor<128x128xf32>)
// CHECK-COUNT-2: linalg.transpose ins(%{{.*}} : tensor<128x44xf32>) outs(%{{.*}} : tensor<44x128xf32>)
// CHECK:         tensor.insert_slice %{{.*}} into %{{.*}}[256, 0] [44, 256] [1, 1]
func.func @parts(%y: tensor<384x300xf32>) -> tensor<300x384xf32> {
  %f = tensor.empty() : tensor<384x300xf32>
  %c = linalg.exp ins(%y : tensor<384x300xf32>) outs(%f : tensor<384x300xf32>) -> tensor<384x300xf32>
  %u = tensor.empty() : tensor<300x384xf32>
  %d = linalg.transpose ins(%c : tensor<384x300xf32>) outs(%u : tensor<300x384xf32>) permutation = [1, 0]
  return %d : tensor<300x384xf32>
}

// What a loop over rows reads of a transpose, it loads as columns and transposes; planes stay planes.
// CHECK-LABEL: func.func @taken
// CHECK:         scf.for %[[I:[a-z0-9_]+]] = %{{.*}} -> (tensor<4x512x256xf32>) {
// CHECK:           scf.for %[[P:[a-z0-9_]+]] = %{{.*}} -> (tensor<4x512x256xf32>) {
// CHECK:             %[[X:.*]] = tensor.extract_slice %arg0[%[[P]], 0, %[[I]]] [1, 256, 256] [1, 1, 1] : tensor<4x256x512xf32> to tensor<256x256xf32>
// CHECK:             bufferization.materialize_in_destination %[[X]]
// CHECK-COUNT-2:     linalg.transpose ins(%{{.*}} : tensor<256x128xf32>) outs(%{{.*}} : tensor<128x256xf32>) permutation = [1, 0]
// CHECK:             linalg.exp
// CHECK-NOT:     linalg.transpose
// CHECK:         return
func.func @taken(%x: tensor<4x256x512xf32>) -> tensor<4x512x256xf32> {
  %e = tensor.empty() : tensor<4x512x256xf32>
  %t = linalg.transpose ins(%x : tensor<4x256x512xf32>) outs(%e : tensor<4x512x256xf32>) permutation = [0, 2, 1]
  %a = linalg.exp ins(%t : tensor<4x512x256xf32>) outs(%e : tensor<4x512x256xf32>) -> tensor<4x512x256xf32>
  %b = linalg.mul ins(%a, %t : tensor<4x512x256xf32>, tensor<4x512x256xf32>) outs(%e : tensor<4x512x256xf32>) -> tensor<4x512x256xf32>
  return %b : tensor<4x512x256xf32>
}
