// Two users of one undefined tensor get a buffer each: the second matmul must not start from what the first has left.
// RUN: nkx opt --one-shot-bufferize %s | FileCheck %s
func.func @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8x8xf32>
  %p = linalg.matmul ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %x = linalg.exp ins(%p : tensor<8x8xf32>) outs(%e1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %q = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %q : tensor<8x8xf32>
}
// CHECK-COUNT-3: memref.alloc()
// CHECK:         linalg.matmul {{.*}} outs(%[[P:.*]] : memref<8x8xf32>)
// CHECK-NOT:     outs(%[[P]] :
// CHECK:         return
