// Outer products of many short vectors are multiplied in rows that fill the partitions.
// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s

// 64 vectors fill half of the partitions: each is in two parts.
// CHECK-LABEL: func.func @many
// CHECK-DAG: %[[A:.*]] = tensor.expand_shape %{{.*}} into tensor<128x64x1xf32>
// CHECK-DAG: tensor<64x2x128xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<128x64x1xf32>, tensor<128x1x128xf32>)
// CHECK: arith.mulf
// CHECK-NOT: linalg.batch_matmul
func.func @many(%a: tensor<64x128x1xf32>, %b: tensor<64x1x128xf32>) -> tensor<64x128x128xf32> {
  %e = tensor.empty() : tensor<64x128x128xf32>
  %r = linalg.batch_matmul ins(%a, %b : tensor<64x128x1xf32>, tensor<64x1x128xf32>) outs(%e : tensor<64x128x128xf32>) -> tensor<64x128x128xf32>
  return %r : tensor<64x128x128xf32>
}

// Differences of the columns and the rows, in this order.
// CHECK-LABEL: func.func @differences
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<256x1x64xf32>, tensor<256x32x1xf32>)
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: arith.subf %[[X]], %[[Y]]
func.func @differences(%a: tensor<256x32xf32>, %b: tensor<256x64xf32>) -> tensor<256x32x64xf32> {
  %e = tensor.empty() : tensor<256x32x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
         iterator_types = ["parallel", "parallel", "parallel"]} ins(%b, %a : tensor<256x64xf32>, tensor<256x32xf32>) outs(%e : tensor<256x32x64xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %v = arith.subf %x, %y : f32
    linalg.yield %v : f32
  } -> tensor<256x32x64xf32>
  return %r : tensor<256x32x64xf32>
}

// Few large ones stay products, and so do sums of two products.
// CHECK-LABEL: func.func @few
// CHECK: linalg.batch_matmul
// CHECK: linalg.batch_matmul
func.func @few(%a: tensor<8x512x1xf32>, %b: tensor<8x1x512xf32>, %c: tensor<64x128x2xf32>, %d: tensor<64x2x128xf32>)
    -> (tensor<8x512x512xf32>, tensor<64x128x128xf32>) {
  %e = tensor.empty() : tensor<8x512x512xf32>
  %f = tensor.empty() : tensor<64x128x128xf32>
  %r = linalg.batch_matmul ins(%a, %b : tensor<8x512x1xf32>, tensor<8x1x512xf32>) outs(%e : tensor<8x512x512xf32>) -> tensor<8x512x512xf32>
  %s = linalg.batch_matmul ins(%c, %d : tensor<64x128x2xf32>, tensor<64x2x128xf32>) outs(%f : tensor<64x128x128xf32>) -> tensor<64x128x128xf32>
  return %r, %s : tensor<8x512x512xf32>, tensor<64x128x128xf32>
}
