// The partition dimension becomes the first one; transposes where a chain begins and ends.
// RUN: nkx opt --canonicalize-partition-dim %s | FileCheck %s

// CHECK-LABEL: @nothing_to_do
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @nothing_to_do(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.exp ins(%x : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 256>} : (tensor<256x256xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 256>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}

// Both sides of a transpose have their first dimension across the partitions: its tile is 128 both ways.
// CHECK-LABEL: @one
// CHECK: %[[T:.*]] = linalg.transpose ins(%arg0 : tensor<256x128xf32>) outs({{.*}} : tensor<128x256xf32>) permutation = [1, 0]
// CHECK-NEXT: "nkipy.layout"(%[[T]]) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 256>}
// CHECK-NEXT: "nkipy.tile_op"(%[[T]]) {loop_tile_size = array<i64: 128, 128>}
// CHECK: %[[E:.*]] = linalg.exp ins(%[[T]] : tensor<128x256xf32>)
// CHECK-NEXT: "nkipy.layout"(%[[E]]) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 256>}
// CHECK-NEXT: "nkipy.tile_op"(%[[E]]) {loop_tile_size = array<i64: 128, 256>}
// CHECK: %[[B:.*]] = linalg.transpose ins(%[[E]] : tensor<128x256xf32>) outs({{.*}} : tensor<256x128xf32>) permutation = [1, 0]
// CHECK-NEXT: "nkipy.layout"(%[[B]]) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>}
// CHECK-NEXT: "nkipy.tile_op"(%[[B]]) {loop_tile_size = array<i64: 128, 128>}
// CHECK: return %[[B]]
func.func @one(%x: tensor<256x128xf32>) -> tensor<256x128xf32> {
  %e = tensor.empty() : tensor<256x128xf32>
  %r = linalg.exp ins(%x : tensor<256x128xf32>) outs(%e : tensor<256x128xf32>) -> tensor<256x128xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 256, 128>} : (tensor<256x128xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 256, 128>} : (tensor<256x128xf32>) -> ()
  return %r : tensor<256x128xf32>
}

// A chain: transposes only at its ends, one for an operand that is read twice.
// CHECK-LABEL: @chain
// CHECK: linalg.transpose
// CHECK-NOT: linalg.transpose
// CHECK: linalg.exp
// CHECK-NOT: linalg.transpose
// CHECK: linalg.mul
// CHECK: linalg.transpose
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @chain(%x: tensor<256x128xf32>) -> tensor<256x128xf32> {
  %e = tensor.empty() : tensor<256x128xf32>
  %a = linalg.exp ins(%x : tensor<256x128xf32>) outs(%e : tensor<256x128xf32>) -> tensor<256x128xf32>
  "nkipy.layout"(%a) {mem_space = 3 : i32, partition_dim = 1 : i32, tile_size = array<i64: 256, 128>} : (tensor<256x128xf32>) -> ()
  "nkipy.tile_op"(%a) {loop_tile_size = array<i64: 256, 128>} : (tensor<256x128xf32>) -> ()
  %f = tensor.empty() : tensor<256x128xf32>
  %r = linalg.mul ins(%a, %x : tensor<256x128xf32>, tensor<256x128xf32>) outs(%f : tensor<256x128xf32>) -> tensor<256x128xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 256, 128>} : (tensor<256x128xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 256, 128>} : (tensor<256x128xf32>) -> ()
  return %r : tensor<256x128xf32>
}

// CHECK-LABEL: @last_of_three
// CHECK: linalg.transpose ins(%arg0 : tensor<4x256x128xf32>) outs({{.*}} : tensor<128x4x256xf32>) permutation = [2, 0, 1]
// CHECK: linalg.generic
// CHECK: "nkipy.layout"({{.*}}) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 1, 256>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 1, 256>}
// CHECK: linalg.transpose ins({{.*}} : tensor<128x4x256xf32>) outs({{.*}} : tensor<4x256x128xf32>) permutation = [1, 2, 0]
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 1, 256, 128>}
func.func @last_of_three(%x: tensor<4x256x128xf32>) -> tensor<4x256x128xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x256x128xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x : tensor<4x256x128xf32>) outs(%e : tensor<4x256x128xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %i, %one : f32
    linalg.yield %v : f32
  } -> tensor<4x256x128xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 2 : i32, tile_size = array<i64: 1, 256, 128>} : (tensor<4x256x128xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 256, 128>} : (tensor<4x256x128xf32>) -> ()
  return %r : tensor<4x256x128xf32>
}

// A tile with one element before the partition dimension needs no turning.
// CHECK-LABEL: @in_place
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0, %arg1 : tensor<4x128x64xf32>, tensor<1x128x64xf32>)
// CHECK: "nkipy.layout"({{.*}}) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 64>}
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @in_place(%x: tensor<4x128x64xf32>, %y: tensor<1x128x64xf32>) -> tensor<4x128x64xf32> {
  %e = tensor.empty() : tensor<4x128x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (0, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %y : tensor<4x128x64xf32>, tensor<1x128x64xf32>) outs(%e : tensor<4x128x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %v = arith.mulf %i, %j : f32
    linalg.yield %v : f32
  } -> tensor<4x128x64xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 64>} : (tensor<4x128x64xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 128, 64>} : (tensor<4x128x64xf32>) -> ()
  return %r : tensor<4x128x64xf32>
}

// An operand with the partition dimension last turns all of them, whatever the tile.
// CHECK-LABEL: @operand_last
// CHECK: linalg.transpose ins(%arg1 : tensor<4x128xf32>) outs({{.*}} : tensor<128x4xf32>) permutation = [1, 0]
// CHECK: linalg.generic
func.func @operand_last(%x: tensor<4x128x64xf32>, %y: tensor<4x128xf32>) -> tensor<4x128x64xf32> {
  %e = tensor.empty() : tensor<4x128x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %y : tensor<4x128x64xf32>, tensor<4x128xf32>) outs(%e : tensor<4x128x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %v = arith.mulf %i, %j : f32
    linalg.yield %v : f32
  } -> tensor<4x128x64xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 128, 64>} : (tensor<4x128x64xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 1, 128, 64>} : (tensor<4x128x64xf32>) -> ()
  return %r : tensor<4x128x64xf32>
}

// A broadcast operand turns with the others.
// CHECK-LABEL: @broadcast_batch
// CHECK-DAG: linalg.transpose ins({{.*}} : tensor<4x128x64xf32>) outs({{.*}} : tensor<128x4x64xf32>) permutation = [1, 0, 2]
// CHECK-DAG: linalg.transpose ins({{.*}} : tensor<1x128x64xf32>) outs({{.*}} : tensor<128x1x64xf32>) permutation = [1, 0, 2]
// CHECK: linalg.generic
// CHECK-SAME: ins({{.*}} : tensor<128x4x64xf32>, tensor<128x1x64xf32>)
func.func @broadcast_batch(%x: tensor<4x128x64xf32>, %y: tensor<1x128x64xf32>) -> tensor<4x128x64xf32> {
  %e = tensor.empty() : tensor<4x128x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (0, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %y : tensor<4x128x64xf32>, tensor<1x128x64xf32>) outs(%e : tensor<4x128x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %v = arith.mulf %i, %j : f32
    linalg.yield %v : f32
  } -> tensor<4x128x64xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 2, 128, 64>} : (tensor<4x128x64xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 2, 128, 64>} : (tensor<4x128x64xf32>) -> ()
  return %r : tensor<4x128x64xf32>
}

// One that lacks the partition dimension is copied to all partitions.
// CHECK-LABEL: @broadcast_partitions
// CHECK: linalg.broadcast ins({{.*}} : tensor<4x64xf32>) outs({{.*}} : tensor<128x4x64xf32>) dimensions = [0]
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 2, 64>}
// CHECK: linalg.generic
// CHECK-SAME: ins({{.*}} : tensor<128x4x64xf32>, tensor<128x4x64xf32>)
func.func @broadcast_partitions(%x: tensor<4x128x64xf32>, %y: tensor<4x1x64xf32>) -> tensor<4x128x64xf32> {
  %e = tensor.empty() : tensor<4x128x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, 0, c)>, affine_map<(a, b, c) -> (a, b, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %y : tensor<4x128x64xf32>, tensor<4x1x64xf32>) outs(%e : tensor<4x128x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %v = arith.mulf %i, %j : f32
    linalg.yield %v : f32
  } -> tensor<4x128x64xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 2, 128, 64>} : (tensor<4x128x64xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 2, 128, 64>} : (tensor<4x128x64xf32>) -> ()
  return %r : tensor<4x128x64xf32>
}

// Indices in the body follow their loops.
// CHECK-LABEL: @indices
// CHECK: linalg.index 1
// CHECK: linalg.index 0
func.func @indices() -> tensor<64x128xi32> {
  %e = tensor.empty() : tensor<64x128xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<64x128xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %d = arith.subi %i, %j : index
    %v = arith.index_cast %d : index to i32
    linalg.yield %v : i32
  } -> tensor<64x128xi32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32, tile_size = array<i64: 64, 128>} : (tensor<64x128xi32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 64, 128>} : (tensor<64x128xi32>) -> ()
  return %r : tensor<64x128xi32>
}
// After infer-layout, a neighbour without a knob is turned as well: transpose, exp, add in this order.
// RUN: nkx opt --infer-layout --canonicalize-partition-dim %s | FileCheck %s --check-prefix=BOTH
// BOTH-LABEL: @inherited
// BOTH: linalg.transpose
// BOTH: linalg.exp
// BOTH-NOT: linalg.transpose
// BOTH: linalg.add
// BOTH: linalg.transpose
// BOTH: return
func.func @inherited(%x: tensor<4x128x64xf32>) -> tensor<4x128x64xf32> {
  %e0 = tensor.empty() : tensor<4x128x64xf32>
  %a = linalg.exp ins(%x : tensor<4x128x64xf32>) outs(%e0 : tensor<4x128x64xf32>) -> tensor<4x128x64xf32>
  %e1 = tensor.empty() : tensor<4x128x64xf32>
  %r = linalg.add ins(%a, %x : tensor<4x128x64xf32>, tensor<4x128x64xf32>) outs(%e1 : tensor<4x128x64xf32>) -> tensor<4x128x64xf32>
  "nkipy.layout"(%r) {partition_dim = 2 : i32} : (tensor<4x128x64xf32>) -> ()
  return %r : tensor<4x128x64xf32>
}

// Without knobs a first matmul operand is not turned: the matmul's lowering transposes it once.
// BOTH-LABEL: @feeds_matmul
// BOTH-NOT: linalg.transpose
// BOTH: return
func.func @feeds_matmul(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %x = linalg.exp ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %g = tensor.empty() : tensor<256x256xf32>
  %r = linalg.matmul ins(%x, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%g : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}
