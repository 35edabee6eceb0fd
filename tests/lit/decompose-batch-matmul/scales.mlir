// A number by which a product is multiplied goes to an operand that is a product itself, and smaller.
// RUN: nkx opt --decompose-batch-matmul --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// REMARK: "text":"the operand of the product is multiplied instead"
#same = affine_map<(d0, d1) -> (d0, d1)>

// The number is defined after the product.
// CHECK-LABEL: func.func @left(
// CHECK:         %[[T:.*]] = linalg.matmul ins(%arg0, %arg1 :
// CHECK:         %[[C:.*]] = arith.constant 2.0
// CHECK:         %[[U:.*]] = linalg.generic {{.*}} ins(%[[T]] : tensor<64x16xf32>) outs(%{{.*}} : tensor<64x16xf32>)
// CHECK:           arith.mulf %{{.*}}, %[[C]]
// CHECK:         %[[P:.*]] = linalg.matmul ins(%[[U]], %arg2 :
// CHECK-NEXT:    return %[[P]]
func.func @left(%x: tensor<64x200xf32>, %a: tensor<200x16xf32>, %b: tensor<16x300xf32>) -> tensor<64x300xf32> {
  %e = tensor.empty() : tensor<64x16xf32>
  %t = linalg.matmul ins(%x, %a : tensor<64x200xf32>, tensor<200x16xf32>) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %f = tensor.empty() : tensor<64x300xf32>
  %p = linalg.matmul ins(%t, %b : tensor<64x16xf32>, tensor<16x300xf32>) outs(%f : tensor<64x300xf32>) -> tensor<64x300xf32>
  %c = arith.constant 2.0 : f32
  %s = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x300xf32>) outs(%f : tensor<64x300xf32>) {
  ^bb0(%l: f32, %o: f32):
    %y = arith.mulf %l, %c : f32
    linalg.yield %y : f32
  } -> tensor<64x300xf32>
  return %s : tensor<64x300xf32>
}

// Operands that are given would be read, multiplied and stored.
// CHECK-LABEL: func.func @given(
// CHECK:         %[[P:.*]] = linalg.matmul ins(%arg0, %arg1 :
// CHECK:         linalg.generic {{.*}} ins(%[[P]] :
func.func @given(%x: tensor<64x16xf32>, %b: tensor<16x300xf32>) -> tensor<64x300xf32> {
  %f = tensor.empty() : tensor<64x300xf32>
  %p = linalg.matmul ins(%x, %b : tensor<64x16xf32>, tensor<16x300xf32>) outs(%f : tensor<64x300xf32>) -> tensor<64x300xf32>
  %c = arith.constant 2.0 : f32
  %s = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x300xf32>) outs(%f : tensor<64x300xf32>) {
  ^bb0(%l: f32, %o: f32):
    %y = arith.mulf %l, %c : f32
    linalg.yield %y : f32
  } -> tensor<64x300xf32>
  return %s : tensor<64x300xf32>
}

// A factor that could make the operand infinite stays.
// CHECK-LABEL: func.func @large(
// CHECK:         linalg.matmul
// CHECK:         %[[P:.*]] = linalg.matmul
// CHECK:         linalg.generic {{.*}} ins(%[[P]] :
func.func @large(%x: tensor<64x200xf32>, %a: tensor<200x16xf32>, %b: tensor<16x300xf32>) -> tensor<64x300xf32> {
  %e = tensor.empty() : tensor<64x16xf32>
  %t = linalg.matmul ins(%x, %a : tensor<64x200xf32>, tensor<200x16xf32>) outs(%e : tensor<64x16xf32>) -> tensor<64x16xf32>
  %f = tensor.empty() : tensor<64x300xf32>
  %p = linalg.matmul ins(%t, %b : tensor<64x16xf32>, tensor<16x300xf32>) outs(%f : tensor<64x300xf32>) -> tensor<64x300xf32>
  %c = arith.constant 1.0e30 : f32
  %s = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x300xf32>) outs(%f : tensor<64x300xf32>) {
  ^bb0(%l: f32, %o: f32):
    %y = arith.mulf %l, %c : f32
    linalg.yield %y : f32
  } -> tensor<64x300xf32>
  return %s : tensor<64x300xf32>
}
