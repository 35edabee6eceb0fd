// A reduction over windows that begin at the first element is a running result, if what lies before it is neutral.
// RUN: nkx opt --recognize-scans %s | FileCheck %s
#at = affine_map<(d0, d1, d2, d3) -> (d0 + d2, d1 + d3)>
#window = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#out = affine_map<(d0, d1, d2, d3) -> (d0, d1)>

// CHECK-LABEL: func.func @running(
// CHECK:         linalg.generic {{.*}}["parallel", "reduction"]} ins(%arg0 : tensor<6x7xf32>)
// CHECK:           arith.mulf
// CHECK-LABEL: func.func @other_number(
// CHECK:         linalg.generic {{.*}}["parallel", "parallel", "reduction", "reduction"]}
func.func @running(%x: tensor<6x7xf32>) -> tensor<6x7xf32> {
  %one = arith.constant 1.0 : f32
  %0 = tensor.empty() : tensor<6x13xf32>
  %1 = linalg.fill ins(%one : f32) outs(%0 : tensor<6x13xf32>) -> tensor<6x13xf32>
  %p = tensor.insert_slice %x into %1[0, 6] [6, 7] [1, 1] : tensor<6x7xf32> into tensor<6x13xf32>
  %2 = tensor.empty() : tensor<1x7xf32>
  %3 = tensor.empty() : tensor<6x7xf32>
  %4 = linalg.fill ins(%one : f32) outs(%3 : tensor<6x7xf32>) -> tensor<6x7xf32>
  %5 = linalg.generic {indexing_maps = [#at, #window, #out], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%p, %2 : tensor<6x13xf32>, tensor<1x7xf32>) outs(%4 : tensor<6x7xf32>) {
  ^bb0(%in: f32, %w: f32, %o: f32):
    %6 = arith.mulf %o, %in : f32
    linalg.yield %6 : f32
  } -> tensor<6x7xf32>
  return %5 : tensor<6x7xf32>
}
func.func @other_number(%x: tensor<6x7xf32>) -> tensor<6x7xf32> {
  %two = arith.constant 2.0 : f32
  %0 = tensor.empty() : tensor<6x13xf32>
  %1 = linalg.fill ins(%two : f32) outs(%0 : tensor<6x13xf32>) -> tensor<6x13xf32>
  %p = tensor.insert_slice %x into %1[0, 6] [6, 7] [1, 1] : tensor<6x7xf32> into tensor<6x13xf32>
  %2 = tensor.empty() : tensor<1x7xf32>
  %3 = tensor.empty() : tensor<6x7xf32>
  %4 = linalg.fill ins(%two : f32) outs(%3 : tensor<6x7xf32>) -> tensor<6x7xf32>
  %5 = linalg.generic {indexing_maps = [#at, #window, #out], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%p, %2 : tensor<6x13xf32>, tensor<1x7xf32>) outs(%4 : tensor<6x7xf32>) {
  ^bb0(%in: f32, %w: f32, %o: f32):
    %6 = arith.mulf %o, %in : f32
    linalg.yield %6 : f32
  } -> tensor<6x7xf32>
  return %5 : tensor<6x7xf32>
}
