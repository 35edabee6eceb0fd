// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s
#id = affine_map<(d0, d1) -> (d0, d1)>
#bias = affine_map<(d0, d1) -> (d1)>
#scale = affine_map<(d0, d1) -> (d0)>
#none = affine_map<(d0, d1) -> ()>
#first = affine_map<(d0, d1) -> (0, d1)>

// What is the same in every partition is copied there; what is one number per partition is not.
// CHECK-DAG:   #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: func.func @all(
// CHECK:         %[[B:.*]] = linalg.broadcast ins(%arg1 : tensor<517xf32>) outs(%{{.*}} : tensor<130x517xf32>) dimensions = [0]
// CHECK:         %[[S:.*]] = tensor.expand_shape %arg2 {{.*}} into tensor<130x1xf32>
// CHECK:         %[[N:.*]] = linalg.broadcast ins(%{{.*}} : tensor<1xf32>) outs(%{{.*}} : tensor<130x1xf32>) dimensions = [0]
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[ID]], #[[COLUMN]], #[[COLUMN]], #[[ID]]]
// CHECK-SAME:      ins(%arg0, %[[B]], %[[S]], %[[N]] :
func.func @all(%a: tensor<130x517xf32>, %b: tensor<517xf32>, %s: tensor<130xf32>, %n: tensor<f32>) -> tensor<130x517xf32> {
  %e = tensor.empty() : tensor<130x517xf32>
  %r = linalg.generic {indexing_maps = [#id, #bias, #scale, #none, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b, %s, %n : tensor<130x517xf32>, tensor<517xf32>, tensor<130xf32>, tensor<f32>) outs(%e : tensor<130x517xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32, %w: f32, %o: f32):
    %0 = arith.addf %x, %y : f32
    %1 = arith.mulf %0, %z : f32
    %2 = arith.addf %1, %w : f32
    linalg.yield %2 : f32
  } -> tensor<130x517xf32>
  return %r : tensor<130x517xf32>
}

// Two operations that read the same row share its copy.
// CHECK-LABEL: func.func @shared(
// CHECK:         %[[B:.*]] = linalg.broadcast ins(%{{.*}} : tensor<517xf32>)
// CHECK-NOT:     linalg.broadcast
// CHECK:         return
func.func @shared(%a: tensor<130x517xf32>, %b: tensor<1x517xf32>) -> tensor<130x517xf32> {
  %e = tensor.empty() : tensor<130x517xf32>
  %r = linalg.generic {indexing_maps = [#id, #first, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<130x517xf32>, tensor<1x517xf32>) outs(%e : tensor<130x517xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<130x517xf32>
  %q = linalg.generic {indexing_maps = [#id, #first, #id], iterator_types = ["parallel", "parallel"]} ins(%r, %b : tensor<130x517xf32>, tensor<1x517xf32>) outs(%e : tensor<130x517xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<130x517xf32>
  return %q : tensor<130x517xf32>
}

// The user's partition_dim says which dimension the partitions are: here nothing has to be copied.
// CHECK-LABEL: func.func @other_partition_dim(
// CHECK-NOT:     linalg.broadcast
// CHECK:         ins(%arg0, %arg1 : tensor<4x128x64xf32>, tensor<1x128x64xf32>)
func.func @other_partition_dim(%a: tensor<4x128x64xf32>, %b: tensor<1x128x64xf32>) -> tensor<4x128x64xf32> {
  %e = tensor.empty() : tensor<4x128x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a, %b : tensor<4x128x64xf32>, tensor<1x128x64xf32>) outs(%e : tensor<4x128x64xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %0 = arith.mulf %x, %y : f32
    linalg.yield %0 : f32
  } -> tensor<4x128x64xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, partition_dim = 1 : i32} : (tensor<4x128x64xf32>) -> ()
  return %r : tensor<4x128x64xf32>
}
