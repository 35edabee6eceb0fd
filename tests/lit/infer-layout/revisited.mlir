// A returned reduction over the first of three dimensions is computed in SBUF, and a copy is returned.
// RUN: nkx opt --infer-layout --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#rest = affine_map<(d0, d1, d2) -> (d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d0, d1)>

// REMARK: reduced in SBUF and copied to HBM at the end
// REMARK: 64 writes of each tile
// CHECK-LABEL: func.func @first
// CHECK: %[[R:.*]] = linalg.generic
// CHECK: "nkipy.layout"(%[[R]]) {mem_space = 3
// CHECK: %[[C:.*]] = linalg.copy ins(%[[R]]
// CHECK: "nkipy.layout"(%[[C]]) {mem_space = 4
// CHECK: return %[[C]]
func.func @first(%x: tensor<64x128x256xf32>, %i: tensor<128x256xf32>) -> tensor<128x256xf32> {
  %r = linalg.generic {indexing_maps = [#all, #rest], iterator_types = ["reduction", "parallel", "parallel"]} ins(%x : tensor<64x128x256xf32>) outs(%i : tensor<128x256xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %b, %a : f32
    linalg.yield %m : f32
  } -> tensor<128x256xf32>
  return %r : tensor<128x256xf32>
}

// The last dimension is the innermost loop: each tile is written once.
// CHECK-LABEL: func.func @last
// CHECK-NOT: linalg.copy
func.func @last(%x: tensor<64x128x256xf32>, %i: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %r = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<64x128x256xf32>) outs(%i : tensor<64x128xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %b, %a : f32
    linalg.yield %m : f32
  } -> tensor<64x128xf32>
  return %r : tensor<64x128xf32>
}

// A knob says where the value is.
// CHECK-LABEL: func.func @knob
// CHECK-NOT: linalg.copy
func.func @knob(%x: tensor<64x128x256xf32>, %i: tensor<128x256xf32>) -> tensor<128x256xf32> {
  %r = linalg.generic {indexing_maps = [#all, #rest], iterator_types = ["reduction", "parallel", "parallel"]} ins(%x : tensor<64x128x256xf32>) outs(%i : tensor<128x256xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %b, %a : f32
    linalg.yield %m : f32
  } -> tensor<128x256xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32} : (tensor<128x256xf32>) -> ()
  return %r : tensor<128x256xf32>
}

// It does not fit.
// CHECK-LABEL: func.func @large
// CHECK-NOT: linalg.copy
func.func @large(%x: tensor<4x4096x2048xf32>, %i: tensor<4096x2048xf32>) -> tensor<4096x2048xf32> {
  %r = linalg.generic {indexing_maps = [#all, #rest], iterator_types = ["reduction", "parallel", "parallel"]} ins(%x : tensor<4x4096x2048xf32>) outs(%i : tensor<4096x2048xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %b, %a : f32
    linalg.yield %m : f32
  } -> tensor<4096x2048xf32>
  return %r : tensor<4096x2048xf32>
}
