// A weighted sum over rows is a product with the weights, and a product with one column is a sum along rows.
// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s

#all = affine_map<(a, b, c) -> (a, b, c)>
#row = affine_map<(a, b, c) -> (a, b)>
#one = affine_map<(a, b, c) -> (b)>
#out = affine_map<(a, b, c) -> (a, c)>

// Weights of their own for each matrix.
// CHECK-LABEL: func.func @own
// CHECK: linalg.batch_matmul ins(%{{.*}}, %arg0 : tensor<64x1x128xf32>, tensor<64x128x256xf32>)
// CHECK-NOT: linalg.generic
func.func @own(%x: tensor<64x128x256xf32>, %w: tensor<64x128xf32>) -> tensor<64x256xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.empty() : tensor<64x128x256xf32>
  %m = linalg.generic {indexing_maps = [#row, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%w, %x : tensor<64x128xf32>, tensor<64x128x256xf32>) outs(%p : tensor<64x128x256xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %v = arith.mulf %i, %j : f32
    linalg.yield %v : f32
  } -> tensor<64x128x256xf32>
  %e = tensor.empty() : tensor<64x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x256xf32>) -> tensor<64x256xf32>
  %r = linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "reduction", "parallel"]}
       ins(%m : tensor<64x128x256xf32>) outs(%f : tensor<64x256xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<64x256xf32>
  return %r : tensor<64x256xf32>
}

// The same weights for all matrices.
// CHECK-LABEL: func.func @same
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %arg0 : tensor<128x1xf32>, tensor<4x128x256xf32>)
func.func @same(%x: tensor<4x128x256xf32>, %w: tensor<128xf32>) -> tensor<4x256xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.empty() : tensor<4x128x256xf32>
  %m = linalg.generic {indexing_maps = [#all, #one, #all], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%x, %w : tensor<4x128x256xf32>, tensor<128xf32>) outs(%p : tensor<4x128x256xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %v = arith.mulf %i, %j : f32
    linalg.yield %v : f32
  } -> tensor<4x128x256xf32>
  %e = tensor.empty() : tensor<4x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x256xf32>) -> tensor<4x256xf32>
  %r = linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "reduction", "parallel"]}
       ins(%m : tensor<4x128x256xf32>) outs(%f : tensor<4x256xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<4x256xf32>
  return %r : tensor<4x256xf32>
}

// Many products of two rows would each be a transfer: one instruction computes 128 of them.
// CHECK-LABEL: func.func @many
// CHECK-NOT: linalg.batch_matmul
// CHECK: arith.mulf
func.func @many(%x: tensor<2048x2x512xf32>, %w: tensor<2048x2xf32>) -> tensor<2048x512xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.empty() : tensor<2048x2x512xf32>
  %m = linalg.generic {indexing_maps = [#row, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
       ins(%w, %x : tensor<2048x2xf32>, tensor<2048x2x512xf32>) outs(%p : tensor<2048x2x512xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %v = arith.mulf %i, %j : f32
    linalg.yield %v : f32
  } -> tensor<2048x2x512xf32>
  %e = tensor.empty() : tensor<2048x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2048x512xf32>) -> tensor<2048x512xf32>
  %r = linalg.generic {indexing_maps = [#all, #out], iterator_types = ["parallel", "reduction", "parallel"]}
       ins(%m : tensor<2048x2x512xf32>) outs(%f : tensor<2048x512xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<2048x512xf32>
  return %r : tensor<2048x512xf32>
}

// Weights for each element are no weights of rows.
// CHECK-LABEL: func.func @each
// CHECK: arith.mulf
func.func @each(%x: tensor<128x256xf32>, %w: tensor<128x256xf32>) -> tensor<256xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.empty() : tensor<128x256xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
       ins(%w, %x : tensor<128x256xf32>, tensor<128x256xf32>) outs(%p : tensor<128x256xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %v = arith.mulf %i, %j : f32
    linalg.yield %v : f32
  } -> tensor<128x256xf32>
  %e = tensor.empty() : tensor<256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (b)>], iterator_types = ["reduction", "parallel"]}
       ins(%m : tensor<128x256xf32>) outs(%f : tensor<256xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = arith.addf %o, %i : f32
    linalg.yield %v : f32
  } -> tensor<256xf32>
  return %r : tensor<256xf32>
}

// One column.
// CHECK-LABEL: func.func @column
// CHECK: linalg.generic {{.*}} ins(%arg0, %{{.*}} : tensor<8192x256xf32>, tensor<1x256xf32>)
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK-NOT: linalg.matmul
func.func @column(%x: tensor<8192x256xf32>, %q: tensor<256x1xf32>) -> tensor<8192x1xf32> {
  %e = tensor.empty() : tensor<8192x1xf32>
  %r = linalg.matmul ins(%x, %q : tensor<8192x256xf32>, tensor<256x1xf32>) outs(%e : tensor<8192x1xf32>) -> tensor<8192x1xf32>
  return %r : tensor<8192x1xf32>
}

// Few rows of one matrix, and long rows, are products.
// CHECK-LABEL: func.func @rows
// CHECK-COUNT-2: linalg.matmul
func.func @rows(%x: tensor<1024x256xf32>, %q: tensor<256x1xf32>, %y: tensor<8192x1024xf32>, %p: tensor<1024x1xf32>) -> (tensor<1024x1xf32>, tensor<8192x1xf32>) {
  %e = tensor.empty() : tensor<1024x1xf32>
  %f = tensor.empty() : tensor<8192x1xf32>
  %0 = linalg.matmul ins(%x, %q : tensor<1024x256xf32>, tensor<256x1xf32>) outs(%e : tensor<1024x1xf32>) -> tensor<1024x1xf32>
  %1 = linalg.matmul ins(%y, %p : tensor<8192x1024xf32>, tensor<1024x1xf32>) outs(%f : tensor<8192x1xf32>) -> tensor<8192x1xf32>
  return %0, %1 : tensor<1024x1xf32>, tensor<8192x1xf32>
}

// The matrix of two products is transposed for both; two columns, and other types, are products.
// CHECK-LABEL: func.func @products
// CHECK-COUNT-4: linalg.matmul
func.func @products(%x: tensor<8192x256xf32>, %q: tensor<256x1xf32>, %p: tensor<256x1xf32>, %two: tensor<256x2xf32>, %y: tensor<8192x256xf32>,
                    %b: tensor<8192x256xbf16>, %c: tensor<256x1xbf16>)
    -> (tensor<8192x1xf32>, tensor<8192x1xf32>, tensor<8192x2xf32>, tensor<8192x1xf32>) {
  %e = tensor.empty() : tensor<8192x1xf32>
  %g = tensor.empty() : tensor<8192x2xf32>
  %0 = linalg.matmul ins(%x, %q : tensor<8192x256xf32>, tensor<256x1xf32>) outs(%e : tensor<8192x1xf32>) -> tensor<8192x1xf32>
  %1 = linalg.matmul ins(%x, %p : tensor<8192x256xf32>, tensor<256x1xf32>) outs(%e : tensor<8192x1xf32>) -> tensor<8192x1xf32>
  %2 = linalg.matmul ins(%y, %two : tensor<8192x256xf32>, tensor<256x2xf32>) outs(%g : tensor<8192x2xf32>) -> tensor<8192x2xf32>
  %3 = linalg.matmul ins(%b, %c : tensor<8192x256xbf16>, tensor<256x1xbf16>) outs(%e : tensor<8192x1xf32>) -> tensor<8192x1xf32>
  return %0, %1, %2, %3 : tensor<8192x1xf32>, tensor<8192x1xf32>, tensor<8192x2xf32>, tensor<8192x1xf32>
}
