// Nobody says anything: 128 partitions, and the other dimensions in one run as far as it holds them.
// RUN: nkx opt --infer-layout %s | FileCheck %s

// CHECK-LABEL: @returned
// CHECK: %[[V:.*]] = linalg.exp
// CHECK-NEXT: "nkipy.layout"(%[[V]]) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 256>}
// CHECK-NEXT: "nkipy.tile_op"(%[[V]]) {loop_tile_size = array<i64: 128, 256>}
// CHECK-NEXT: return %[[V]]
func.func @returned(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.exp ins(%x : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// CHECK-LABEL: @chain
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 64, 512>}
// CHECK-NEXT: "nkipy.tile_op"
// CHECK: linalg.square
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 64, 512>}
func.func @chain(%x: tensor<64x512xf32>) -> tensor<64x512xf32> {
  %e = tensor.empty() : tensor<64x512xf32>
  %a = linalg.exp ins(%x : tensor<64x512xf32>) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
  %f = tensor.empty() : tensor<64x512xf32>
  %b = linalg.square ins(%a : tensor<64x512xf32>) outs(%f : tensor<64x512xf32>) -> tensor<64x512xf32>
  return %b : tensor<64x512xf32>
}

// CHECK-LABEL: @three_dimensions
// CHECK: loop_tile_size = array<i64: 128, 4, 256>
func.func @three_dimensions(%x: tensor<128x4x256xf32>) -> tensor<128x4x256xf32> {
  %e = tensor.empty() : tensor<128x4x256xf32>
  %r = linalg.exp ins(%x : tensor<128x4x256xf32>) outs(%e : tensor<128x4x256xf32>) -> tensor<128x4x256xf32>
  return %r : tensor<128x4x256xf32>
}

// Sizes that no tile divides leave tails.
// CHECK-LABEL: @tails
// CHECK: loop_tile_size = array<i64: 128, 517>
func.func @tails(%x: tensor<130x517xf32>) -> tensor<130x517xf32> {
  %e = tensor.empty() : tensor<130x517xf32>
  %r = linalg.exp ins(%x : tensor<130x517xf32>) outs(%e : tensor<130x517xf32>) -> tensor<130x517xf32>
  return %r : tensor<130x517xf32>
}

// CHECK-LABEL: @tiny
// CHECK: loop_tile_size = array<i64: 7, 1>
func.func @tiny(%x: tensor<7x1xbf16>) -> tensor<7x1xbf16> {
  %e = tensor.empty() : tensor<7x1xbf16>
  %r = linalg.exp ins(%x : tensor<7x1xbf16>) outs(%e : tensor<7x1xbf16>) -> tensor<7x1xbf16>
  return %r : tensor<7x1xbf16>
}

// A long row is cut so that a handful of tile buffers fits into SBUF: at most 2048, in equal parts if that comes out even.
// CHECK-LABEL: @long_rows
// CHECK: linalg.exp
// CHECK: loop_tile_size = array<i64: 128, 1500>
// CHECK: linalg.abs
// CHECK: loop_tile_size = array<i64: 128, 2048>
func.func @long_rows(%x: tensor<128x3000xf32>, %y: tensor<128x5000xf32>) -> (tensor<128x3000xf32>, tensor<128x5000xf32>) {
  %e = tensor.empty() : tensor<128x3000xf32>
  %r = linalg.exp ins(%x : tensor<128x3000xf32>) outs(%e : tensor<128x3000xf32>) -> tensor<128x3000xf32>
  %f = tensor.empty() : tensor<128x5000xf32>
  %s = linalg.abs ins(%y : tensor<128x5000xf32>) outs(%f : tensor<128x5000xf32>) -> tensor<128x5000xf32>
  return %r, %s : tensor<128x3000xf32>, tensor<128x5000xf32>
}

// A broadcast operand has its own, smaller tile.
// CHECK-LABEL: @per_partition_scalar
// CHECK: linalg.sqrt
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 1>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 1>}
// CHECK: linalg.generic
// CHECK: loop_tile_size = array<i64: 128, 256>
func.func @per_partition_scalar(%x: tensor<256x256xf32>, %y: tensor<256x1xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x1xf32>
  %s = linalg.sqrt ins(%y : tensor<256x1xf32>) outs(%e : tensor<256x1xf32>) -> tensor<256x1xf32>
  %f = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, 0)>, affine_map<(a, b) -> (a, b)>],
                       iterator_types = ["parallel", "parallel"]}
       ins(%x, %s : tensor<256x256xf32>, tensor<256x1xf32>) outs(%f : tensor<256x256xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    linalg.yield %m : f32
  } -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// A gather is an element-wise operation; the table that its body reads is in HBM.
// CHECK-LABEL: @gather
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 1 : i32
// CHECK: linalg.generic
// CHECK: loop_tile_size = array<i64: 64, 256>
func.func @gather(%t: tensor<1000x256xf32>, %i: tensor<64xi32>) -> tensor<64x256xf32> {
  %e = tensor.empty() : tensor<1000x256xf32>
  %u = linalg.exp ins(%t : tensor<1000x256xf32>) outs(%e : tensor<1000x256xf32>) -> tensor<1000x256xf32>
  %f = tensor.empty() : tensor<64x256xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
                       iterator_types = ["parallel", "parallel"]}
       ins(%i : tensor<64xi32>) outs(%f : tensor<64x256xf32>) {
  ^bb0(%k: i32, %o: f32):
    %row = arith.index_cast %k : i32 to index
    %col = linalg.index 1 : index
    %v = tensor.extract %u[%row, %col] : tensor<1000x256xf32>
    linalg.yield %v : f32
  } -> tensor<64x256xf32>
  return %r : tensor<64x256xf32>
}

// Transposes and broadcasts get tiles, too: at most two dimensions of a transpose are not 1.  Those of a matrix are long,
// and 128 rows of such a tile lie in SBUF.
// CHECK-LABEL: @movers
// CHECK: linalg.transpose
// CHECK: tile_size = array<i64: 128, 256>
// CHECK: loop_tile_size = array<i64: 512, 256>
// CHECK: linalg.transpose
// CHECK: loop_tile_size = array<i64: 1, 128, 128>
// CHECK: linalg.transpose
// CHECK: loop_tile_size = array<i64: 128, 1, 200>
// CHECK: linalg.broadcast
// CHECK: loop_tile_size = array<i64: 128, 512>
func.func @movers(%x: tensor<256x512xf32>, %y: tensor<4x300x200xf32>, %z: tensor<512xf32>)
    -> (tensor<512x256xf32>, tensor<4x200x300xf32>, tensor<300x4x200xf32>, tensor<256x512xf32>) {
  %e = tensor.empty() : tensor<512x256xf32>
  %a = linalg.transpose ins(%x : tensor<256x512xf32>) outs(%e : tensor<512x256xf32>) permutation = [1, 0]
  %f = tensor.empty() : tensor<4x200x300xf32>
  %b = linalg.transpose ins(%y : tensor<4x300x200xf32>) outs(%f : tensor<4x200x300xf32>) permutation = [0, 2, 1]
  %g = tensor.empty() : tensor<300x4x200xf32>
  %c = linalg.transpose ins(%y : tensor<4x300x200xf32>) outs(%g : tensor<300x4x200xf32>) permutation = [1, 0, 2]
  %h = tensor.empty() : tensor<256x512xf32>
  %d = linalg.broadcast ins(%z : tensor<512xf32>) outs(%h : tensor<256x512xf32>) dimensions = [0]
  return %a, %b, %c, %d : tensor<512x256xf32>, tensor<4x200x300xf32>, tensor<300x4x200xf32>, tensor<256x512xf32>
}
