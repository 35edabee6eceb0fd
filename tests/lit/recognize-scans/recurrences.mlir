// Steps of a recurrence that are written one after the other become one scan of their operands' tables.
// RUN: nkx opt --recognize-scans %s | FileCheck %s

// The tables are turned, so that the steps lie along the last dimension; the results are put where the slices were.
// CHECK-LABEL: func.func @stacked(
// CHECK:         %[[X:.*]] = linalg.transpose ins(%arg0 : tensor<4x9xf32>)
// CHECK:         %[[F:.*]] = tensor.expand_shape %arg2 {{.*}} into tensor<9x1xf32>
// CHECK:         %[[H:.*]]:2 = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%arg1, %[[X]] : tensor<9xf32>, tensor<9x4xf32>) outs(%{{.*}}, %[[F]] :
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32, %[[S:.*]]: f32):
// CHECK-NEXT:      %[[M:.*]] = arith.mulf %[[A]], %[[S]]
// CHECK-NEXT:      %[[R:.*]] = arith.addf %[[M]], %[[B]]
// CHECK-NEXT:      linalg.yield %[[R]], %[[R]]
// CHECK:         %[[Y:.*]] = linalg.transpose ins(%[[H]]#0 : tensor<9x4xf32>)
// CHECK-NOT:     insert_slice
// CHECK:         return %[[Y]]
func.func @stacked(%x: tensor<4x9xf32>, %a: tensor<9xf32>, %h: tensor<9xf32>) -> tensor<4x9xf32> {
  %e = tensor.empty() : tensor<9xf32>
  %x0 = tensor.extract_slice %x[0, 0] [1, 9] [1, 1] : tensor<4x9xf32> to tensor<9xf32>
  %x1 = tensor.extract_slice %x[1, 0] [1, 9] [1, 1] : tensor<4x9xf32> to tensor<9xf32>
  %x2 = tensor.extract_slice %x[2, 0] [1, 9] [1, 1] : tensor<4x9xf32> to tensor<9xf32>
  %x3 = tensor.extract_slice %x[3, 0] [1, 9] [1, 1] : tensor<4x9xf32> to tensor<9xf32>
  %m0 = linalg.mul ins(%a, %h : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h0 = linalg.add ins(%m0, %x0 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %m1 = linalg.mul ins(%a, %h0 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h1 = linalg.add ins(%m1, %x1 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %m2 = linalg.mul ins(%a, %h1 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h2 = linalg.add ins(%m2, %x2 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %m3 = linalg.mul ins(%a, %h2 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h3 = linalg.add ins(%m3, %x3 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %y = tensor.empty() : tensor<4x9xf32>
  %y0 = tensor.insert_slice %h0 into %y[0, 0] [1, 9] [1, 1] : tensor<9xf32> into tensor<4x9xf32>
  %y1 = tensor.insert_slice %h1 into %y0[1, 0] [1, 9] [1, 1] : tensor<9xf32> into tensor<4x9xf32>
  %y2 = tensor.insert_slice %h2 into %y1[2, 0] [1, 9] [1, 1] : tensor<9xf32> into tensor<4x9xf32>
  %y3 = tensor.insert_slice %h3 into %y2[3, 0] [1, 9] [1, 1] : tensor<9xf32> into tensor<4x9xf32>
  return %y3 : tensor<4x9xf32>
}

// Only the last state is needed: it is the scan's second result.
// CHECK-LABEL: func.func @last(
// CHECK:         %[[H:.*]]:2 = linalg.generic
// CHECK:         %[[L:.*]] = tensor.collapse_shape %[[H]]#1
// CHECK:         return %[[L]]
func.func @last(%x: tensor<4x9xf32>, %a: tensor<9xf32>, %h: tensor<9xf32>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<9xf32>
  %x0 = tensor.extract_slice %x[0, 0] [1, 9] [1, 1] : tensor<4x9xf32> to tensor<9xf32>
  %x1 = tensor.extract_slice %x[1, 0] [1, 9] [1, 1] : tensor<4x9xf32> to tensor<9xf32>
  %x2 = tensor.extract_slice %x[2, 0] [1, 9] [1, 1] : tensor<4x9xf32> to tensor<9xf32>
  %x3 = tensor.extract_slice %x[3, 0] [1, 9] [1, 1] : tensor<4x9xf32> to tensor<9xf32>
  %m0 = linalg.mul ins(%a, %h : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h0 = linalg.sub ins(%x0, %m0 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %m1 = linalg.mul ins(%a, %h0 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h1 = linalg.sub ins(%x1, %m1 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %m2 = linalg.mul ins(%a, %h1 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h2 = linalg.sub ins(%x2, %m2 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %m3 = linalg.mul ins(%a, %h2 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h3 = linalg.sub ins(%x3, %m3 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  return %h3 : tensor<9xf32>
}

// The third slice is another one: no table has the four.
// CHECK-LABEL: func.func @other_slices(
// CHECK-NOT:     "reduction"
func.func @other_slices(%x: tensor<5x9xf32>, %a: tensor<9xf32>, %h: tensor<9xf32>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<9xf32>
  %x0 = tensor.extract_slice %x[0, 0] [1, 9] [1, 1] : tensor<5x9xf32> to tensor<9xf32>
  %x1 = tensor.extract_slice %x[1, 0] [1, 9] [1, 1] : tensor<5x9xf32> to tensor<9xf32>
  %x2 = tensor.extract_slice %x[3, 0] [1, 9] [1, 1] : tensor<5x9xf32> to tensor<9xf32>
  %x3 = tensor.extract_slice %x[4, 0] [1, 9] [1, 1] : tensor<5x9xf32> to tensor<9xf32>
  %m0 = linalg.mul ins(%a, %h : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h0 = linalg.add ins(%m0, %x0 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %m1 = linalg.mul ins(%a, %h0 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h1 = linalg.add ins(%m1, %x1 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %m2 = linalg.mul ins(%a, %h1 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h2 = linalg.add ins(%m2, %x2 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %m3 = linalg.mul ins(%a, %h2 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  %h3 = linalg.add ins(%m3, %x3 : tensor<9xf32>, tensor<9xf32>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  return %h3 : tensor<9xf32>
}
