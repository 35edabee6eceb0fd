// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s
// Values of rank 0 and 1 get two dimensions.
#id1 = affine_map<(d0) -> (d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// A short vector is a row.
// CHECK-LABEL: func.func @short(
// CHECK:         %[[A:.*]] = tensor.expand_shape %arg0 {{\[\[}}0, 1]] output_shape [1, 300] : tensor<300xf32> into tensor<1x300xf32>
func.func @short(%a: tensor<300xf32>) -> tensor<300xf32> {
  %e = tensor.empty() : tensor<300xf32>
  %r = linalg.exp ins(%a : tensor<300xf32>) outs(%e : tensor<300xf32>) -> tensor<300xf32>
  %q = linalg.mul ins(%r, %a : tensor<300xf32>, tensor<300xf32>) outs(%e : tensor<300xf32>) -> tensor<300xf32>
  return %q : tensor<300xf32>
}

// A long one is spread over the partitions, and a chain stays in that form.
// CHECK-LABEL: func.func @long(
// CHECK:         %[[A:.*]] = tensor.expand_shape %arg0 {{.*}} into tensor<128x32xf32>
// CHECK:         %[[X:.*]] = linalg.exp ins(%[[A]] : tensor<128x32xf32>)
// CHECK-NOT:     collapse_shape
// CHECK:         %[[Y:.*]] = linalg.square ins(%[[X]] : tensor<128x32xf32>)
// CHECK:         %[[R:.*]] = tensor.collapse_shape %[[Y]] {{.*}} into tensor<4096xf32>
// CHECK:         return %[[R]]
func.func @long(%a: tensor<4096xf32>) -> tensor<4096xf32> {
  %e = tensor.empty() : tensor<4096xf32>
  %x = linalg.exp ins(%a : tensor<4096xf32>) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  %y = linalg.square ins(%x : tensor<4096xf32>) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  return %y : tensor<4096xf32>
}

// The sums of the rows are a column, one number in each partition, all the way to their use.
// CHECK-LABEL: func.func @column(
// CHECK:         %[[S:.*]] = linalg.generic {{.*}}"parallel", "reduction"]} ins(%arg0 : tensor<130x517xf32>) outs(%{{.*}} : tensor<130x1xf32>)
// CHECK:         %[[L:.*]] = linalg.log ins(%[[S]] : tensor<130x1xf32>)
// CHECK-NOT:     broadcast
// CHECK-NOT:     expand_shape
// CHECK:         linalg.generic {{.*}} ins(%arg0, %[[L]] : tensor<130x517xf32>, tensor<130x1xf32>)
func.func @column(%a: tensor<130x517xf32>) -> tensor<130x517xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<130xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<130xf32>) -> tensor<130xf32>
  %s = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<130x517xf32>) outs(%f : tensor<130xf32>) {
  ^bb0(%x: f32, %o: f32):
    %t = arith.addf %o, %x : f32
    linalg.yield %t : f32
  } -> tensor<130xf32>
  %l = linalg.log ins(%s : tensor<130xf32>) outs(%e : tensor<130xf32>) -> tensor<130xf32>
  %w = tensor.empty() : tensor<130x517xf32>
  %r = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]} ins(%a, %l : tensor<130x517xf32>, tensor<130xf32>) outs(%w : tensor<130x517xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %t = arith.subf %x, %y : f32
    linalg.yield %t : f32
  } -> tensor<130x517xf32>
  return %r : tensor<130x517xf32>
}

// Knobs: a tile of up to 128 elements goes over the partitions, a longer one along the row.  Values that
// are to be fused take the same form.
// CHECK-LABEL: func.func @knobs(
// CHECK:         %[[X:.*]] = linalg.exp {{.*}} -> tensor<1024x1xf32>
// CHECK-NEXT:    "nkipy.layout"(%[[X]]) {mem_space = 3 : i32, tile_size = array<i64: 64, 1>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[X]]) {loop_tile_size = array<i64: 64, 1>}
// CHECK:         %[[Y:.*]] = linalg.exp {{.*}} -> tensor<1x1024xf32>
// CHECK-NEXT:    "nkipy.layout"(%[[Y]])
// CHECK-NEXT:    "nkipy.tile_op"(%[[Y]]) {loop_tile_size = array<i64: 1, 256>}
// CHECK:         %[[Z:.*]] = linalg.abs {{.*}} -> tensor<1024x1xf32>
// CHECK:         "nkipy.fuse_op"(%[[X]], %[[Z]]) : (tensor<1024x1xf32>, tensor<1024x1xf32>)
func.func @knobs(%a: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) {
  %e = tensor.empty() : tensor<1024xf32>
  %x = linalg.exp ins(%a : tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  "nkipy.layout"(%x) {mem_space = 3 : i32, tile_size = array<i64: 64>} : (tensor<1024xf32>) -> ()
  "nkipy.tile_op"(%x) {loop_tile_size = array<i64: 64>} : (tensor<1024xf32>) -> ()
  %y = linalg.exp ins(%a : tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  "nkipy.tile_op"(%y) {loop_tile_size = array<i64: 256>} : (tensor<1024xf32>) -> ()
  %z = linalg.abs ins(%a : tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  "nkipy.fuse_op"(%x, %z) : (tensor<1024xf32>, tensor<1024xf32>) -> ()
  return %x, %y, %z : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// CHECK-LABEL: func.func @scalar(
// CHECK:         tensor.expand_shape %arg0 [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>
// CHECK:         linalg.exp {{.*}} -> tensor<1x1xf32>
// CHECK:         tensor.collapse_shape {{.*}} [] : tensor<1x1xf32> into tensor<f32>
func.func @scalar(%a: tensor<f32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<f32>
  %r = linalg.exp ins(%a : tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}

// Positions count along the row.
// CHECK-LABEL: func.func @iota(
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<1x1000xi32>)
// CHECK:         linalg.index 1 : index
func.func @iota() -> tensor<1000xi32> {
  %e = tensor.empty() : tensor<1000xi32>
  %r = linalg.generic {indexing_maps = [#id1], iterator_types = ["parallel"]} outs(%e : tensor<1000xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %c = arith.index_cast %i : index to i32
    linalg.yield %c : i32
  } -> tensor<1000xi32>
  return %r : tensor<1000xi32>
}

// CHECK-LABEL: func.func @fill(
// CHECK:         linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<128x8xf32>)
func.func @fill() -> tensor<1024xf32> {
  %c = arith.constant 3.0 : f32
  %e = tensor.empty() : tensor<1024xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  return %f : tensor<1024xf32>
}
