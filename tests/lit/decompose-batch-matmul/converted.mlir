// An operand that is converted for a product alone is converted in the loops, matrix by matrix; what something else reads is not.
// RUN: nkx opt --decompose-batch-matmul %s | FileCheck %s

// CHECK-LABEL: func.func @converted
// CHECK:       %[[LEFT:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<4x8x16xbf16>)
// CHECK-NOT:   -> tensor<4x16x32xf32>
// CHECK:       scf.for
// CHECK:         %[[B:.*]] = tensor.extract_slice %arg1{{.*}} tensor<4x16x32xbf16> to tensor<16x32xbf16>
// CHECK:         %[[C:.*]] = linalg.generic {{.*}} ins(%[[B]] : tensor<16x32xbf16>) outs(%{{.*}} : tensor<16x32xf32>)
// CHECK:         linalg.matmul {{.*}}ins(%{{.*}}, %[[C]] : tensor<8x16xf32>, tensor<16x32xf32>)
// CHECK:       return %{{.*}}, %[[LEFT]]
#id = affine_map<(a, b, c) -> (a, b, c)>
func.func @converted(%a: tensor<4x8x16xbf16>, %b: tensor<4x16x32xbf16>) -> (tensor<4x8x32xf32>, tensor<4x8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<4x8x16xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : tensor<4x8x16xbf16>) outs(%ea : tensor<4x8x16xf32>) {
  ^bb0(%i: bf16, %o: f32):
    %v = arith.extf %i : bf16 to f32
    linalg.yield %v : f32
  } -> tensor<4x8x16xf32>
  %eb = tensor.empty() : tensor<4x16x32xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%b : tensor<4x16x32xbf16>) outs(%eb : tensor<4x16x32xf32>) {
  ^bb0(%i: bf16, %o: f32):
    %v = arith.extf %i : bf16 to f32
    linalg.yield %v : f32
  } -> tensor<4x16x32xf32>
  %e = tensor.empty() : tensor<4x8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
  %r = linalg.batch_matmul ins(%x, %y : tensor<4x8x16xf32>, tensor<4x16x32xf32>) outs(%f : tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
  return %r, %x : tensor<4x8x32xf32>, tensor<4x8x16xf32>
}
