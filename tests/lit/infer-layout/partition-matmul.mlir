// RUN: nkx opt --infer-layout %s 2>/dev/null | FileCheck %s
// RUN: nkx opt --infer-layout %s 2>&1 >/dev/null | FileCheck %s --check-prefix=WARNING

// The rows of a matmul's result are on the partitions; its readers get a copy that lies as asked.
// WARNING: :13:3: warning: partition_dim 1 has no effect on the matmul itself
// CHECK: %[[M:.*]] = linalg.matmul
// CHECK-NEXT: "nkipy.layout"(%[[M]]) {mem_space = 3 : i32, partition_dim = 0 : i32
// CHECK: %[[C:.*]] = linalg.copy ins(%[[M]]
// CHECK-NEXT: "nkipy.layout"(%[[C]]) {given, mem_space = 3 : i32, partition_dim = 1 : i32
// CHECK: linalg.exp ins(%[[C]]
func.func @f(%a: tensor<256x128xf32>, %b: tensor<128x512xf32>, %e: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %m = linalg.matmul ins(%a, %b : tensor<256x128xf32>, tensor<128x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  "nkipy.layout"(%m) {mem_space = 3 : i32, partition_dim = 1 : i32} : (tensor<256x512xf32>) -> ()
  %r = linalg.exp ins(%m : tensor<256x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  return %r : tensor<256x512xf32>
}
