// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s
#map = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d0, 0)>

// The quotient's knobs are the product's; the reciprocal gets the tiles and stays on chip.
// CHECK-LABEL: func.func @div(
// CHECK:         %[[R:.*]] = linalg.reciprocal ins(%arg1 : tensor<128x256xf32>)
// CHECK-NEXT:    "nkipy.layout"(%[[R]]) {mem_space = 3 : i32, tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[R]]) {loop_tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    %[[M:.*]] = linalg.mul ins(%arg0, %[[R]] :
// CHECK-NEXT:    "nkipy.layout"(%[[M]]) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[M]]) {loop_tile_size = array<i64: 128, 128>}
// CHECK-NEXT:    return %[[M]]
func.func @div(%a: tensor<128x256xf32>, %b: tensor<128x256xf32>) -> tensor<128x256xf32> {
  %e = tensor.empty() : tensor<128x256xf32>
  %r = linalg.div ins(%a, %b : tensor<128x256xf32>, tensor<128x256xf32>) outs(%e : tensor<128x256xf32>) -> tensor<128x256xf32>
  "nkipy.layout"(%r) {mem_space = 4 : i32, tile_size = array<i64: 128, 128>} : (tensor<128x256xf32>) -> ()
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128>} : (tensor<128x256xf32>) -> ()
  return %r : tensor<128x256xf32>
}

// CHECK-LABEL: func.func @by_constant(
// CHECK-NOT:     divf
// CHECK:         %[[C:.*]] = arith.constant 5.000000e-01 : f32
// CHECK:         arith.mulf %in, %[[C]] : f32
// CHECK-NOT:     divf
// CHECK:         return
func.func @by_constant(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %c = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%x: f32, %o: f32):
    %q = arith.divf %x, %c : f32
    linalg.yield %q : f32
  } -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// x/0 is x times infinity: signs and NaN come out the same.
// CHECK-LABEL: func.func @by_zero(
// CHECK:         %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK:         arith.mulf %in, %[[INF]] : f32
func.func @by_zero(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%x: f32, %o: f32):
    %q = arith.divf %x, %c : f32
    linalg.yield %q : f32
  } -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// Quotients of narrow types are computed in f32, which has reciprocals that they lack.
// CHECK-LABEL: func.func @by_tiny(
// CHECK:         %[[X:.*]] = arith.extf %in : f16 to f32
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[X]], %{{.*}} : f32
// CHECK-NEXT:    arith.truncf %[[P]] : f32 to f16
func.func @by_tiny(%a: tensor<256x256xf16>) -> tensor<256x256xf16> {
  %c = arith.constant 1.0e-6 : f16
  %e = tensor.empty() : tensor<256x256xf16>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<256x256xf16>) outs(%e : tensor<256x256xf16>) {
  ^bb0(%x: f16, %o: f16):
    %q = arith.divf %x, %c : f16
    linalg.yield %q : f16
  } -> tensor<256x256xf16>
  return %r : tensor<256x256xf16>
}

// 1e-40 has no reciprocal in f32: two factors.
// CHECK-LABEL: func.func @by_denormal(
// CHECK:         %[[P:.*]] = arith.mulf %in, %{{.*}} : f32
// CHECK-NEXT:    arith.mulf %[[P]], %{{.*}} : f32
func.func @by_denormal(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %c = arith.constant 1.0e-40 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%x: f32, %o: f32):
    %q = arith.divf %x, %c : f32
    linalg.yield %q : f32
  } -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// The reciprocal of a bf16 is f32, and the product is rounded once.
// CHECK-LABEL: func.func @narrow(
// CHECK:         arith.divf %{{.*}} : f32
// CHECK:         } -> tensor<256x256xf32>
// CHECK:       ^bb0(%[[A:.*]]: bf16, %[[R:.*]]: f32, %{{.*}}: bf16):
// CHECK-NEXT:    %[[X:.*]] = arith.extf %[[A]] : bf16 to f32
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[X]], %[[R]] : f32
// CHECK-NEXT:    arith.truncf %[[P]] : f32 to bf16
func.func @narrow(%a: tensor<256x256xbf16>, %b: tensor<256x256xbf16>) -> tensor<256x256xbf16> {
  %e = tensor.empty() : tensor<256x256xbf16>
  %r = linalg.div ins(%a, %b : tensor<256x256xbf16>, tensor<256x256xbf16>) outs(%e : tensor<256x256xbf16>) -> tensor<256x256xbf16>
  return %r : tensor<256x256xbf16>
}

// CHECK-LABEL: func.func @one_by(
// CHECK-NOT:     linalg.generic
// CHECK:         linalg.reciprocal ins(%arg0 :
func.func @one_by(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %c = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%x: f32, %o: f32):
    %q = arith.divf %c, %x : f32
    linalg.yield %q : f32
  } -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// CHECK-LABEL: func.func @five_by(
// CHECK:         %[[C:.*]] = arith.constant 5.000000e+00 : f32
// CHECK:         %[[R:.*]] = linalg.reciprocal ins(%arg0 :
// CHECK:         linalg.generic {{.*}} ins(%[[R]] :
// CHECK:           arith.mulf %[[C]], %in : f32
func.func @five_by(%a: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %c = arith.constant 5.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%x: f32, %o: f32):
    %q = arith.divf %c, %x : f32
    linalg.yield %q : f32
  } -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// The reciprocal has the divisor's own, smaller shape, and is computed once for both quotients.
// CHECK-LABEL: func.func @two_by_a_column(
// CHECK:         %[[R:.*]] = linalg.reciprocal ins(%arg1 : tensor<256x1xf32>)
// CHECK-NOT:     linalg.reciprocal
// CHECK:         linalg.generic {{.*}} ins(%arg0, %[[R]] :
// CHECK-NEXT:    ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: f32, %[[O:.*]]: f32):
// CHECK-NEXT:      %[[P:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK-NEXT:      %[[Q:.*]] = arith.mulf %[[P]], %[[Y]] : f32
func.func @two_by_a_column(%a: tensor<256x256xf32>, %b: tensor<256x1xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#map, #column, #map], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<256x256xf32>, tensor<256x1xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.divf %x, %y : f32
    %q = arith.divf %p, %y : f32
    linalg.yield %q : f32
  } -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// A divisor that is computed in the body is inverted there.
// CHECK-LABEL: func.func @by_computed(
// CHECK:         %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK:           %[[S:.*]] = arith.addf %in, %in_{{.*}} : f32
// CHECK-NEXT:      %[[R:.*]] = arith.divf %[[ONE]], %[[S]] : f32
// CHECK-NEXT:      arith.mulf %in, %[[R]] : f32
func.func @by_computed(%a: tensor<256x256xf32>, %b: tensor<256x1xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %r = linalg.generic {indexing_maps = [#map, #column, #map], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<256x256xf32>, tensor<256x1xf32>) outs(%e : tensor<256x256xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    %q = arith.divf %x, %s : f32
    linalg.yield %q : f32
  } -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// CHECK-LABEL: func.func @in_a_reduction(
// CHECK:         linalg.reciprocal
// CHECK-NOT:     divf
// CHECK:         return
func.func @in_a_reduction(%a: tensor<256x256xf32>, %b: tensor<256x1xf32>, %i: tensor<256x1xf32>) -> tensor<256x1xf32> {
  %r = linalg.generic {indexing_maps = [#map, #column, #column], iterator_types = ["parallel", "reduction"]} ins(%a, %b : tensor<256x256xf32>, tensor<256x1xf32>) outs(%i : tensor<256x1xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %q = arith.divf %x, %y : f32
    %s = arith.addf %o, %q : f32
    linalg.yield %s : f32
  } -> tensor<256x1xf32>
  return %r : tensor<256x1xf32>
}

// Integers are exact and stay.
// CHECK-LABEL: func.func @integers(
// CHECK:         linalg.div ins(%arg0, %arg1 : tensor<128x256xi32>
func.func @integers(%a: tensor<128x256xi32>, %b: tensor<128x256xi32>) -> tensor<128x256xi32> {
  %e = tensor.empty() : tensor<128x256xi32>
  %r = linalg.div ins(%a, %b : tensor<128x256xi32>, tensor<128x256xi32>) outs(%e : tensor<128x256xi32>) -> tensor<128x256xi32>
  return %r : tensor<128x256xi32>
}

// floor(49/49) has to be 1.
// CHECK-LABEL: func.func @floor(
// CHECK-NOT:     reciprocal
// CHECK:         linalg.generic {{.*}} ins(%arg0, %arg1 :
// CHECK:           arith.divf %in, %in_{{.*}} : f32
// CHECK:         linalg.floor
func.func @floor(%a: tensor<128x256xf32>, %b: tensor<128x256xf32>) -> tensor<128x256xf32> {
  %e = tensor.empty() : tensor<128x256xf32>
  %q = linalg.div ins(%a, %b : tensor<128x256xf32>, tensor<128x256xf32>) outs(%e : tensor<128x256xf32>) -> tensor<128x256xf32>
  %r = linalg.floor ins(%q : tensor<128x256xf32>) outs(%e : tensor<128x256xf32>) -> tensor<128x256xf32>
  return %r : tensor<128x256xf32>
}
