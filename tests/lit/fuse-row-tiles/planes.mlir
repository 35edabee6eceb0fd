// RUN: nkx opt --infer-layout --fuse-row-tiles %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// Where the partitions are another dimension than the first, a loop goes over the planes, the dimensions before it.

#all = affine_map<(n, c, h, w) -> (n, c, h, w)>
#channel = affine_map<(n, c, h, w) -> (0, c, 0, 0)>
#rows = affine_map<(n, c, h, w) -> (n, c, 0, 0)>

// Two tiles of channels side by side; the planes are the only loop.  The column of a tile has the same place in all of them.
// CHECK-LABEL: func.func @images
// CHECK:         scf.for %[[N:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[C:.*]] = %{{.*}}) -> (tensor<8x256x28x28xf32>) {
// CHECK-NEXT:      tensor.extract_slice %arg0[%[[N]], 0, 0, 0] [1, 128, 28, 28] [1, 1, 1, 1]
// CHECK:           tensor.extract_slice %arg1[0, 0, 0, 0] [1, 128, 1, 1]
// CHECK:           linalg.generic {{.*}} outs(%{{.*}} : tensor<1x128x28x28xf32>)
// CHECK:           tensor.extract_slice %arg0[%[[N]], 128, 0, 0] [1, 128, 28, 28] [1, 1, 1, 1]
// CHECK:           tensor.extract_slice %arg1[0, 128, 0, 0] [1, 128, 1, 1]
// CHECK:           %[[E:.*]] = linalg.exp ins(%{{.*}} : tensor<1x128x28x28xf32>)
// CHECK-NEXT:      %[[R:.*]] = tensor.insert_slice %[[E]] into %[[C]][%[[N]], 0, 0, 0]
// CHECK:           %[[F:.*]] = linalg.exp
// CHECK-NEXT:      tensor.insert_slice %[[F]] into %[[R]][%[[N]], 128, 0, 0]
// CHECK:         "nkipy.layout"({{.*}}partition_dim = 1
// REMARK:      2 operations in one loop over 16 tiles of 128 rows, two at a time
func.func @images(%x: tensor<8x256x28x28xf32>, %s: tensor<1x256x1x1xf32>) -> tensor<8x256x28x28xf32> {
  %e = tensor.empty() : tensor<8x256x28x28xf32>
  %a = linalg.generic {indexing_maps = [#all, #channel, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %s : tensor<8x256x28x28xf32>, tensor<1x256x1x1xf32>) outs(%e : tensor<8x256x28x28xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<8x256x28x28xf32>
  %b = linalg.exp ins(%a : tensor<8x256x28x28xf32>) outs(%e : tensor<8x256x28x28xf32>) -> tensor<8x256x28x28xf32>
  return %b : tensor<8x256x28x28xf32>
}

// A reduction inside a plane joins; one over the planes has loops of its own.
// CHECK-LABEL: func.func @sums
// CHECK:         scf.for
// CHECK:           linalg.exp ins(%{{.*}} : tensor<1x128x28x28xf32>)
// CHECK:           linalg.generic {{.*}}"reduction", "reduction"]{{.*}} outs(%{{.*}} : tensor<1x128x1x1xf32>)
// CHECK:           scf.yield
// CHECK:         }
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<1x256x1x1xf32>)
// REMARK:      keeps loops of its own: it reduces dimension 0, the planes of the tiles
func.func @sums(%x: tensor<8x256x28x28xf32>) -> (tensor<8x256x1x1xf32>, tensor<1x256x1x1xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x256x28x28xf32>
  %a = linalg.exp ins(%x : tensor<8x256x28x28xf32>) outs(%e : tensor<8x256x28x28xf32>) -> tensor<8x256x28x28xf32>
  %f = tensor.empty() : tensor<8x256x1x1xf32>
  %g = linalg.fill ins(%zero : f32) outs(%f : tensor<8x256x1x1xf32>) -> tensor<8x256x1x1xf32>
  %b = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%a : tensor<8x256x28x28xf32>) outs(%g : tensor<8x256x1x1xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = arith.addf %o, %p : f32
    linalg.yield %m : f32
  } -> tensor<8x256x1x1xf32>
  %h = tensor.empty() : tensor<1x256x1x1xf32>
  %i = linalg.fill ins(%zero : f32) outs(%h : tensor<1x256x1x1xf32>) -> tensor<1x256x1x1xf32>
  %c = linalg.generic {indexing_maps = [#all, #channel], iterator_types = ["reduction", "parallel", "reduction", "reduction"]} ins(%a : tensor<8x256x28x28xf32>) outs(%i : tensor<1x256x1x1xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = arith.addf %o, %p : f32
    linalg.yield %m : f32
  } -> tensor<1x256x1x1xf32>
  return %b, %c : tensor<8x256x1x1xf32>, tensor<1x256x1x1xf32>
}
