// The place of the largest element of a row is found by one operation and a minimum.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

#whole = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>
#column = affine_map<(d0, d1) -> (0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>
#columns = affine_map<(d0, d1) -> (d1)>

// REMARK: the places of elements that are not the largest are 1, others below it
// CHECK-LABEL: func.func @rows
// CHECK-NOT: tensor<200x8xi1>
// CHECK: arith.constant dense<{{.*}}0.000000e+00, 5.96046448E-8, 1.1920929E-7{{.*}}> : tensor<1x8xf32>
// CHECK: %[[F:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<200x8xf32>, tensor<1x8xf32>, tensor<200x1xf32>, tensor<200x1xf32>)
// CHECK: arith.minimumf
// CHECK-NEXT: arith.cmpf olt
// CHECK-NEXT: arith.uitofp
// CHECK-NEXT: arith.maximumf
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[F]] : tensor<200x8xf32>)
// CHECK: arith.fptosi
func.func @rows(%x: tensor<200x8xf32>) -> tensor<200xi32> {
  %most = arith.constant 2147483647 : i32
  %n = arith.constant 8 : i32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<200x1xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<200x1xf32>) -> tensor<200x1xf32>
  %m = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<200x8xf32>) outs(%i : tensor<200x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.maximumf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<200x1xf32>
  %b = tensor.empty() : tensor<200x8xi1>
  %eq = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<200x8xf32>, tensor<200x1xf32>) outs(%b : tensor<200x8xi1>) {
  ^bb0(%in: f32, %max: f32, %out: i1):
    %0 = arith.cmpf oeq, %in, %max : f32
    linalg.yield %0 : i1
  } -> tensor<200x8xi1>
  %ne = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]} ins(%x, %x : tensor<200x8xf32>, tensor<200x8xf32>) outs(%b : tensor<200x8xi1>) {
  ^bb0(%in: f32, %other: f32, %out: i1):
    %0 = arith.cmpf une, %in, %other : f32
    linalg.yield %0 : i1
  } -> tensor<200x8xi1>
  %mask = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]} ins(%eq, %ne : tensor<200x8xi1>, tensor<200x8xi1>) outs(%b : tensor<200x8xi1>) {
  ^bb0(%in: i1, %other: i1, %out: i1):
    %0 = arith.ori %in, %other : i1
    linalg.yield %0 : i1
  } -> tensor<200x8xi1>
  %p = tensor.empty() : tensor<200x8xi32>
  %at = linalg.generic {indexing_maps = [#whole], iterator_types = ["parallel", "parallel"]} outs(%p : tensor<200x8xi32>) {
  ^bb0(%out: i32):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i32
    linalg.yield %1 : i32
  } -> tensor<200x8xi32>
  %where = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]} ins(%mask, %at : tensor<200x8xi1>, tensor<200x8xi32>) outs(%p : tensor<200x8xi32>) {
  ^bb0(%in: i1, %place: i32, %out: i32):
    %0 = arith.select %in, %place, %n : i32
    linalg.yield %0 : i32
  } -> tensor<200x8xi32>
  %r = tensor.empty() : tensor<200xi32>
  %j = linalg.fill ins(%most : i32) outs(%r : tensor<200xi32>) -> tensor<200xi32>
  %y = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]} ins(%where : tensor<200x8xi32>) outs(%j : tensor<200xi32>) {
  ^bb0(%in: i32, %out: i32):
    %0 = arith.minsi %out, %in : i32
    linalg.yield %0 : i32
  } -> tensor<200xi32>
  return %y : tensor<200xi32>
}

// What is compared with does not come from the elements: it need not be the largest, so the mask stays.
// CHECK-LABEL: func.func @another
// CHECK: arith.cmpf oeq
// CHECK: arith.select
func.func @another(%x: tensor<200x8xf32>, %m: tensor<200x1xf32>) -> tensor<200xi32> {
  %most = arith.constant 2147483647 : i32
  %n = arith.constant 8 : i32
  %b = tensor.empty() : tensor<200x8xi1>
  %eq = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<200x8xf32>, tensor<200x1xf32>) outs(%b : tensor<200x8xi1>) {
  ^bb0(%in: f32, %max: f32, %out: i1):
    %0 = arith.cmpf oeq, %in, %max : f32
    linalg.yield %0 : i1
  } -> tensor<200x8xi1>
  %ne = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]} ins(%x, %x : tensor<200x8xf32>, tensor<200x8xf32>) outs(%b : tensor<200x8xi1>) {
  ^bb0(%in: f32, %other: f32, %out: i1):
    %0 = arith.cmpf une, %in, %other : f32
    linalg.yield %0 : i1
  } -> tensor<200x8xi1>
  %mask = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]} ins(%eq, %ne : tensor<200x8xi1>, tensor<200x8xi1>) outs(%b : tensor<200x8xi1>) {
  ^bb0(%in: i1, %other: i1, %out: i1):
    %0 = arith.ori %in, %other : i1
    linalg.yield %0 : i1
  } -> tensor<200x8xi1>
  %p = tensor.empty() : tensor<200x8xi32>
  %at = linalg.generic {indexing_maps = [#whole], iterator_types = ["parallel", "parallel"]} outs(%p : tensor<200x8xi32>) {
  ^bb0(%out: i32):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i32
    linalg.yield %1 : i32
  } -> tensor<200x8xi32>
  %where = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]} ins(%mask, %at : tensor<200x8xi1>, tensor<200x8xi32>) outs(%p : tensor<200x8xi32>) {
  ^bb0(%in: i1, %place: i32, %out: i32):
    %0 = arith.select %in, %place, %n : i32
    linalg.yield %0 : i32
  } -> tensor<200x8xi32>
  %r = tensor.empty() : tensor<200xi32>
  %j = linalg.fill ins(%most : i32) outs(%r : tensor<200xi32>) -> tensor<200xi32>
  %y = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]} ins(%where : tensor<200x8xi32>) outs(%j : tensor<200xi32>) {
  ^bb0(%in: i32, %out: i32):
    %0 = arith.minsi %out, %in : i32
    linalg.yield %0 : i32
  } -> tensor<200xi32>
  return %y : tensor<200xi32>
}

// Integers are compared as they are.  If none equals the number, the result is the length.
// CHECK-LABEL: func.func @integers
// CHECK-DAG: %[[N:.*]] = arith.constant 8.000000e+00 : f32
// CHECK-DAG: arith.cmpi ne
// CHECK: arith.minimumf %{{.*}}, %[[N]]
// CHECK-NEXT: arith.fptosi
func.func @integers(%x: tensor<200x8xi32>, %m: tensor<200x1xi32>) -> tensor<200xi32> {
  %most = arith.constant 2147483647 : i32
  %n = arith.constant 8 : i32
  %b = tensor.empty() : tensor<200x8xi1>
  %eq = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<200x8xi32>, tensor<200x1xi32>) outs(%b : tensor<200x8xi1>) {
  ^bb0(%in: i32, %max: i32, %out: i1):
    %0 = arith.cmpi eq, %in, %max : i32
    linalg.yield %0 : i1
  } -> tensor<200x8xi1>
  %p = tensor.empty() : tensor<200x8xi32>
  %at = linalg.generic {indexing_maps = [#whole], iterator_types = ["parallel", "parallel"]} outs(%p : tensor<200x8xi32>) {
  ^bb0(%out: i32):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i32
    linalg.yield %1 : i32
  } -> tensor<200x8xi32>
  %where = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]} ins(%eq, %at : tensor<200x8xi1>, tensor<200x8xi32>) outs(%p : tensor<200x8xi32>) {
  ^bb0(%in: i1, %place: i32, %out: i32):
    %0 = arith.select %in, %place, %n : i32
    linalg.yield %0 : i32
  } -> tensor<200x8xi32>
  %r = tensor.empty() : tensor<200xi32>
  %j = linalg.fill ins(%most : i32) outs(%r : tensor<200xi32>) -> tensor<200xi32>
  %y = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]} ins(%where : tensor<200x8xi32>) outs(%j : tensor<200xi32>) {
  ^bb0(%in: i32, %out: i32):
    %0 = arith.minsi %out, %in : i32
    linalg.yield %0 : i32
  } -> tensor<200xi32>
  return %y : tensor<200xi32>
}
