// RUN: nkx opt --infer-layout --fuse-row-tiles %s | FileCheck %s

// A knob of one of them: the loops stay apart, and no later pass sees that a knob was given.
// CHECK-LABEL: func.func @knob
// CHECK-NOT:     scf.for
// CHECK-NOT:     given
// CHECK:         return
func.func @knob(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512x512xf32>
  %a = linalg.exp ins(%x : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  "nkipy.tile_op"(%a) {loop_tile_size = array<i64: 128, 256>} : (tensor<512x512xf32>) -> ()
  %b = linalg.mul ins(%a, %x : tensor<512x512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %b : tensor<512x512xf32>
}

// knob.fuse(b, never=True): b keeps its loops, also when its neighbours are fused with each other.
// CHECK-LABEL: func.func @never
// CHECK:         %[[A:.*]] = linalg.exp ins(%arg0 : tensor<512x512xf32>)
// CHECK:         "nkipy.fuse_op"(%[[A]], %[[A]]) {never}
// CHECK:         scf.for
// CHECK:           linalg.tanh
// CHECK:           linalg.mul
// CHECK:         return
func.func @never(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512x512xf32>
  %a = linalg.exp ins(%x : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  "nkipy.fuse_op"(%a, %a) {never} : (tensor<512x512xf32>, tensor<512x512xf32>) -> ()
  %b = linalg.tanh ins(%a : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %c = linalg.mul ins(%a, %b : tensor<512x512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %c : tensor<512x512xf32>
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
func.func @between(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512x512xf32>
  %a = linalg.exp ins(%x : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %b = linalg.add ins(%a, %x : tensor<512x512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %m = linalg.matmul ins(%x, %b : tensor<512x512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %c = linalg.tanh ins(%m : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %d = linalg.sub ins(%c, %b : tensor<512x512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %d : tensor<512x512xf32>
}

// Between two operations of the first loop there is a product that reads one of them: it comes after the loop.
// CHECK-LABEL: func.func @moved
// CHECK:         %[[L:.*]]:2 = scf.for
// CHECK:           linalg.exp
// CHECK:           linalg.add
// CHECK:         }
// CHECK:         linalg.matmul ins(%arg0, %[[L]]#0 :
// CHECK:         return
func.func @moved(%x: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512x512xf32>) {
  %e = tensor.empty() : tensor<512x512xf32>
  %a = linalg.exp ins(%x : tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %m = linalg.matmul ins(%x, %a : tensor<512x512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  %b = linalg.add ins(%a, %x : tensor<512x512xf32>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %m, %b : tensor<512x512xf32>, tensor<512x512xf32>
}

// A product that is only rounded: round-products does that as it leaves PSUM.  What reads it is fused.
// CHECK-LABEL: func.func @rounded
// CHECK:         linalg.matmul
// CHECK:         %[[R:.*]] = linalg.generic
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.truncf
// CHECK:         scf.for
// CHECK:           %[[S:.*]] = tensor.extract_slice %[[R]]
// CHECK:           linalg.tanh
// CHECK:           linalg.mul
// CHECK:         return
#id = affine_map<(i, j) -> (i, j)>
func.func @rounded(%x: tensor<8192x4096xbf16>, %y: tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16> {
  %f = tensor.empty() : tensor<8192x4096xf32>
  %e = tensor.empty() : tensor<8192x4096xbf16>
  %p = linalg.matmul ins(%x, %y : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%f : tensor<8192x4096xf32>) -> tensor<8192x4096xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<8192x4096xf32>) outs(%e : tensor<8192x4096xbf16>) {
  ^bb0(%a: f32, %z: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<8192x4096xbf16>
  %t = linalg.tanh ins(%r : tensor<8192x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
  %m = linalg.mul ins(%r, %t : tensor<8192x4096xbf16>, tensor<8192x4096xbf16>) outs(%e : tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
  return %m : tensor<8192x4096xbf16>
}

// The product is read in f32, too: its rounding is fused with the other reader.
// CHECK-LABEL: func.func @rounded_and_read
// CHECK:         linalg.matmul
// CHECK-NOT:     linalg.generic
// CHECK:         scf.for
// CHECK:           arith.truncf
// CHECK:           linalg.tanh
// CHECK:         return
func.func @rounded_and_read(%x: tensor<8192x4096xbf16>, %y: tensor<4096x4096xbf16>) -> (tensor<8192x4096xbf16>, tensor<8192x4096xf32>) {
  %f = tensor.empty() : tensor<8192x4096xf32>
  %e = tensor.empty() : tensor<8192x4096xbf16>
  %p = linalg.matmul ins(%x, %y : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) outs(%f : tensor<8192x4096xf32>) -> tensor<8192x4096xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<8192x4096xf32>) outs(%e : tensor<8192x4096xbf16>) {
  ^bb0(%a: f32, %z: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<8192x4096xbf16>
  %t = linalg.tanh ins(%p : tensor<8192x4096xf32>) outs(%f : tensor<8192x4096xf32>) -> tensor<8192x4096xf32>
  return %r, %t : tensor<8192x4096xbf16>, tensor<8192x4096xf32>
}
