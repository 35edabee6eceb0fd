// Every second element of rows is read from a transpose of its pairs, which is made once, and written through one.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: read 2 elements apart: in rows on the chip
// CHECK-LABEL: func.func @read
// CHECK: %[[PAIRS:.*]] = tensor.expand_shape %arg0 {{.*}} into tensor<256x64x2xf32>
// CHECK: %[[TURNED:.*]] = linalg.generic {{.*}} ins(%[[PAIRS]] : tensor<256x64x2xf32>) outs(%{{.*}} : tensor<256x2x64xf32>)
// CHECK-DAG: tensor.extract_slice %[[TURNED]][0, 0, 0] [256, 1, 64] [1, 1, 1]
// CHECK-DAG: tensor.extract_slice %[[TURNED]][0, 1, 0] [256, 1, 64] [1, 1, 1]
func.func @read(%x: tensor<256x128xf32>) -> (tensor<256x64xf32>, tensor<256x64xf32>) {
  %a = tensor.extract_slice %x[0, 0] [256, 64] [1, 2] : tensor<256x128xf32> to tensor<256x64xf32>
  %b = tensor.extract_slice %x[0, 1] [256, 64] [1, 2] : tensor<256x128xf32> to tensor<256x64xf32>
  return %a, %b : tensor<256x64xf32>, tensor<256x64xf32>
}

// REMARK: written 2 elements apart: in rows on the chip
// CHECK-LABEL: func.func @written
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 0] [256, 1, 64] [1, 1, 1]
// CHECK: %[[BOTH:.*]] = tensor.insert_slice %{{.*}} into %[[FIRST]][0, 1, 0] [256, 1, 64] [1, 1, 1]
// CHECK: %[[TURNED:.*]] = linalg.generic {{.*}} ins(%[[BOTH]] : tensor<256x2x64xf32>) outs(%{{.*}} : tensor<256x64x2xf32>)
// CHECK: return %[[TURNED]]
func.func @written(%a: tensor<256x64x1xf32>, %b: tensor<256x64x1xf32>) -> tensor<256x64x2xf32> {
  %e = tensor.empty() : tensor<256x64x2xf32>
  %p = tensor.insert_slice %b into %e[0, 0, 1] [256, 64, 1] [1, 1, 1] : tensor<256x64x1xf32> into tensor<256x64x2xf32>
  %q = tensor.insert_slice %a into %p[0, 0, 0] [256, 64, 1] [1, 1, 1] : tensor<256x64x1xf32> into tensor<256x64x2xf32>
  return %q : tensor<256x64x2xf32>
}

// A place that is not written, one row, and few elements stay as they are.
// CHECK-LABEL: func.func @stay
// CHECK: tensor.insert_slice %arg0 into %arg1[0, 0, 1] [256, 64, 1] [1, 1, 1]
// CHECK: tensor.extract_slice %arg2[0, 0] [1, 8192] [1, 2]
// CHECK: tensor.extract_slice %arg3[0, 1] [64, 32] [1, 2]
func.func @stay(%a: tensor<256x64x1xf32>, %y: tensor<256x64x2xf32>, %row: tensor<1x16384xf32>, %few: tensor<64x64xf32>)
    -> (tensor<256x64x2xf32>, tensor<1x8192xf32>, tensor<64x32xf32>) {
  %p = tensor.insert_slice %a into %y[0, 0, 1] [256, 64, 1] [1, 1, 1] : tensor<256x64x1xf32> into tensor<256x64x2xf32>
  %r = tensor.extract_slice %row[0, 0] [1, 8192] [1, 2] : tensor<1x16384xf32> to tensor<1x8192xf32>
  %s = tensor.extract_slice %few[0, 1] [64, 32] [1, 2] : tensor<64x64xf32> to tensor<64x32xf32>
  return %p, %r, %s : tensor<256x64x2xf32>, tensor<1x8192xf32>, tensor<64x32xf32>
}
