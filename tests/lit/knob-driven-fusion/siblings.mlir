// RUN: nkx opt --knob-driven-fusion %s | FileCheck %s
// RUN: nkx opt --remarks --knob-driven-fusion %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: remark: scf.for: computes 2 fused values [knob-driven-fusion]
// REMARK: remark: linalg.exp: nothing to fuse: a single tile computes the value

// One outer and one inner loop for both values, in the order of the program; annotations keep their values.
// CHECK-LABEL: func.func @two(
// CHECK:         %[[R:.*]]:2 = scf.for %[[I:.*]] = {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:      %[[S:.*]]:2 = scf.for %[[J:.*]] = {{.*}} iter_args(%[[C:.*]] = %[[A]], %[[D:.*]] = %[[B]])
// CHECK:             linalg.add {{.*}} outs(%[[C]] :
// CHECK:             linalg.mul {{.*}} outs(%[[D]] :
// CHECK:             scf.yield
// CHECK:           scf.yield %[[S]]#0, %[[S]]#1
// CHECK:         "nkipy.layout"(%[[R]]#0) {mem_space = 3 : i32}
// CHECK-NOT:     scf.for
// CHECK:         "nkipy.layout"(%[[R]]#1) {mem_space = 4 : i32}
// CHECK-NOT:     fuse_op
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @two(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %a = scf.for %i = %c0 to %c8 step %c4 iter_args(%t = %x) -> (tensor<8x8xf32>) {
    %r = scf.for %j = %c0 to %c8 step %c4 iter_args(%u = %t) -> (tensor<8x8xf32>) {
      %v = linalg.add ins(%u, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%u : tensor<8x8xf32>) -> tensor<8x8xf32>
      scf.yield %v : tensor<8x8xf32>
    }
    scf.yield %r : tensor<8x8xf32>
  }
  "nkipy.layout"(%a) {mem_space = 3 : i32} : (tensor<8x8xf32>) -> ()
  %d0 = arith.constant 0 : index
  %d4 = arith.constant 4 : index
  %d8 = arith.constant 8 : index
  %b = scf.for %i = %d0 to %d8 step %d4 iter_args(%t = %y) -> (tensor<8x8xf32>) {
    %r = scf.for %j = %d0 to %d8 step %d4 iter_args(%u = %t) -> (tensor<8x8xf32>) {
      %v = linalg.mul ins(%u, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%u : tensor<8x8xf32>) -> tensor<8x8xf32>
      scf.yield %v : tensor<8x8xf32>
    }
    scf.yield %r : tensor<8x8xf32>
  }
  "nkipy.layout"(%b) {mem_space = 4 : i32} : (tensor<8x8xf32>) -> ()
  "nkipy.fuse_op"(%a, %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> ()
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}

// Inner loops of different ranges stay apart.
// CHECK-LABEL: func.func @different_inside(
// CHECK:         scf.for {{.*}} -> (tensor<8x8xf32>, tensor<8x8xf32>)
// CHECK-NEXT:      scf.for {{.*}} -> (tensor<8x8xf32>) {
// CHECK:           scf.for {{.*}} -> (tensor<8x8xf32>) {
func.func @different_inside(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %a = scf.for %i = %c0 to %c8 step %c4 iter_args(%t = %x) -> (tensor<8x8xf32>) {
    %r = scf.for %j = %c0 to %c8 step %c4 iter_args(%u = %t) -> (tensor<8x8xf32>) {
      %v = linalg.add ins(%u, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%u : tensor<8x8xf32>) -> tensor<8x8xf32>
      scf.yield %v : tensor<8x8xf32>
    }
    scf.yield %r : tensor<8x8xf32>
  }
  %b = scf.for %i = %c0 to %c8 step %c4 iter_args(%t = %y) -> (tensor<8x8xf32>) {
    %r = scf.for %j = %c0 to %c8 step %c2 iter_args(%u = %t) -> (tensor<8x8xf32>) {
      %v = linalg.mul ins(%u, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%u : tensor<8x8xf32>) -> tensor<8x8xf32>
      scf.yield %v : tensor<8x8xf32>
    }
    scf.yield %r : tensor<8x8xf32>
  }
  "nkipy.fuse_op"(%a, %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> ()
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}

// A single tile computes each value: nothing to merge, the request is done.
// CHECK-LABEL: func.func @no_loops(
// CHECK-NOT:     fuse_op
// CHECK:         return
func.func @no_loops(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %a = linalg.exp ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = linalg.abs ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  "nkipy.fuse_op"(%a, %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> ()
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}
