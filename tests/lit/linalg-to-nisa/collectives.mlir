// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s
// RUN: nkx opt --linalg-to-nisa %s | mlir-opt -

// A call becomes an instruction on whole arrays in shared HBM; declarations go.
// CHECK-LABEL: func.func @k(
// CHECK:       %[[R:[a-z0-9_]+]] = "nisa.alloc"() {alignment = 64 : i64} : () -> memref<4x6xf32, #nisa.mem<"shared_hbm">>
// CHECK:       "nisa.all_reduce"(%[[R]], %arg0) {{.*}}dst_tile = array<i64: 4, 6>, engine = "dma", op = "add"{{.*}}replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>
// CHECK:       %[[G:[a-z0-9_]+]] = "nisa.alloc"() {{.*}} -> memref<4x12xf32, #nisa.mem<"shared_hbm">>
// CHECK:       "nisa.all_gather"(%[[G]], %[[R]]) {{.*}}dim = 1 : i64, {{.*}}src_tile = array<i64: 4, 6>
// CHECK:       %[[S:[a-z0-9_]+]] = "nisa.alloc"() {{.*}} -> memref<1x12xf32, #nisa.mem<"shared_hbm">>
// CHECK:       "nisa.reduce_scatter"(%[[S]], %[[G]]) {channel_id = 7 : i64, dim = 0 : i64, {{.*}}op = "max"
// CHECK:       "nisa.all_to_all"(%{{.*}}, %[[G]])
// CHECK:       "nisa.collective_permute"(%{{.*}}source_target_pairs = dense<{{\[\[}}0, 1], [1, 0]]> : tensor<2x2xi64>
// CHECK:       return
// CHECK-NOT:   func.func
// CHECK-NOT:   nkipy
!x = memref<4x6xf32, 4 : i32>
!y = memref<4x12xf32, 4 : i32>
!d = memref<4x6xf32, strided<[?, ?], offset: ?>, 4 : i32>
func.func @k(%x: !d) -> (memref<1x12xf32, 4 : i32>, !y) {
  %0 = call @all_reduce(%x) : (!d) -> !x
  %c = memref.cast %0 : !x to !d
  %1 = call @all_gather(%c) : (!d) -> !y
  %2 = call @reduce_scatter(%1) : (!y) -> memref<1x12xf32, 4 : i32>
  %3 = call @all_to_all(%1) : (!y) -> !y
  %4 = call @collective_permute(%3) : (!y) -> !y
  return %2, %4 : memref<1x12xf32, 4 : i32>, !y
}
func.func private @all_reduce(!d) -> !x attributes {nkipy.collective = {kind = "all_reduce", op = "add", replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}}
func.func private @all_gather(!d) -> !y attributes {nkipy.collective = {dim = 1 : i64, kind = "all_gather"}}
func.func private @reduce_scatter(!y) -> memref<1x12xf32, 4 : i32> attributes {nkipy.collective = {channel_id = 7 : i64, dim = 0 : i64, kind = "reduce_scatter", op = "max"}}
func.func private @all_to_all(!y) -> !y attributes {nkipy.collective = {dim = 0 : i64, kind = "all_to_all", replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}
func.func private @collective_permute(!y) -> !y attributes {nkipy.collective = {kind = "collective_permute", source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}}

// A scalar and a list are one partition; what has other strides is given in them.
// CHECK-LABEL: func.func @ranks(
// CHECK:       "nisa.all_reduce"({{.*}}dst_tile = array<i64: 1, 1>{{.*}}op = "min"
// CHECK:       "nisa.all_reduce"({{.*}}dst_tile = array<i64: 1, 5>{{.*}}op = "bitwise_or"
func.func @ranks(%s: memref<i32, 4 : i32>, %v: memref<5xi1, 4 : i32>) -> (memref<i32, 4 : i32>, memref<5xi1, strided<[?], offset: ?>, 4 : i32>) {
  %0 = call @scalar(%s) : (memref<i32, 4 : i32>) -> memref<i32, 4 : i32>
  %1 = call @list(%v) : (memref<5xi1, 4 : i32>) -> memref<5xi1, strided<[?], offset: ?>, 4 : i32>
  return %0, %1 : memref<i32, 4 : i32>, memref<5xi1, strided<[?], offset: ?>, 4 : i32>
}
func.func private @scalar(memref<i32, 4 : i32>) -> memref<i32, 4 : i32> attributes {nkipy.collective = {kind = "all_reduce", op = "min", unsigned}}
func.func private @list(memref<5xi1, 4 : i32>) -> memref<5xi1, strided<[?], offset: ?>, 4 : i32> attributes {nkipy.collective = {kind = "all_reduce", op = "bitwise_or"}}
