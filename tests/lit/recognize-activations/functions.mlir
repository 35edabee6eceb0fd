// An expression that is a function of the Scalar engine becomes one operation.
// RUN: nkx opt --recognize-activations %s | FileCheck %s
#map = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @sigmoid(
// CHECK-NOT:     linalg.exp
// CHECK:         linalg.generic {{.*}} ins(%arg0 :
// CHECK:           %[[N:.*]] = arith.negf %in
// CHECK-NEXT:      %[[E:.*]] = math.exp %[[N]]
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[E]]
// CHECK-NEXT:      arith.divf %{{.*}}, %[[S]]
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @sigmoid(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.negf ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.exp ins(%0 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %one, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.divf %one, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// exp(x) has another user, and stays for it; silu is found all the same.
// CHECK-LABEL: func.func @shared(
// CHECK:         %[[E:.*]] = linalg.exp
// CHECK:         %[[Y:.*]] = linalg.generic {{.*}} ins(%arg0 :
// CHECK:         return %[[Y]], %[[E]]
func.func @shared(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.fill ins(%one : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = linalg.add ins(%0, %1 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = linalg.div ins(%0, %2 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = linalg.mul ins(%3, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %4, %0 : tensor<4x8xf32>, tensor<4x8xf32>
}

// A knob asks something for the value in between.
// CHECK-LABEL: func.func @knob(
// CHECK:         linalg.sqrt
// CHECK:         "nkipy.layout"
// CHECK:         arith.divf
func.func @knob(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.sqrt ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  "nkipy.layout"(%0) {mem_space = 3 : i32} : (tensor<4x8xf32>) -> ()
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.divf %one, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// 1 / (2 + exp(-x)) is none of the functions, and 1 / (1 + exp(-y)) of a y that is broadcast is not one of x.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-2: linalg.exp
func.func @others(%x: tensor<4x8xf32>, %y: tensor<4x1xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %c = tensor.empty() : tensor<4x1xf32>
  %0 = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %two, %a : f32
    %d = arith.divf %one, %s : f32
    linalg.yield %d : f32
  } -> tensor<4x8xf32>
  %2 = linalg.exp ins(%y : tensor<4x1xf32>) outs(%c : tensor<4x1xf32>) -> tensor<4x1xf32>
  %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, 0)>, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<4x1xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %one, %a : f32
    %d = arith.divf %one, %s : f32
    linalg.yield %d : f32
  } -> tensor<4x8xf32>
  return %1, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}
