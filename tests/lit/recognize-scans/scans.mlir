// Running results become scans, in each of the forms in which they are written.
// RUN: nkx opt --recognize-scans %s | FileCheck %s
#id = affine_map<(d0, d1) -> (d0, d1)>

// A product with a triangle of ones: the sum starts with -0, which changes no element.
// CHECK-LABEL: func.func @triangle(
// CHECK:         %[[C:.*]] = arith.constant -0.0
// CHECK:         %[[F:.*]] = linalg.fill ins(%[[C]] : f32) outs(%{{.*}} : tensor<4x1xf32>)
// CHECK:         %[[Y:.*]]:2 = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<4x6xf32>) outs(%{{.*}}, %[[F]] :
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f32, %{{.*}}: f32, %[[B:.*]]: f32):
// CHECK-NEXT:      %[[R:.*]] = arith.addf %[[B]], %[[X]]
// CHECK-NEXT:      linalg.yield %[[R]], %[[R]]
// CHECK-NOT:     linalg.matmul
// CHECK:         return %[[Y]]#0
func.func @triangle(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<6x6xi32>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<6x6xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    linalg.yield %j : i32
  } -> tensor<6x6xi32>
  %c = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<6x6xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    linalg.yield %j : i32
  } -> tensor<6x6xi32>
  %b = tensor.empty() : tensor<6x6xi1>
  %m = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%r, %c : tensor<6x6xi32>, tensor<6x6xi32>) outs(%b : tensor<6x6xi1>) {
  ^bb0(%p: i32, %q: i32, %o: i1):
    %s = arith.cmpi sle, %p, %q : i32
    linalg.yield %s : i1
  } -> tensor<6x6xi1>
  %f = tensor.empty() : tensor<6x6xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<6x6xi1>) outs(%f : tensor<6x6xf32>) {
  ^bb0(%p: i1, %o: f32):
    %s = arith.uitofp %p : i1 to f32
    linalg.yield %s : f32
  } -> tensor<6x6xf32>
  %z = tensor.empty() : tensor<4x6xf32>
  %y = linalg.matmul ins(%x, %t : tensor<4x6xf32>, tensor<6x6xf32>) outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// The sums to the right are not running sums.
// CHECK-LABEL: func.func @other_triangle(
// CHECK:         linalg.matmul
func.func @other_triangle(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<6x6xi32>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<6x6xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    linalg.yield %j : i32
  } -> tensor<6x6xi32>
  %c = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<6x6xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    linalg.yield %j : i32
  } -> tensor<6x6xi32>
  %b = tensor.empty() : tensor<6x6xi1>
  %m = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%r, %c : tensor<6x6xi32>, tensor<6x6xi32>) outs(%b : tensor<6x6xi1>) {
  ^bb0(%p: i32, %q: i32, %o: i1):
    %s = arith.cmpi sge, %p, %q : i32
    linalg.yield %s : i1
  } -> tensor<6x6xi1>
  %f = tensor.empty() : tensor<6x6xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<6x6xi1>) outs(%f : tensor<6x6xf32>) {
  ^bb0(%p: i1, %o: f32):
    %s = arith.uitofp %p : i1 to f32
    linalg.yield %s : f32
  } -> tensor<6x6xf32>
  %z = tensor.empty() : tensor<4x6xf32>
  %y = linalg.matmul ins(%x, %t : tensor<4x6xf32>, tensor<6x6xf32>) outs(%z : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// Doubling along the last dimension, steps 1 and 2: nothing of the steps is left.
// CHECK-LABEL: func.func @doubling(
// CHECK:         %[[Y:.*]]:2 = linalg.generic {{.*}} ins(%arg0 : tensor<5x3xf32>)
// CHECK:           arith.maximumf
// CHECK-NOT:     tensor.insert_slice
// CHECK:         return %[[Y]]#0
func.func @doubling(%x: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %e = tensor.empty() : tensor<5x3xf32>
  %e2 = tensor.empty() : tensor<5x2xf32>
  %e1 = tensor.empty() : tensor<5x1xf32>
  %h = tensor.extract_slice %x[0, 0] [5, 1] [1, 1] : tensor<5x3xf32> to tensor<5x1xf32>
  %t = tensor.extract_slice %x[0, 1] [5, 2] [1, 1] : tensor<5x3xf32> to tensor<5x2xf32>
  %b = tensor.extract_slice %x[0, 0] [5, 2] [1, 1] : tensor<5x3xf32> to tensor<5x2xf32>
  %m = linalg.max ins(%t, %b : tensor<5x2xf32>, tensor<5x2xf32>) outs(%e2 : tensor<5x2xf32>) -> tensor<5x2xf32>
  %p = tensor.insert_slice %h into %e[0, 0] [5, 1] [1, 1] : tensor<5x1xf32> into tensor<5x3xf32>
  %w = tensor.insert_slice %m into %p[0, 1] [5, 2] [1, 1] : tensor<5x2xf32> into tensor<5x3xf32>
  %h1 = tensor.extract_slice %w[0, 0] [5, 2] [1, 1] : tensor<5x3xf32> to tensor<5x2xf32>
  %t1 = tensor.extract_slice %w[0, 2] [5, 1] [1, 1] : tensor<5x3xf32> to tensor<5x1xf32>
  %b1 = tensor.extract_slice %w[0, 0] [5, 1] [1, 1] : tensor<5x3xf32> to tensor<5x1xf32>
  %m1 = linalg.max ins(%t1, %b1 : tensor<5x1xf32>, tensor<5x1xf32>) outs(%e1 : tensor<5x1xf32>) -> tensor<5x1xf32>
  %p1 = tensor.insert_slice %h1 into %e[0, 0] [5, 2] [1, 1] : tensor<5x2xf32> into tensor<5x3xf32>
  %y = tensor.insert_slice %m1 into %p1[0, 2] [5, 1] [1, 1] : tensor<5x1xf32> into tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// Along the first one, two transposes would take longer than two steps.
// CHECK-LABEL: func.func @few_steps(
// CHECK-COUNT-2: linalg.max
func.func @few_steps(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %e = tensor.empty() : tensor<3x5xf32>
  %e2 = tensor.empty() : tensor<2x5xf32>
  %e1 = tensor.empty() : tensor<1x5xf32>
  %h = tensor.extract_slice %x[0, 0] [1, 5] [1, 1] : tensor<3x5xf32> to tensor<1x5xf32>
  %t = tensor.extract_slice %x[1, 0] [2, 5] [1, 1] : tensor<3x5xf32> to tensor<2x5xf32>
  %b = tensor.extract_slice %x[0, 0] [2, 5] [1, 1] : tensor<3x5xf32> to tensor<2x5xf32>
  %m = linalg.max ins(%t, %b : tensor<2x5xf32>, tensor<2x5xf32>) outs(%e2 : tensor<2x5xf32>) -> tensor<2x5xf32>
  %p = tensor.insert_slice %h into %e[0, 0] [1, 5] [1, 1] : tensor<1x5xf32> into tensor<3x5xf32>
  %w = tensor.insert_slice %m into %p[1, 0] [2, 5] [1, 1] : tensor<2x5xf32> into tensor<3x5xf32>
  %h1 = tensor.extract_slice %w[0, 0] [2, 5] [1, 1] : tensor<3x5xf32> to tensor<2x5xf32>
  %t1 = tensor.extract_slice %w[2, 0] [1, 5] [1, 1] : tensor<3x5xf32> to tensor<1x5xf32>
  %b1 = tensor.extract_slice %w[0, 0] [1, 5] [1, 1] : tensor<3x5xf32> to tensor<1x5xf32>
  %m1 = linalg.max ins(%t1, %b1 : tensor<1x5xf32>, tensor<1x5xf32>) outs(%e1 : tensor<1x5xf32>) -> tensor<1x5xf32>
  %p1 = tensor.insert_slice %h1 into %e[0, 0] [2, 5] [1, 1] : tensor<2x5xf32> into tensor<3x5xf32>
  %y = tensor.insert_slice %m1 into %p1[2, 0] [1, 5] [1, 1] : tensor<1x5xf32> into tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// Only the last step: not a running result.
// CHECK-LABEL: func.func @one_step(
// CHECK:         linalg.max
// CHECK-COUNT-2: tensor.insert_slice
func.func @one_step(%w: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %e = tensor.empty() : tensor<3x5xf32>
  %e1 = tensor.empty() : tensor<1x5xf32>
  %h1 = tensor.extract_slice %w[0, 0] [2, 5] [1, 1] : tensor<3x5xf32> to tensor<2x5xf32>
  %t1 = tensor.extract_slice %w[2, 0] [1, 5] [1, 1] : tensor<3x5xf32> to tensor<1x5xf32>
  %b1 = tensor.extract_slice %w[0, 0] [1, 5] [1, 1] : tensor<3x5xf32> to tensor<1x5xf32>
  %m1 = linalg.max ins(%t1, %b1 : tensor<1x5xf32>, tensor<1x5xf32>) outs(%e1 : tensor<1x5xf32>) -> tensor<1x5xf32>
  %p1 = tensor.insert_slice %h1 into %e[0, 0] [2, 5] [1, 1] : tensor<2x5xf32> into tensor<3x5xf32>
  %y = tensor.insert_slice %m1 into %p1[2, 0] [1, 5] [1, 1] : tensor<1x5xf32> into tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// A value with a knob stays as it is written, and so do integers.
// CHECK-LABEL: func.func @knob(
// CHECK:         linalg.mul
// CHECK-LABEL: func.func @integers(
// CHECK:         linalg.mul
func.func @knob(%x: tensor<5x2xf32>) -> tensor<5x2xf32> {
  %e = tensor.empty() : tensor<5x2xf32>
  %e1 = tensor.empty() : tensor<5x1xf32>
  %h = tensor.extract_slice %x[0, 0] [5, 1] [1, 1] : tensor<5x2xf32> to tensor<5x1xf32>
  %t = tensor.extract_slice %x[0, 1] [5, 1] [1, 1] : tensor<5x2xf32> to tensor<5x1xf32>
  %m = linalg.mul ins(%t, %h : tensor<5x1xf32>, tensor<5x1xf32>) outs(%e1 : tensor<5x1xf32>) -> tensor<5x1xf32>
  "nkipy.layout"(%m) {mem_space = 3 : i32} : (tensor<5x1xf32>) -> ()
  %p = tensor.insert_slice %h into %e[0, 0] [5, 1] [1, 1] : tensor<5x1xf32> into tensor<5x2xf32>
  %y = tensor.insert_slice %m into %p[0, 1] [5, 1] [1, 1] : tensor<5x1xf32> into tensor<5x2xf32>
  return %y : tensor<5x2xf32>
}
func.func @integers(%x: tensor<5x2xi32>) -> tensor<5x2xi32> {
  %e = tensor.empty() : tensor<5x2xi32>
  %e1 = tensor.empty() : tensor<5x1xi32>
  %h = tensor.extract_slice %x[0, 0] [5, 1] [1, 1] : tensor<5x2xi32> to tensor<5x1xi32>
  %t = tensor.extract_slice %x[0, 1] [5, 1] [1, 1] : tensor<5x2xi32> to tensor<5x1xi32>
  %m = linalg.mul ins(%t, %h : tensor<5x1xi32>, tensor<5x1xi32>) outs(%e1 : tensor<5x1xi32>) -> tensor<5x1xi32>
  %p = tensor.insert_slice %h into %e[0, 0] [5, 1] [1, 1] : tensor<5x1xi32> into tensor<5x2xi32>
  %y = tensor.insert_slice %m into %p[0, 1] [5, 1] [1, 1] : tensor<5x1xi32> into tensor<5x2xi32>
  return %y : tensor<5x2xi32>
}
