// A sum of what a mask leaves of an argument, if that is one diagonal, reads only the diagonal.
// RUN: nkx opt --prepare-arithmetic %s | FileCheck %s

#all = affine_map<(a, b) -> (a, b)>

// The third diagonal above the main one: the rows after its end are cut off.
// CHECK-LABEL: func.func @above
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %arg0 {{.*}} into tensor<8192xf32>
// CHECK: tensor.extract_slice %[[FLAT]][3] [64] [129] : tensor<8192xf32> to tensor<64xf32>
// CHECK-NOT: arith.cmpi
func.func @above(%x: tensor<64x128xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %three = arith.constant 3 : i32
  %i = tensor.empty() : tensor<64x128xi32>
  %p = tensor.empty() : tensor<64x128xi1>
  %y = tensor.empty() : tensor<64x128xf32>
  %e = tensor.empty() : tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%i : tensor<64x128xi32>) {
  ^bb0(%o: i32):
    %at = linalg.index 0 : index
    %v = arith.index_cast %at : index to i32
    linalg.yield %v : i32
  } -> tensor<64x128xi32>
  %1 = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%i : tensor<64x128xi32>) {
  ^bb0(%o: i32):
    %at = linalg.index 1 : index
    %v = arith.index_cast %at : index to i32
    linalg.yield %v : i32
  } -> tensor<64x128xi32>
  %2 = linalg.sub ins(%1, %0 : tensor<64x128xi32>, tensor<64x128xi32>) outs(%i : tensor<64x128xi32>) -> tensor<64x128xi32>
  %3 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<64x128xi32>) outs(%p : tensor<64x128xi1>) {
  ^bb0(%a: i32, %o: i1):
    %v = arith.cmpi eq, %a, %three : i32
    linalg.yield %v : i1
  } -> tensor<64x128xi1>
  %4 = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%3, %x : tensor<64x128xi1>, tensor<64x128xf32>) outs(%y : tensor<64x128xf32>) {
  ^bb0(%m: i1, %a: f32, %o: f32):
    %v = arith.select %m, %a, %zero : f32
    linalg.yield %v : f32
  } -> tensor<64x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.generic {indexing_maps = [#all, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]} ins(%4 : tensor<64x128xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// What is above a diagonal is a triangle.
// CHECK-LABEL: func.func @triangle
// CHECK-NOT: tensor.extract_slice
// CHECK: arith.cmpi sge
func.func @triangle(%x: tensor<64x128xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %three = arith.constant 3 : i32
  %i = tensor.empty() : tensor<64x128xi32>
  %p = tensor.empty() : tensor<64x128xi1>
  %y = tensor.empty() : tensor<64x128xf32>
  %e = tensor.empty() : tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%i : tensor<64x128xi32>) {
  ^bb0(%o: i32):
    %a = linalg.index 0 : index
    %b = linalg.index 1 : index
    %d = arith.subi %b, %a : index
    %v = arith.index_cast %d : index to i32
    linalg.yield %v : i32
  } -> tensor<64x128xi32>
  %3 = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<64x128xi32>) outs(%p : tensor<64x128xi1>) {
  ^bb0(%a: i32, %o: i1):
    %v = arith.cmpi sge, %a, %three : i32
    linalg.yield %v : i1
  } -> tensor<64x128xi1>
  %4 = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%3, %x : tensor<64x128xi1>, tensor<64x128xf32>) outs(%y : tensor<64x128xf32>) {
  ^bb0(%m: i1, %a: f32, %o: f32):
    %v = arith.select %m, %a, %zero : f32
    linalg.yield %v : f32
  } -> tensor<64x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.generic {indexing_maps = [#all, affine_map<(a, b) -> (a)>], iterator_types = ["parallel", "reduction"]} ins(%4 : tensor<64x128xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}
