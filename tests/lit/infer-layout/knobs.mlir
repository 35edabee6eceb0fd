// What the user says stays, reaches the neighbours, and is completed in place.
// RUN: nkx opt --infer-layout %s | FileCheck %s

// A knob on the last of a chain reaches back through it.
// CHECK-LABEL: @gated
// CHECK: linalg.generic
// CHECK: tile_size = array<i64: 128, 128>
// CHECK: linalg.exp
// CHECK-NEXT: {{.*}}tile_size = array<i64: 128, 128>
// CHECK: linalg.generic
// CHECK: tile_size = array<i64: 128, 128>
// CHECK: linalg.reciprocal
// CHECK-NEXT: {{.*}}tile_size = array<i64: 128, 128>
// CHECK: linalg.mul
// CHECK-NEXT: {{.*}}tile_size = array<i64: 128, 128>
// CHECK: linalg.mul
// CHECK-NEXT: {{.*}}mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>
func.func @gated(%gate: tensor<256x256xf32>, %up: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %one = arith.constant 1.0 : f32
  %e0 = tensor.empty() : tensor<256x256xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
       ins(%gate : tensor<256x256xf32>) outs(%e0 : tensor<256x256xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.negf %i : f32
    linalg.yield %v : f32
  } -> tensor<256x256xf32>
  %e1 = tensor.empty() : tensor<256x256xf32>
  %x = linalg.exp ins(%n : tensor<256x256xf32>) outs(%e1 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e2 = tensor.empty() : tensor<256x256xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<256x256xf32>) outs(%e2 : tensor<256x256xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %i, %one : f32
    linalg.yield %v : f32
  } -> tensor<256x256xf32>
  %e3 = tensor.empty() : tensor<256x256xf32>
  %q = linalg.reciprocal ins(%p : tensor<256x256xf32>) outs(%e3 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e4 = tensor.empty() : tensor<256x256xf32>
  %s = linalg.mul ins(%gate, %q : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e4 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e5 = tensor.empty() : tensor<256x256xf32>
  %r = linalg.mul ins(%s, %up : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e5 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.layout"(%r) {mem_space = 3 : i32, tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}

// Between two knobs: matmul (knob), exp, +y (knob).
// CHECK-LABEL: @between
// CHECK: linalg.matmul
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>}
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>}
// CHECK: linalg.add
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>}
func.func @between(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>, %y: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e0 = tensor.empty() : tensor<256x256xf32>
  %m = linalg.matmul ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%m) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.layout"(%m) {mem_space = 3 : i32} : (tensor<256x256xf32>) -> ()
  %e1 = tensor.empty() : tensor<256x256xf32>
  %x = linalg.exp ins(%m : tensor<256x256xf32>) outs(%e1 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e2 = tensor.empty() : tensor<256x256xf32>
  %r = linalg.add ins(%x, %y : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e2 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.layout"(%r) {mem_space = 4 : i32} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}

// Forwards: exp (knob), square, + y.
// CHECK-LABEL: @forward
// CHECK-COUNT-3: loop_tile_size = array<i64: 64, 128>
func.func @forward(%x: tensor<256x256xf32>, %y: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e0 = tensor.empty() : tensor<256x256xf32>
  %a = linalg.exp ins(%x : tensor<256x256xf32>) outs(%e0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%a) {loop_tile_size = array<i64: 64, 128>} : (tensor<256x256xf32>) -> ()
  %e1 = tensor.empty() : tensor<256x256xf32>
  %b = linalg.square ins(%a : tensor<256x256xf32>) outs(%e1 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e2 = tensor.empty() : tensor<256x256xf32>
  %r = linalg.add ins(%b, %y : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e2 : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// Two of the user's sizes that differ stay as they are if one divides the other.
// CHECK-LABEL: @two_sizes
// CHECK: linalg.add
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 128>}
// CHECK: linalg.add
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 64, 64>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 64, 64>}
func.func @two_sizes(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>, %c: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e0 = tensor.empty() : tensor<256x256xf32>
  %x = linalg.add ins(%a, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%x) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  "nkipy.layout"(%x) {mem_space = 3 : i32} : (tensor<256x256xf32>) -> ()
  %e1 = tensor.empty() : tensor<256x256xf32>
  %y = linalg.add ins(%x, %c : tensor<256x256xf32>, tensor<256x256xf32>) outs(%e1 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%y) {loop_tile_size = array<i64: 64, 64>} : (tensor<256x256xf32>) -> ()
  "nkipy.layout"(%y) {mem_space = 4 : i32} : (tensor<256x256xf32>) -> ()
  return %y : tensor<256x256xf32>
}

// A layout that says only where is completed, not doubled, and so are two layouts of one value; both annotations end
// directly behind the definition.
// CHECK-LABEL: @completed
// CHECK: %[[X:.*]] = linalg.exp
// CHECK-NEXT: "nkipy.layout"(%[[X]]) {given, mem_space = 1 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 256>}
// CHECK-NEXT: "nkipy.tile_op"(%[[X]]) {loop_tile_size = array<i64: 128, 256>}
// CHECK-NOT: "nkipy.layout"(%[[X]])
// CHECK: %[[Y:.*]] = linalg.square
// CHECK-NEXT: "nkipy.layout"(%[[Y]]) {given, mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 64, 256>}
// CHECK-NEXT: "nkipy.tile_op"(%[[Y]]) {loop_tile_size = array<i64: 64, 256>}
// CHECK-NEXT: return
func.func @completed(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e0 = tensor.empty() : tensor<256x256xf32>
  %a = linalg.exp ins(%x : tensor<256x256xf32>) outs(%e0 : tensor<256x256xf32>) -> tensor<256x256xf32>
  %e1 = tensor.empty() : tensor<256x256xf32>
  "nkipy.layout"(%a) {mem_space = 1 : i32} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%a) {loop_tile_size = array<i64: 128, 256>} : (tensor<256x256xf32>) -> ()
  %b = linalg.square ins(%a : tensor<256x256xf32>) outs(%e1 : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%b) {mem_space = 4 : i32} : (tensor<256x256xf32>) -> ()
  "nkipy.layout"(%b) {tile_size = array<i64: 64, 256>} : (tensor<256x256xf32>) -> ()
  return %b : tensor<256x256xf32>
}
