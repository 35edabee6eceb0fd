// A product of images and a matrix takes the images as its right operand, as they lie, and makes images: nothing is turned.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// CHECK-DAG: #[[LEFT:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
// CHECK-DAG: #[[RIGHT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
// CHECK-DAG: #[[TURNED:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>

// einsum 'nchw,oc->nohw': a product for each image; the matrix is the left operand from before its transpose.
// REMARK: the images are the right operand as they lie: M=256, N=784, K=128, in batches
// CHECK-LABEL: func.func @images
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0 {{.*}} into tensor<4x128x784xf32>
// CHECK: %[[Y:.*]] = linalg.contract indexing_maps = [#[[LEFT]], #[[RIGHT]], #{{.*}}] ins(%arg1, %[[X]] : tensor<256x128xf32>, tensor<4x128x784xf32>)
// CHECK: tensor.expand_shape %[[Y]] {{.*}} into tensor<4x256x28x28xf32>
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @images(%x: tensor<4x128x28x28xf32>, %w: tensor<256x128xf32>) -> tensor<4x256x28x28xf32> {
  %e = tensor.empty() : tensor<4x28x28x128xf32>
  %t = linalg.transpose ins(%x : tensor<4x128x28x28xf32>) outs(%e : tensor<4x28x28x128xf32>) permutation = [0, 2, 3, 1]
  %a = tensor.collapse_shape %t [[0, 1, 2], [3]] : tensor<4x28x28x128xf32> into tensor<3136x128xf32>
  %f = tensor.empty() : tensor<128x256xf32>
  %b = linalg.transpose ins(%w : tensor<256x128xf32>) outs(%f : tensor<128x256xf32>) permutation = [1, 0]
  %g = tensor.empty() : tensor<3136x256xf32>
  %c = linalg.matmul ins(%a, %b : tensor<3136x128xf32>, tensor<128x256xf32>) outs(%g : tensor<3136x256xf32>) -> tensor<3136x256xf32>
  %d = tensor.expand_shape %c [[0, 1, 2], [3]] output_shape [4, 28, 28, 256] : tensor<3136x256xf32> into tensor<4x28x28x256xf32>
  %h = tensor.empty() : tensor<4x256x28x28xf32>
  %y = linalg.transpose ins(%d : tensor<4x28x28x256xf32>) outs(%h : tensor<4x256x28x28xf32>) permutation = [0, 3, 1, 2]
  return %y : tensor<4x256x28x28xf32>
}

// One image: one product. A matrix that was not transposed is [K, M].
// CHECK-LABEL: func.func @one
// CHECK: linalg.matmul indexing_maps = [#[[TURNED]], #{{.*}}, #{{.*}}] ins(%arg1, %{{.*}} : tensor<576x64xf32>, tensor<576x784xf32>)
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @one(%x: tensor<1x64x9x28x28xf32>, %w: tensor<576x64xf32>) -> tensor<1x64x28x28xf32> {
  %e = tensor.empty() : tensor<1x28x28x64x9xf32>
  %t = linalg.transpose ins(%x : tensor<1x64x9x28x28xf32>) outs(%e : tensor<1x28x28x64x9xf32>) permutation = [0, 3, 4, 1, 2]
  %a = tensor.collapse_shape %t [[0, 1, 2], [3, 4]] : tensor<1x28x28x64x9xf32> into tensor<784x576xf32>
  %g = tensor.empty() : tensor<784x64xf32>
  %c = linalg.matmul ins(%a, %w : tensor<784x576xf32>, tensor<576x64xf32>) outs(%g : tensor<784x64xf32>) -> tensor<784x64xf32>
  %d = tensor.expand_shape %c [[0, 1, 2], [3]] output_shape [1, 28, 28, 64] : tensor<784x64xf32> into tensor<1x28x28x64xf32>
  %h = tensor.empty() : tensor<1x64x28x28xf32>
  %y = linalg.transpose ins(%d : tensor<1x28x28x64xf32>) outs(%h : tensor<1x64x28x28xf32>) permutation = [0, 3, 1, 2]
  return %y : tensor<1x64x28x28xf32>
}

// einsum 'oc,nchw->nohw': the images are on the right, but not in their order.
// CHECK-LABEL: func.func @right
// CHECK: linalg.contract indexing_maps = [#[[LEFT]], #[[RIGHT]], #{{.*}}] ins(%arg1, %{{.*}} : tensor<256x128xf32>, tensor<4x128x784xf32>)
// CHECK-NOT: linalg.transpose
// CHECK: return
func.func @right(%x: tensor<4x128x784xf32>, %w: tensor<256x128xf32>) -> tensor<4x256x784xf32> {
  %e = tensor.empty() : tensor<128x4x784xf32>
  %t = linalg.transpose ins(%x : tensor<4x128x784xf32>) outs(%e : tensor<128x4x784xf32>) permutation = [1, 0, 2]
  %a = tensor.collapse_shape %t [[0], [1, 2]] : tensor<128x4x784xf32> into tensor<128x3136xf32>
  %g = tensor.empty() : tensor<256x3136xf32>
  %c = linalg.matmul ins(%w, %a : tensor<256x128xf32>, tensor<128x3136xf32>) outs(%g : tensor<256x3136xf32>) -> tensor<256x3136xf32>
  %d = tensor.expand_shape %c [[0], [1, 2]] output_shape [256, 4, 784] : tensor<256x3136xf32> into tensor<256x4x784xf32>
  %h = tensor.empty() : tensor<4x256x784xf32>
  %y = linalg.transpose ins(%d : tensor<256x4x784xf32>) outs(%h : tensor<4x256x784xf32>) permutation = [1, 0, 2]
  return %y : tensor<4x256x784xf32>
}

// Images of 2x2 stay one product: 64 products of 4 columns take longer than the transposes.  So does a result in another order.
// CHECK-LABEL: func.func @stay
// CHECK-NOT: linalg.contract
// CHECK: return
func.func @stay(%x: tensor<64x128x4xf32>, %z: tensor<4x128x784xf32>, %w: tensor<128x256xf32>) -> (tensor<64x256x4xf32>, tensor<784x256x4xf32>) {
  %e = tensor.empty() : tensor<64x4x128xf32>
  %t = linalg.transpose ins(%x : tensor<64x128x4xf32>) outs(%e : tensor<64x4x128xf32>) permutation = [0, 2, 1]
  %a = tensor.collapse_shape %t [[0, 1], [2]] : tensor<64x4x128xf32> into tensor<256x128xf32>
  %g = tensor.empty() : tensor<256x256xf32>
  %c = linalg.matmul ins(%a, %w : tensor<256x128xf32>, tensor<128x256xf32>) outs(%g : tensor<256x256xf32>) -> tensor<256x256xf32>
  %d = tensor.expand_shape %c [[0, 1], [2]] output_shape [64, 4, 256] : tensor<256x256xf32> into tensor<64x4x256xf32>
  %h = tensor.empty() : tensor<64x256x4xf32>
  %y = linalg.transpose ins(%d : tensor<64x4x256xf32>) outs(%h : tensor<64x256x4xf32>) permutation = [0, 2, 1]
  %i = tensor.empty() : tensor<4x784x128xf32>
  %u = linalg.transpose ins(%z : tensor<4x128x784xf32>) outs(%i : tensor<4x784x128xf32>) permutation = [0, 2, 1]
  %l = tensor.collapse_shape %u [[0, 1], [2]] : tensor<4x784x128xf32> into tensor<3136x128xf32>
  %j = tensor.empty() : tensor<3136x256xf32>
  %m = linalg.matmul ins(%l, %w : tensor<3136x128xf32>, tensor<128x256xf32>) outs(%j : tensor<3136x256xf32>) -> tensor<3136x256xf32>
  %n = tensor.expand_shape %m [[0, 1], [2]] output_shape [4, 784, 256] : tensor<3136x256xf32> into tensor<4x784x256xf32>
  %k = tensor.empty() : tensor<784x256x4xf32>
  %v = linalg.transpose ins(%n : tensor<4x784x256xf32>) outs(%k : tensor<784x256x4xf32>) permutation = [1, 2, 0]
  return %y, %v : tensor<64x256x4xf32>, tensor<784x256x4xf32>
}

// What computes with the images has one dimension of positions, too.
// CHECK-LABEL: func.func @bias
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0 {{.*}} into tensor<64x784xf32>
// CHECK: %[[P:.*]] = linalg.matmul {{.*}} -> tensor<64x784xf32>
// CHECK-NOT: tensor.expand_shape %[[P]]
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<64x784xf32>, tensor<64x1xf32>) outs(%{{.*}} : tensor<64x784xf32>)
// CHECK: linalg.add ins(%[[B]], %[[X]] : tensor<64x784xf32>, tensor<64x784xf32>)
func.func @bias(%x: tensor<64x28x28xf32>, %w: tensor<64x64xf32>, %bias: tensor<64xf32>) -> tensor<64x28x28xf32> {
  %e = tensor.empty() : tensor<28x28x64xf32>
  %t = linalg.transpose ins(%x : tensor<64x28x28xf32>) outs(%e : tensor<28x28x64xf32>) permutation = [1, 2, 0]
  %a = tensor.collapse_shape %t [[0, 1], [2]] : tensor<28x28x64xf32> into tensor<784x64xf32>
  %g = tensor.empty() : tensor<784x64xf32>
  %c = linalg.matmul ins(%a, %w : tensor<784x64xf32>, tensor<64x64xf32>) outs(%g : tensor<784x64xf32>) -> tensor<784x64xf32>
  %h = tensor.empty() : tensor<64x784xf32>
  %y = linalg.transpose ins(%c : tensor<784x64xf32>) outs(%h : tensor<64x784xf32>) permutation = [1, 0]
  %d = tensor.expand_shape %y [[0], [1, 2]] output_shape [64, 28, 28] : tensor<64x784xf32> into tensor<64x28x28xf32>
  %i = tensor.empty() : tensor<64x28x28xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%d, %bias : tensor<64x28x28xf32>, tensor<64xf32>) outs(%i : tensor<64x28x28xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<64x28x28xf32>
  %s = linalg.add ins(%b, %x : tensor<64x28x28xf32>, tensor<64x28x28xf32>) outs(%i : tensor<64x28x28xf32>) -> tensor<64x28x28xf32>
  return %s : tensor<64x28x28xf32>
}
