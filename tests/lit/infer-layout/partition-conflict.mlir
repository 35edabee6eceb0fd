// RUN: nkx opt --infer-layout %s | FileCheck %s
// RUN: nkx opt --infer-layout --canonicalize-partition-dim %s | FileCheck %s --check-prefix=TURNED

// Two knobs that differ: each operation has its own, and what lies between them is transposed.
// CHECK-LABEL: func.func @differ(
// CHECK:         %[[X:.*]] = linalg.exp
// CHECK:         "nkipy.layout"(%[[X]]) {given, mem_space = 3 : i32, partition_dim = 1 : i32
// CHECK:         %[[Y:.*]] = linalg.square
// CHECK:         "nkipy.layout"(%[[Y]]) {{{.*}}partition_dim = 2 : i32
// TURNED-LABEL: func.func @differ(
// TURNED-NOT:     linalg.transpose
// TURNED:         linalg.exp
// TURNED:         linalg.transpose {{.*}} permutation = [2, 0, 1]
// TURNED:         linalg.square
// TURNED:         linalg.transpose {{.*}} permutation = [1, 2, 0]
func.func @differ(%a: tensor<64x64x64xf32>) -> tensor<64x64x64xf32> {
  %e0 = tensor.empty() : tensor<64x64x64xf32>
  %x = linalg.exp ins(%a : tensor<64x64x64xf32>) outs(%e0 : tensor<64x64x64xf32>) -> tensor<64x64x64xf32>
  "nkipy.layout"(%x) {mem_space = 3 : i32, partition_dim = 1 : i32} : (tensor<64x64x64xf32>) -> ()
  %e1 = tensor.empty() : tensor<64x64x64xf32>
  %y = linalg.square ins(%x : tensor<64x64x64xf32>) outs(%e1 : tensor<64x64x64xf32>) -> tensor<64x64x64xf32>
  "nkipy.layout"(%y) {partition_dim = 2 : i32} : (tensor<64x64x64xf32>) -> ()
  return %y : tensor<64x64x64xf32>
}

// A matmul leaves its rows on the partitions: its readers get a copy that lies as asked.
// CHECK-LABEL: func.func @matmul(
// CHECK:         %[[M:.*]] = linalg.matmul
// CHECK:         "nkipy.layout"(%[[M]]) {{{.*}}partition_dim = 0 : i32
// CHECK:         %[[C:.*]] = linalg.copy ins(%[[M]]
// CHECK:         "nkipy.layout"(%[[C]]) {given, mem_space = 3 : i32, partition_dim = 1 : i32
// CHECK:         %[[E:.*]] = linalg.exp ins(%[[C]]
// CHECK:         "nkipy.layout"(%[[E]]) {{{.*}}partition_dim = 1 : i32
func.func @matmul(%a: tensor<64x96xf32>, %b: tensor<96x80xf32>) -> tensor<64x80xf32> {
  %e = tensor.empty() : tensor<64x80xf32>
  %m = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x80xf32>) outs(%e : tensor<64x80xf32>) -> tensor<64x80xf32>
  "nkipy.layout"(%m) {mem_space = 3 : i32, partition_dim = 1 : i32} : (tensor<64x80xf32>) -> ()
  %x = linalg.exp ins(%m : tensor<64x80xf32>) outs(%e : tensor<64x80xf32>) -> tensor<64x80xf32>
  return %x : tensor<64x80xf32>
}

// A reduction cannot have what it reduces across the partitions: the same.
// CHECK-LABEL: func.func @reduced(
// CHECK:         %[[S:.*]] = linalg.generic
// CHECK:         "nkipy.layout"(%[[S]]) {mem_space = {{[13]}} : i32, partition_dim = 1 : i32
// CHECK:         %[[C:.*]] = linalg.copy ins(%[[S]]
// CHECK:         "nkipy.layout"(%[[C]]) {{{.*}}partition_dim = 0 : i32
// CHECK:         return %[[C]]
func.func @reduced(%x: tensor<1000x512xf32>) -> tensor<1x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<1x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x512xf32>) -> tensor<1x512xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (0, b)>], iterator_types = ["reduction", "parallel"]}
       ins(%x : tensor<1000x512xf32>) outs(%f : tensor<1x512xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<1x512xf32>
  "nkipy.layout"(%s) {partition_dim = 0 : i32} : (tensor<1x512xf32>) -> ()
  return %s : tensor<1x512xf32>
}
