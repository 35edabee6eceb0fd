// np.rint, as the tracer writes it, becomes one function.
// RUN: nkx opt --recognize-activations --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
#map = affine_map<(d0, d1) -> (d0, d1)>

// REMARK: round_even: one activation instead of 15 operations
// CHECK-LABEL: func.func @rint
// CHECK-NOT:   linalg.abs
// CHECK:       math.roundeven
// CHECK-NOT:   linalg.mul
// CHECK:       return
func.func @rint(%arg0: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %cst = arith.constant 5.000000e-01 : f32
  %cst_0 = arith.constant 1.000000e+00 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<128x64xf32>
  %1 = linalg.abs ins(%arg0 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %16 = arith.cmpf one, %in, %cst_1 : f32
    %17 = math.copysign %cst_0, %in : f32
    %18 = arith.select %16, %17, %in : f32
    linalg.yield %18 : f32
  } -> tensor<128x64xf32>
  %3 = linalg.floor ins(%1 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %4 = linalg.sub ins(%1, %3 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %16 = arith.mulf %in, %cst : f32
    linalg.yield %16 : f32
  } -> tensor<128x64xf32>
  %6 = linalg.floor ins(%5 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %7 = tensor.empty() : tensor<128x64xi1>
  %8 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %5 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%7 : tensor<128x64xi1>) {
  ^bb0(%in: f32, %in_2: f32, %out: i1):
    %16 = arith.cmpf une, %in, %in_2 : f32
    linalg.yield %16 : i1
  } -> tensor<128x64xi1>
  %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<128x64xf32>) outs(%7 : tensor<128x64xi1>) {
  ^bb0(%in: f32, %out: i1):
    %16 = arith.cmpf oeq, %in, %cst : f32
    linalg.yield %16 : i1
  } -> tensor<128x64xi1>
  %10 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%9, %8 : tensor<128x64xi1>, tensor<128x64xi1>) outs(%7 : tensor<128x64xi1>) {
  ^bb0(%in: i1, %in_2: i1, %out: i1):
    %16 = arith.andi %in, %in_2 : i1
    linalg.yield %16 : i1
  } -> tensor<128x64xi1>
  %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<128x64xf32>) outs(%7 : tensor<128x64xi1>) {
  ^bb0(%in: f32, %out: i1):
    %16 = arith.cmpf ogt, %in, %cst : f32
    linalg.yield %16 : i1
  } -> tensor<128x64xi1>
  %12 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%11, %10 : tensor<128x64xi1>, tensor<128x64xi1>) outs(%7 : tensor<128x64xi1>) {
  ^bb0(%in: i1, %in_2: i1, %out: i1):
    %16 = arith.ori %in, %in_2 : i1
    linalg.yield %16 : i1
  } -> tensor<128x64xi1>
  %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %16 = arith.addf %in, %cst_0 : f32
    linalg.yield %16 : f32
  } -> tensor<128x64xf32>
  %14 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%12, %13, %3 : tensor<128x64xi1>, tensor<128x64xf32>, tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) {
  ^bb0(%in: i1, %in_2: f32, %in_3: f32, %out: f32):
    %16 = arith.select %in, %in_2, %in_3 : f32
    linalg.yield %16 : f32
  } -> tensor<128x64xf32>
  %15 = linalg.mul ins(%2, %14 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %15 : tensor<128x64xf32>
}

// Another bound than a half.
// CHECK-LABEL: func.func @other
// CHECK-NOT:   math.roundeven
// CHECK:       return
func.func @other(%arg0: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %cst = arith.constant 2.500000e-01 : f32
  %cst_0 = arith.constant 1.000000e+00 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %0 = tensor.empty() : tensor<128x64xf32>
  %1 = linalg.abs ins(%arg0 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %16 = arith.cmpf one, %in, %cst_1 : f32
    %17 = math.copysign %cst_0, %in : f32
    %18 = arith.select %16, %17, %in : f32
    linalg.yield %18 : f32
  } -> tensor<128x64xf32>
  %3 = linalg.floor ins(%1 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %4 = linalg.sub ins(%1, %3 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %16 = arith.mulf %in, %cst : f32
    linalg.yield %16 : f32
  } -> tensor<128x64xf32>
  %6 = linalg.floor ins(%5 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %7 = tensor.empty() : tensor<128x64xi1>
  %8 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %5 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%7 : tensor<128x64xi1>) {
  ^bb0(%in: f32, %in_2: f32, %out: i1):
    %16 = arith.cmpf une, %in, %in_2 : f32
    linalg.yield %16 : i1
  } -> tensor<128x64xi1>
  %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<128x64xf32>) outs(%7 : tensor<128x64xi1>) {
  ^bb0(%in: f32, %out: i1):
    %16 = arith.cmpf oeq, %in, %cst : f32
    linalg.yield %16 : i1
  } -> tensor<128x64xi1>
  %10 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%9, %8 : tensor<128x64xi1>, tensor<128x64xi1>) outs(%7 : tensor<128x64xi1>) {
  ^bb0(%in: i1, %in_2: i1, %out: i1):
    %16 = arith.andi %in, %in_2 : i1
    linalg.yield %16 : i1
  } -> tensor<128x64xi1>
  %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<128x64xf32>) outs(%7 : tensor<128x64xi1>) {
  ^bb0(%in: f32, %out: i1):
    %16 = arith.cmpf ogt, %in, %cst : f32
    linalg.yield %16 : i1
  } -> tensor<128x64xi1>
  %12 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%11, %10 : tensor<128x64xi1>, tensor<128x64xi1>) outs(%7 : tensor<128x64xi1>) {
  ^bb0(%in: i1, %in_2: i1, %out: i1):
    %16 = arith.ori %in, %in_2 : i1
    linalg.yield %16 : i1
  } -> tensor<128x64xi1>
  %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %16 = arith.addf %in, %cst_0 : f32
    linalg.yield %16 : f32
  } -> tensor<128x64xf32>
  %14 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%12, %13, %3 : tensor<128x64xi1>, tensor<128x64xf32>, tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) {
  ^bb0(%in: i1, %in_2: f32, %in_3: f32, %out: f32):
    %16 = arith.select %in, %in_2, %in_3 : f32
    linalg.yield %16 : f32
  } -> tensor<128x64xf32>
  %15 = linalg.mul ins(%2, %14 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %15 : tensor<128x64xf32>
}
