// A batch has one tile of queries: two batches are computed beside each other, the scores of the second one before what the result
// of the first one needs.
// RUN: nkx opt --flash-attention %s | FileCheck %s
// RUN: nkx opt --remarks --flash-attention %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: attention in blocks of 128 of 128 queries of two batches and all 50 keys

#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row3 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>

// CHECK-LABEL: func.func @pairs(
// CHECK:         scf.for %[[I:.*]] = %c0{{.*}} to %c4{{.*}} iter_args
// CHECK:           %[[A:.*]] = arith.muli %[[I]], %c2
// CHECK:           %[[B:.*]] = arith.addi %[[A]], %c1
// CHECK:           tensor.extract_slice %arg0[%[[A]], 0, 0] [1, 128, 64]
// CHECK:           linalg.exp
// CHECK:           tensor.extract_slice %arg0[%[[B]], 0, 0] [1, 128, 64]
// CHECK:           linalg.exp
// CHECK:           tensor.insert_slice {{.*}}[%[[A]], 0, 0] [1, 128, 64]
// CHECK:           tensor.insert_slice {{.*}}[%[[B]], 0, 0] [1, 128, 64]
func.func @pairs(%q: tensor<8x128x64xf32>, %k: tensor<8x64x50xf32>, %v: tensor<8x50x64xf32>) -> tensor<8x128x64xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<8x128x50xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<8x128x64xf32>, tensor<8x64x50xf32>) outs(%es : tensor<8x128x50xf32>) -> tensor<8x128x50xf32>
  %ee = tensor.empty() : tensor<8x128x50xf32>
  %e = linalg.exp ins(%s : tensor<8x128x50xf32>) outs(%ee : tensor<8x128x50xf32>) -> tensor<8x128x50xf32>
  %el = tensor.empty() : tensor<8x128x1xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%el : tensor<8x128x1xf32>) -> tensor<8x128x1xf32>
  %l = linalg.generic {indexing_maps = [#id3, #row3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%e : tensor<8x128x50xf32>) outs(%fl : tensor<8x128x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.addf %o, %x : f32
    linalg.yield %y : f32
  } -> tensor<8x128x1xf32>
  %p = linalg.generic {indexing_maps = [#id3, #row3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %l : tensor<8x128x50xf32>, tensor<8x128x1xf32>) outs(%ee : tensor<8x128x50xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %y = arith.mulf %x, %z : f32
    linalg.yield %y : f32
  } -> tensor<8x128x50xf32>
  %eo = tensor.empty() : tensor<8x128x64xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<8x128x50xf32>, tensor<8x50x64xf32>) outs(%eo : tensor<8x128x64xf32>) -> tensor<8x128x64xf32>
  return %o : tensor<8x128x64xf32>
}
