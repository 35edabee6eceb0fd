// Every second element of rows is read from a transpose of its pairs, which is made once, and written through one.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: read 2 elements apart: in rows on the chip
// CHECK-LABEL: func.func @read
// CHECK: %[[PAIRS:.*]] = tensor.expand_shape %arg0 {{.*}} into tensor<128x2x64x2xf32>
// CHECK: %[[TURNED:.*]] = linalg.generic {{.*}} ins(%[[PAIRS]] : tensor<128x2x64x2xf32>) outs(%{{.*}} : tensor<128x2x2x64xf32>)
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[TURNED]] {{.*}} into tensor<256x2x64xf32>
// CHECK-DAG: tensor.extract_slice %[[ROWS]][0, 0, 0] [256, 1, 64] [1, 1, 1]
// CHECK-DAG: tensor.extract_slice %[[ROWS]][0, 1, 0] [256, 1, 64] [1, 1, 1]
func.func @read(%x: tensor<256x128xf32>) -> (tensor<256x64xf32>, tensor<256x64xf32>) {
  %a = tensor.extract_slice %x[0, 0] [256, 64] [1, 2] : tensor<256x128xf32> to tensor<256x64xf32>
  %b = tensor.extract_slice %x[0, 1] [256, 64] [1, 2] : tensor<256x128xf32> to tensor<256x64xf32>
  return %a, %b : tensor<256x64xf32>, tensor<256x64xf32>
}

// REMARK: written 2 elements apart: in rows on the chip
// CHECK-LABEL: func.func @written
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 0] [256, 1, 64] [1, 1, 1]
// CHECK: %[[BOTH:.*]] = tensor.insert_slice %{{.*}} into %[[FIRST]][0, 1, 0] [256, 1, 64] [1, 1, 1]
// CHECK: %[[ROWS:.*]] = tensor.expand_shape %[[BOTH]] {{.*}} into tensor<128x2x2x64xf32>
// CHECK: %[[TURNED:.*]] = linalg.generic {{.*}} ins(%[[ROWS]] : tensor<128x2x2x64xf32>) outs(%{{.*}} : tensor<128x2x64x2xf32>)
// CHECK: %[[OUT:.*]] = tensor.collapse_shape %[[TURNED]] {{.*}} into tensor<256x64x2xf32>
// CHECK: return %[[OUT]]
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

// A part of the rows: the groups that have it.
// CHECK-LABEL: func.func @part
// CHECK: %[[GROUPS:.*]] = tensor.extract_slice %arg0[0, 39] [1024, 960] [1, 1]
// CHECK: %[[TRIPLES:.*]] = tensor.expand_shape %[[GROUPS]] {{.*}} into tensor<512x2x320x3xf32>
// CHECK: %[[TURNED:.*]] = linalg.generic {{.*}} ins(%[[TRIPLES]]
// CHECK: tensor.extract_slice %{{.*}}[0, 2, 0] [1024, 1, 320] [1, 1, 1]
func.func @part(%x: tensor<1024x1000xf32>) -> tensor<1024x320xf32> {
  %a = tensor.extract_slice %x[0, 41] [1024, 320] [1, 3] : tensor<1024x1000xf32> to tensor<1024x320xf32>
  return %a : tensor<1024x320xf32>
}

// Rows of an odd number of elements, every second of which is taken: the last element of each is a slice of its own.
// CHECK-LABEL: func.func @odd
// CHECK: %[[ROWS:.*]] = tensor.extract_slice %arg0[1, 0] [512, 67] [2, 1]
// CHECK: tensor.extract_slice %[[ROWS]][0, 0] [512, 66] [1, 1]
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 0] [512, 33] [1, 1]
// CHECK: tensor.extract_slice %[[ROWS]][0, 66] [512, 1] [1, 1]
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 33] [512, 1] [1, 1]
func.func @odd(%x: tensor<1024x67xf32>) -> tensor<512x34xf32> {
  %a = tensor.extract_slice %x[1, 0] [512, 34] [2, 2] : tensor<1024x67xf32> to tensor<512x34xf32>
  return %a : tensor<512x34xf32>
}
