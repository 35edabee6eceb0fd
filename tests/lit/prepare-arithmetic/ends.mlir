// What reduces the first and the last dimensions, and keeps few between them, is reduced along the last ones first.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: reduced in two steps: 48 rows of 130 elements, then 16 numbers for each result
// CHECK-LABEL: func.func @channels
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[START:.*]] = arith.constant 5 : i32
// CHECK: linalg.fill ins(%[[ZERO]] : i32)
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%{{.*}} : tensor<48x130xi32>) outs(%{{.*}} : tensor<48x1xi32>)
// CHECK: linalg.fill ins(%[[START]] : i32)
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins(%{{.*}} : tensor<16x3xi32>) outs(%{{.*}} : tensor<1x3xi32>)
func.func @channels(%x: tensor<16x3x130xi32>) -> tensor<3xi32> {
  %start = arith.constant 5 : i32
  %e = tensor.empty() : tensor<3xi32>
  %f = linalg.fill ins(%start : i32) outs(%e : tensor<3xi32>) -> tensor<3xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b)>], iterator_types = ["reduction", "parallel", "reduction"]}
       ins(%x : tensor<16x3x130xi32>) outs(%f : tensor<3xi32>) {
  ^bb0(%i: i32, %o: i32):
    %v = arith.addi %o, %i : i32
    linalg.yield %v : i32
  } -> tensor<3xi32>
  return %r : tensor<3xi32>
}

// Channels that fill the partitions are reduced in one step.
// CHECK-LABEL: func.func @many
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
func.func @many(%x: tensor<16x64x130xi32>) -> tensor<64xi32> {
  %start = arith.constant 5 : i32
  %e = tensor.empty() : tensor<64xi32>
  %f = linalg.fill ins(%start : i32) outs(%e : tensor<64xi32>) -> tensor<64xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b)>], iterator_types = ["reduction", "parallel", "reduction"]}
       ins(%x : tensor<16x64x130xi32>) outs(%f : tensor<64xi32>) {
  ^bb0(%i: i32, %o: i32):
    %v = arith.addi %o, %i : i32
    linalg.yield %v : i32
  } -> tensor<64xi32>
  return %r : tensor<64xi32>
}
