// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s
// RUN: nkx opt --remarks --prepare-arithmetic %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK-COUNT-1: the 2 leading dimensions are one of 32
// REMARK-NOT: leading dimensions

// Sums of 4 x 8 groups, and what reads them: 32 rows.  A number for each of the 8 is repeated for each of the 4.
// CHECK-LABEL: func.func @group
// CHECK: tensor.collapse_shape %arg0 {{\[\[}}0, 1], [2, 3]] : tensor<4x8x6x10xf32> into tensor<32x60xf32>
// CHECK: iterator_types = ["parallel", "reduction"]} ins({{.*}} : tensor<32x60xf32>) outs({{.*}} : tensor<32x1xf32>)
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<1x8xf32>) outs({{.*}} : tensor<4x8xf32>)
// CHECK: ins({{.*}} : tensor<32x60xf32>, tensor<32x1xf32>, tensor<32x1xf32>) outs({{.*}} : tensor<32x60xf32>)
// CHECK: tensor.expand_shape {{.*}} : tensor<32x60xf32> into tensor<4x8x6x10xf32>
func.func @group(%x: tensor<4x8x6x10xf32>, %g: tensor<8xf32>) -> tensor<4x8x6x10xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<4x8x6x10xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %y = arith.addf %i, %o : f32
    linalg.yield %y : f32
  } -> tensor<4x8xf32>
  %r = tensor.empty() : tensor<4x8x6x10xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b)>, affine_map<(a, b, c, d) -> (b)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%x, %s, %g : tensor<4x8x6x10xf32>, tensor<4x8xf32>, tensor<8xf32>) outs(%r : tensor<4x8x6x10xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32, %o: f32):
    %d = arith.subf %i, %j : f32
    %y = arith.mulf %d, %k : f32
    linalg.yield %y : f32
  } -> tensor<4x8x6x10xf32>
  return %z : tensor<4x8x6x10xf32>
}

// A product reads the normalised values as matrices of a batch: they stay.
// CHECK-LABEL: func.func @product
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<4x8x16xf32>)
func.func @product(%x: tensor<4x8x16xf32>, %w: tensor<4x16x5xf32>) -> tensor<4x8x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<4x8x16xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %y = arith.addf %i, %o : f32
    linalg.yield %y : f32
  } -> tensor<4x8xf32>
  %r = tensor.empty() : tensor<4x8x16xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %s : tensor<4x8x16xf32>, tensor<4x8xf32>) outs(%r : tensor<4x8x16xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %d = arith.subf %i, %j : f32
    linalg.yield %d : f32
  } -> tensor<4x8x16xf32>
  %p = tensor.empty() : tensor<4x8x5xf32>
  %q = linalg.fill ins(%zero : f32) outs(%p : tensor<4x8x5xf32>) -> tensor<4x8x5xf32>
  %m = linalg.batch_matmul ins(%z, %w : tensor<4x8x16xf32>, tensor<4x16x5xf32>) outs(%q : tensor<4x8x5xf32>) -> tensor<4x8x5xf32>
  return %m : tensor<4x8x5xf32>
}

// The same through a reshape, as of the heads of attention.
// CHECK-LABEL: func.func @product_of_heads
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins({{.*}} : tensor<2x2x8x16xf32>)
func.func @product_of_heads(%a: tensor<4x8x5xf32>, %b: tensor<4x5x16xf32>) -> tensor<2x2x8xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.empty() : tensor<4x8x16xf32>
  %q = linalg.fill ins(%zero : f32) outs(%p : tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  %m = linalg.batch_matmul ins(%a, %b : tensor<4x8x5xf32>, tensor<4x5x16xf32>) outs(%q : tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  %x = tensor.expand_shape %m [[0, 1], [2], [3]] output_shape [2, 2, 8, 16] : tensor<4x8x16xf32> into tensor<2x2x8x16xf32>
  %e = tensor.empty() : tensor<2x2x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2x8xf32>) -> tensor<2x2x8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x : tensor<2x2x8x16xf32>) outs(%f : tensor<2x2x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %y = arith.addf %i, %o : f32
    linalg.yield %y : f32
  } -> tensor<2x2x8xf32>
  return %s : tensor<2x2x8xf32>
}

// A knob names the dimensions: they stay.
// CHECK-LABEL: func.func @knob
// CHECK: ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<4x8x16xf32>)
func.func @knob(%x: tensor<4x8x16xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<4x8x16xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %y = arith.addf %i, %o : f32
    linalg.yield %y : f32
  } -> tensor<4x8xf32>
  "nkipy.layout"(%s) {mem_space = 3 : i32, partition_dim = 0 : i32} : (tensor<4x8xf32>) -> ()
  return %s : tensor<4x8xf32>
}

// Many short rows of which only sums and what is computed with these is wanted: each partition gets neighbouring rows.
// REMARK: each partition has 32 neighbouring rows of 4096
// CHECK-LABEL: func.func @means
// CHECK: tensor.expand_shape {{.*}} into tensor<128x32x196xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<128x32x196xf32>) outs(%{{.*}} : tensor<128x32x1xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<128x32x1xf32>) outs(%{{.*}} : tensor<128x32x1xf32>)
func.func @means(%x: tensor<8x512x14x14xf32>) -> tensor<8x512xf32> {
  %zero = arith.constant 0.0 : f32
  %part = arith.constant 5.1e-03 : f32
  %e = tensor.empty() : tensor<8x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x512xf32>) -> tensor<8x512xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%x : tensor<8x512x14x14xf32>) outs(%f : tensor<8x512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<8x512xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<8x512xf32>) outs(%e : tensor<8x512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %part : f32
    linalg.yield %r : f32
  } -> tensor<8x512xf32>
  return %m : tensor<8x512xf32>
}

// Where the rows are read again, and where all instructions are written out, the rows stay.
// CHECK-LABEL: func.func @stay_as_rows
// CHECK-NOT: 128x32x196
// CHECK: return
func.func @stay_as_rows(%x: tensor<4096x196xf32>, %y: tensor<4096x196xf32>) -> (tensor<4096x196xf32>, tensor<4096xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4096x196xf32>) outs(%f : tensor<4096xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<4096xf32>
  %g = tensor.empty() : tensor<4096x196xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<4096x196xf32>, tensor<4096xf32>) outs(%g : tensor<4096x196xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<4096x196xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<4096x196xf32>) outs(%f : tensor<4096xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %o : f32
    linalg.yield %r : f32
  } -> tensor<4096xf32>
  return %m, %t : tensor<4096x196xf32>, tensor<4096xf32>
}
