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

// A sum of integers first adds the elements of a partition; of floats see row_parts.mlir.
// CHECK-LABEL: func.func @sums
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%{{.*}} : tensor<16x128x2048xi32>) outs(%{{.*}} : tensor<16x128
func.func @sums(%x: tensor<16x262144xi32>) -> tensor<16xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<16xi32>
  %i = linalg.fill ins(%zero : i32) outs(%e : tensor<16xi32>) -> tensor<16xi32>
  %s = linalg.generic {indexing_maps = [#whole, #numbers], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x262144xi32>) outs(%i : tensor<16xi32>) {
  ^bb0(%in: i32, %out: i32):
    %0 = arith.addi %out, %in : i32
    linalg.yield %0 : i32
  } -> tensor<16xi32>
  return %s : tensor<16xi32>
}

// The place in a row is that in the two dimensions that it has become.
// CHECK-LABEL: func.func @place
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<2x128x1024xf32>)
// CHECK-DAG: %[[PART:.*]] = linalg.index 1
// CHECK-DAG: %[[IN:.*]] = linalg.index 2
// CHECK: %[[FIRST:.*]] = arith.muli %[[PART]], %c1024
// CHECK: arith.addi %[[FIRST]], %[[IN]]
func.func @place(%x: tensor<2x131072xf32>) -> tensor<2x1xi32> {
  %most = arith.constant 2147483647 : i32
  %e = tensor.empty() : tensor<2x131072xi32>
  %p = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<2x131072xf32>) outs(%e : tensor<2x131072xi32>) {
  ^bb0(%in: f32, %out: i32):
    %zero = arith.constant 0.0 : f32
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i32
    %2 = arith.cmpf ogt, %in, %zero : f32
    %3 = arith.select %2, %1, %most : i32
    linalg.yield %3 : i32
  } -> tensor<2x131072xi32>
  %f = tensor.empty() : tensor<2x1xi32>
  %i = linalg.fill ins(%most : i32) outs(%f : tensor<2x1xi32>) -> tensor<2x1xi32>
  %m = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]} ins(%p : tensor<2x131072xi32>) outs(%i : tensor<2x1xi32>) {
  ^bb0(%in: i32, %out: i32):
    %0 = arith.minsi %out, %in : i32
    linalg.yield %0 : i32
  } -> tensor<2x1xi32>
  return %m : tensor<2x1xi32>
}

// Of 1024 elements the sum, and the way of its result to all partitions, would take longer than the row in one.
// CHECK-LABEL: func.func @stay
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<8x1024xf32>) outs(%{{.*}} : tensor<8x1xf32>)
func.func @stay(%x: tensor<8x1024xf32>) -> tensor<8x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x1xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x1xf32>) -> tensor<8x1xf32>
  %s = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x1024xf32>) outs(%i : tensor<8x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<8x1xf32>
  %f = tensor.empty() : tensor<8x1024xf32>
  %y = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<8x1024xf32>, tensor<8x1xf32>) outs(%f : tensor<8x1024xf32>) {
  ^bb0(%in: f32, %r: f32, %out: f32):
    %0 = arith.subf %in, %r : f32
    linalg.yield %0 : f32
  } -> tensor<8x1024xf32>
  return %y : tensor<8x1024xf32>
}
