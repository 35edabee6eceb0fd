// RUN: nkx opt --remove-redundant-zero-fill %s | FileCheck %s

// The zero that a matmul starts from goes, and with it the constant.
// CHECK-LABEL: func.func @matmul(
// CHECK-NEXT:    %[[E:.*]] = tensor.empty() : tensor<256x512xf32>
// CHECK-NEXT:    linalg.matmul ins(%arg0, %arg1 : {{.*}}) outs(%[[E]] : tensor<256x512xf32>)
// CHECK-NEXT:    return
func.func @matmul(%a: tensor<256x128xf32>, %b: tensor<128x512xf32>) -> tensor<256x512xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x512xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  %r = linalg.matmul ins(%a, %b : tensor<256x128xf32>, tensor<128x512xf32>) outs(%f : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %r : tensor<256x512xf32>
}

// -0.0 counts as zero, transposed and batched products count as matmuls; each gets an empty tensor of its own.
// CHECK-LABEL: func.func @two_products(
// CHECK-NEXT:    %[[E:.*]] = tensor.empty() : tensor<2x4x4xbf16>
// CHECK-NEXT:    linalg.batch_matmul ins({{.*}}) outs(%[[E]] : tensor<2x4x4xbf16>)
// CHECK-NEXT:    %[[F:.*]] = tensor.empty() : tensor<2x4x4xbf16>
// CHECK-NEXT:    linalg.batch_matmul indexing_maps{{.*}} outs(%[[F]] : tensor<2x4x4xbf16>)
// CHECK-NEXT:    return
func.func @two_products(%a: tensor<2x4x4xbf16>) -> (tensor<2x4x4xbf16>, tensor<2x4x4xbf16>) {
  %z = arith.constant -0.0 : bf16
  %e = tensor.empty() : tensor<2x4x4xbf16>
  %f = linalg.fill ins(%z : bf16) outs(%e : tensor<2x4x4xbf16>) -> tensor<2x4x4xbf16>
  %r = linalg.batch_matmul ins(%a, %a : tensor<2x4x4xbf16>, tensor<2x4x4xbf16>) outs(%f : tensor<2x4x4xbf16>) -> tensor<2x4x4xbf16>
  %s = linalg.batch_matmul
    indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%r, %a : tensor<2x4x4xbf16>, tensor<2x4x4xbf16>) outs(%f : tensor<2x4x4xbf16>) -> tensor<2x4x4xbf16>
  return %r, %s : tensor<2x4x4xbf16>, tensor<2x4x4xbf16>
}

// In a loop it is a new one in each round, so that the product of the round before is not found in it.
// CHECK-LABEL: func.func @in_a_loop(
// CHECK-NOT:     tensor.empty
// CHECK:         scf.for
// CHECK-NEXT:      %[[E:.*]] = tensor.empty() : tensor<4x4xf32>
// CHECK-NEXT:      linalg.matmul ins({{.*}}) outs(%[[E]] : tensor<4x4xf32>)
func.func @in_a_loop(%a: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> tensor<4x4xf32> {
    %y = linalg.matmul ins(%x, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %y : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}

// A fill nobody reads goes; integer zeros count.
// CHECK-LABEL: func.func @unused(
// CHECK-NEXT:    return
func.func @unused() {
  %z = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4xi32>
  %f = linalg.fill ins(%z : i32) outs(%e : tensor<4xi32>) -> tensor<4xi32>
  return
}
