// The product of a long row with a column is a sum of products.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: 262144 products are added up along rows
// CHECK-LABEL: func.func @long
// CHECK-NOT: linalg.matmul
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%{{.*}} : tensor<128x2048xf32>) outs(%{{.*}} : tensor<128x1xf32>)
// CHECK: return
func.func @long(%a: tensor<1x262144xf32>, %b: tensor<262144x1xf32>) -> tensor<1x1xf32> {
  %e = tensor.empty() : tensor<1x1xf32>
  %m = linalg.matmul ins(%a, %b : tensor<1x262144xf32>, tensor<262144x1xf32>) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %m : tensor<1x1xf32>
}

// Short ones, those of other types, and a product that adds to a value stay.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-3: linalg.matmul
func.func @stay(%a: tensor<1x65536xf32>, %b: tensor<65536x1xf32>, %c: tensor<1x262144xbf16>, %d: tensor<262144x1xbf16>, %p: tensor<1x262144xf32>, %q: tensor<262144x1xf32>, %i: tensor<1x1xf32>)
    -> (tensor<1x1xf32>, tensor<1x1xbf16>, tensor<1x1xf32>) {
  %e = tensor.empty() : tensor<1x1xf32>
  %m = linalg.matmul ins(%a, %b : tensor<1x65536xf32>, tensor<65536x1xf32>) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %f = tensor.empty() : tensor<1x1xbf16>
  %n = linalg.matmul ins(%c, %d : tensor<1x262144xbf16>, tensor<262144x1xbf16>) outs(%f : tensor<1x1xbf16>) -> tensor<1x1xbf16>
  %o = linalg.matmul ins(%p, %q : tensor<1x262144xf32>, tensor<262144x1xf32>) outs(%i : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %m, %n, %o : tensor<1x1xf32>, tensor<1x1xbf16>, tensor<1x1xf32>
}
