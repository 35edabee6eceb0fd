// Few long rows are cut: parts of a row lie across the partitions.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

#whole = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>
#bias = affine_map<(d0, d1) -> (d1)>
#numbers = affine_map<(d0, d1) -> (d0)>

// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1, d2) -> (d0, 0, 0)>
// CHECK-DAG: #[[BIAS:.*]] = affine_map<(d0, d1, d2) -> (0, d1, d2)>

// REMARK: 128 partitions hold 512 elements each of a row
// CHECK-LABEL: func.func @scale_and_shift
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[ROWS]], #[[BIAS]], #{{.*}}]{{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<4x128x512xf32>, tensor<4x1x1xf32>, tensor<1x128x512xf32>)
func.func @scale_and_shift(%x: tensor<4x65536xf32>, %a: tensor<4x1xf32>, %b: tensor<65536xf32>) -> tensor<4x65536xf32> {
  %e = tensor.empty() : tensor<4x65536xf32>
  %y = linalg.generic {indexing_maps = [#whole, #row, #bias, #whole], iterator_types = ["parallel", "parallel"]} ins(%x, %a, %b : tensor<4x65536xf32>, tensor<4x1xf32>, tensor<65536xf32>) outs(%e : tensor<4x65536xf32>) {
  ^bb0(%in: f32, %s: f32, %t: f32, %out: f32):
    %0 = arith.mulf %in, %s : f32
    %1 = arith.addf %0, %t : f32
    linalg.yield %1 : f32
  } -> tensor<4x65536xf32>
  return %y : tensor<4x65536xf32>
}

// A mean over the rows, and what computes with the row that it gives.
// CHECK-LABEL: func.func @mean_of_rows
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "parallel", "parallel"]} ins(%{{.*}} : tensor<8x128x512xf32>) outs(%{{.*}} : tensor<1x128x512xf32>)
// CHECK: linalg.exp ins(%{{.*}} : tensor<1x128x512xf32>)
func.func @mean_of_rows(%x: tensor<8x65536xf32>) -> tensor<65536xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<65536xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<65536xf32>) -> tensor<65536xf32>
  %s = linalg.generic {indexing_maps = [#whole, #bias], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x65536xf32>) outs(%i : tensor<65536xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<65536xf32>
  %y = linalg.exp ins(%s : tensor<65536xf32>) outs(%e : tensor<65536xf32>) -> tensor<65536xf32>
  return %y : tensor<65536xf32>
}

// A sum of each row first adds the elements of a partition.
// CHECK-LABEL: func.func @sums
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%{{.*}} : tensor<16x128x2048xf32>) outs(%{{.*}} : tensor<16x128
func.func @sums(%x: tensor<16x262144xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.generic {indexing_maps = [#whole, #numbers], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x262144xf32>) outs(%i : tensor<16xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<16xf32>
  return %s : tensor<16xf32>
}

// Of 4096 elements the sum, and the way of its result to all partitions, would take longer than the row in one.
// CHECK-LABEL: func.func @stay
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<8x4096xf32>) outs(%{{.*}} : tensor<8x1xf32>)
func.func @stay(%x: tensor<8x4096xf32>) -> tensor<8x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x1xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x1xf32>) -> tensor<8x1xf32>
  %s = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x4096xf32>) outs(%i : tensor<8x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<8x1xf32>
  %f = tensor.empty() : tensor<8x4096xf32>
  %y = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<8x4096xf32>, tensor<8x1xf32>) outs(%f : tensor<8x4096xf32>) {
  ^bb0(%in: f32, %r: f32, %out: f32):
    %0 = arith.subf %in, %r : f32
    linalg.yield %0 : f32
  } -> tensor<8x4096xf32>
  return %y : tensor<8x4096xf32>
}
