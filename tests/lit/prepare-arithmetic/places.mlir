// What is counted from the numbers of rows and columns is counted by one operation.
// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s

#all = affine_map<(a, b) -> (a, b)>

// The difference that masks a triangle, and what is two less.
// CHECK-LABEL: func.func @difference
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<256x512xi32>)
// CHECK-DAG: %[[B:.*]] = linalg.index 1
// CHECK-DAG: %[[A:.*]] = linalg.index 0
// CHECK: %[[D:.*]] = arith.subi %[[B]], %[[A]] : index
// CHECK: arith.addi %[[D]], %{{.*}} : index
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @difference() -> tensor<256x512xi32> {
  %two = arith.constant 2 : i32
  %e = tensor.empty() : tensor<256x512xi32>
  %0 = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<256x512xi32>) {
  ^bb0(%o: i32):
    %at = linalg.index 0 : index
    %v = arith.index_cast %at : index to i32
    linalg.yield %v : i32
  } -> tensor<256x512xi32>
  %1 = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<256x512xi32>) {
  ^bb0(%o: i32):
    %at = linalg.index 1 : index
    %v = arith.index_cast %at : index to i32
    linalg.yield %v : i32
  } -> tensor<256x512xi32>
  %2 = linalg.sub ins(%1, %0 : tensor<256x512xi32>, tensor<256x512xi32>) outs(%e : tensor<256x512xi32>) -> tensor<256x512xi32>
  %3 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<256x512xi32>) outs(%e : tensor<256x512xi32>) {
  ^bb0(%a: i32, %o: i32):
    %v = arith.subi %a, %two : i32
    linalg.yield %v : i32
  } -> tensor<256x512xi32>
  return %3 : tensor<256x512xi32>
}

// A product of them is none of these.
// CHECK-LABEL: func.func @product
// CHECK: linalg.mul
func.func @product() -> tensor<256x512xi32> {
  %e = tensor.empty() : tensor<256x512xi32>
  %0 = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<256x512xi32>) {
  ^bb0(%o: i32):
    %at = linalg.index 0 : index
    %v = arith.index_cast %at : index to i32
    linalg.yield %v : i32
  } -> tensor<256x512xi32>
  %2 = linalg.mul ins(%0, %0 : tensor<256x512xi32>, tensor<256x512xi32>) outs(%e : tensor<256x512xi32>) -> tensor<256x512xi32>
  return %2 : tensor<256x512xi32>
}
