// RUN: nkx opt --remove-redundant-zero-fill %s | FileCheck %s
// A loop without an iteration computes nothing: who reads the result reads the init, annotations go.

// CHECK-LABEL: func.func @exp
// CHECK-NEXT:    %[[E:.*]] = tensor.empty() : tensor<0x4xf32>
// CHECK-NEXT:    return %[[E]]
func.func @exp(%a: tensor<0x4xf32>) -> tensor<0x4xf32> {
  %e = tensor.empty() : tensor<0x4xf32>
  %r = linalg.exp ins(%a : tensor<0x4xf32>) outs(%e : tensor<0x4xf32>) -> tensor<0x4xf32>
  "nkipy.layout"(%r) {mem_space = 3 : i32} : (tensor<0x4xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 4>} : (tensor<0x4xf32>) -> ()
  "nkipy.fuse_op"(%r, %r) : (tensor<0x4xf32>, tensor<0x4xf32>) -> ()
  return %r : tensor<0x4xf32>
}

// The sum over nothing is zero, so this fill stays.
// CHECK-LABEL: func.func @matmul
// CHECK:         %[[F:.*]] = linalg.fill
// CHECK-NOT:     linalg.matmul
// CHECK:         return %[[F]]
func.func @matmul(%a: tensor<3x0xf32>, %b: tensor<0x5xf32>) -> tensor<3x5xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %r = linalg.matmul ins(%a, %b : tensor<3x0xf32>, tensor<0x5xf32>) outs(%f : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}

// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    %[[E:.*]] = tensor.empty() : tensor<4x0xf32>
// CHECK-NEXT:    return %[[E]]
func.func @chain(%a: tensor<0x4xf32>) -> tensor<4x0xf32> {
  %e = tensor.empty() : tensor<0x4xf32>
  %x = linalg.exp ins(%a : tensor<0x4xf32>) outs(%e : tensor<0x4xf32>) -> tensor<0x4xf32>
  %t = tensor.empty() : tensor<4x0xf32>
  %r = linalg.transpose ins(%x : tensor<0x4xf32>) outs(%t : tensor<4x0xf32>) permutation = [1, 0]
  return %r : tensor<4x0xf32>
}
