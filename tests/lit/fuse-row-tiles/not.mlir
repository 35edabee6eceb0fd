// RUN: nkx opt --infer-layout --fuse-row-tiles %s | FileCheck %s

// A knob of one of them: the loops stay apart, and no later pass sees that a knob was given.
// CHECK-LABEL: func.func @knob
// CHECK-NOT:     scf.for
// CHECK-NOT:     given
// CHECK:         return
func.func @knob(%x: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %e = tensor.empty() : tensor<256x512xf32>
  %a = linalg.exp ins(%x : tensor<256x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  "nkipy.tile_op"(%a) {loop_tile_size = array<i64: 128, 256>} : (tensor<256x512xf32>) -> ()
  %b = linalg.mul ins(%a, %x : tensor<256x512xf32>, tensor<256x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %b : tensor<256x512xf32>
}

// knob.fuse(b, never=True): b keeps its loops, also when its neighbours are fused with each other.
// CHECK-LABEL: func.func @never
// CHECK:         %[[A:.*]] = linalg.exp ins(%arg0 : tensor<256x512xf32>)
// CHECK:         "nkipy.fuse_op"(%[[A]], %[[A]]) {never}
// CHECK:         scf.for
// CHECK:           linalg.tanh
// CHECK:           linalg.mul
// CHECK:         return
func.func @never(%x: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %e = tensor.empty() : tensor<256x512xf32>
  %a = linalg.exp ins(%x : tensor<256x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  "nkipy.fuse_op"(%a, %a) {never} : (tensor<256x512xf32>, tensor<256x512xf32>) -> ()
  %b = linalg.tanh ins(%a : tensor<256x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  %c = linalg.mul ins(%a, %b : tensor<256x512xf32>, tensor<256x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %c : tensor<256x512xf32>
}

// A product between two operations needs all rows of the first: two loops, and the product between them.
// CHECK-LABEL: func.func @between
// CHECK:         scf.for
// CHECK:           linalg.exp
// CHECK:           linalg.add
// CHECK:         linalg.matmul
// CHECK:         scf.for
// CHECK:           linalg.tanh
// CHECK:           linalg.sub
// CHECK:         return
func.func @between(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %a = linalg.exp ins(%x : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %b = linalg.add ins(%a, %x : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %m = linalg.matmul ins(%x, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %c = linalg.tanh ins(%m : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %d = linalg.sub ins(%c, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %d : tensor<256x256xf32>
}

// Between two operations of the first loop there is a product that reads one of them: it comes after the loop.
// CHECK-LABEL: func.func @moved
// CHECK:         %[[L:.*]]:2 = scf.for
// CHECK:           linalg.exp
// CHECK:           linalg.add
// CHECK:         }
// CHECK:         linalg.matmul ins(%arg0, %[[L]]#0 :
// CHECK:         return
func.func @moved(%x: tensor<256x256xf32>) -> (tensor<256x256xf32>, tensor<256x256xf32>) {
  %e = tensor.empty() : tensor<256x256xf32>
  %a = linalg.exp ins(%x : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %m = linalg.matmul ins(%x, %a : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %b = linalg.add ins(%a, %x : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %m, %b : tensor<256x256xf32>, tensor<256x256xf32>
}
