// Without any knob the script is empty.
// RUN: nkx opt --knob-driven-tiling %s | FileCheck %s
// CHECK:      module attributes {transform.with_named_sequence}
// CHECK:      transform.named_sequence @__transform_main
// CHECK-NEXT:   transform.yield
func.func @f(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %r = linalg.exp {nkipy.op_id = 0 : i64} ins(%a : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
