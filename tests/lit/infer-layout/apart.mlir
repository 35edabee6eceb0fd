// Two of the user's sizes that do not fit together both count: the value is passed on in HBM, not tile by tile.
// RUN: nkx opt --infer-layout %s 2>&1 | FileCheck %s
// CHECK: linalg.exp
// CHECK: "nkipy.layout"(%{{.*}}) {given, mem_space = 1 : i32, partition_dim = 0 : i32, tile_size = array<i64: 64, 256>}
// CHECK: "nkipy.tile_op"(%{{.*}}) {loop_tile_size = array<i64: 64, 256>}
// CHECK: linalg.square
// CHECK: "nkipy.tile_op"(%{{.*}}) {loop_tile_size = array<i64: 96, 256>}
func.func @f(%a: tensor<384x256xf32>) -> tensor<384x256xf32> {
  %e0 = tensor.empty() : tensor<384x256xf32>
  %x = linalg.exp ins(%a : tensor<384x256xf32>) outs(%e0 : tensor<384x256xf32>) -> tensor<384x256xf32>
  "nkipy.tile_op"(%x) {loop_tile_size = array<i64: 64, 256>} : (tensor<384x256xf32>) -> () loc("kernel.py":5:3 to 5:20)
  %e1 = tensor.empty() : tensor<384x256xf32>
  %y = linalg.square ins(%x : tensor<384x256xf32>) outs(%e1 : tensor<384x256xf32>) -> tensor<384x256xf32>
  "nkipy.tile_op"(%y) {loop_tile_size = array<i64: 96, 256>} : (tensor<384x256xf32>) -> () loc("kernel.py":7:3 to 7:20)
  return %y : tensor<384x256xf32>
}
