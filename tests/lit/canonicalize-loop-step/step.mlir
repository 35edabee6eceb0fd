// RUN: nkx opt --canonicalize-loop-step %s | FileCheck %s

// CHECK-LABEL: func.func @tiles(
// CHECK:         %[[T:.*]] = arith.constant 128 : index
// CHECK:         scf.for %[[I:.*]] = %c0{{.*}} to %c4{{.*}} step %c1
// CHECK-NEXT:      %[[P:.*]] = arith.muli %[[I]], %[[T]] : index
// CHECK-NEXT:      tensor.extract_slice %arg0[%[[P]], 0]
func.func @tiles(%a: tensor<512x4xf32>, %b: tensor<128x4xf32>) -> tensor<128x4xf32> {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %r = scf.for %i = %c0 to %c512 step %c128 iter_args(%t = %b) -> (tensor<128x4xf32>) {
    %s = tensor.extract_slice %a[%i, 0] [128, 4] [1, 1] : tensor<512x4xf32> to tensor<128x4xf32>
    %u = linalg.add ins(%s, %t : tensor<128x4xf32>, tensor<128x4xf32>) outs(%t : tensor<128x4xf32>) -> tensor<128x4xf32>
    scf.yield %u : tensor<128x4xf32>
  }
  return %r : tensor<128x4xf32>
}

// A loop that turns once stays a loop; the lower bound is added; the turns are rounded up.
// CHECK-LABEL: func.func @other_ranges(
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c1{{.*}} step %c1
// CHECK-NEXT:      arith.muli
// CHECK:         scf.for %[[I:.*]] = %c0{{.*}} to %c3{{.*}} step %c1
// CHECK-NEXT:      %[[P:.*]] = arith.muli %[[I]], %c4{{.*}} : index
// CHECK-NEXT:      arith.addi %c2{{.*}}, %[[P]] : index
func.func @other_ranges(%m: memref<16xindex>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c13 = arith.constant 13 : index
  scf.for %i = %c0 to %c4 step %c4 {
    memref.store %i, %m[%i] : memref<16xindex>
  }
  scf.for %i = %c2 to %c13 step %c4 {
    memref.store %i, %m[%i] : memref<16xindex>
  }
  return
}

// Step 1 is left alone, whatever the bounds.
// CHECK-LABEL: func.func @step_one(
// CHECK:         scf.for %[[I:.*]] = %c3{{.*}} to %arg1 step %c1
// CHECK-NEXT:      memref.store %[[I]]
func.func @step_one(%m: memref<16xindex>, %n: index) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c3 to %n step %c1 {
    memref.store %i, %m[%i] : memref<16xindex>
  }
  return
}

// Computed bounds: the turns are computed, and an empty range stays empty.
// CHECK-LABEL: func.func @computed(
// CHECK:         %[[L:.*]] = arith.subi %arg2, %arg1 : index
// CHECK:         %[[N:.*]] = arith.ceildivsi %[[L]], %c5{{.*}} : index
// CHECK:         scf.for %[[I:.*]] = %c0{{.*}} to %[[N]] step %c1
// CHECK-NEXT:      %[[P:.*]] = arith.muli %[[I]], %c5{{.*}} : index
// CHECK-NEXT:      arith.addi %arg1, %[[P]] : index
func.func @computed(%m: memref<16xindex>, %lo: index, %hi: index) {
  %c5 = arith.constant 5 : index
  scf.for %i = %lo to %hi step %c5 {
    memref.store %i, %m[%i] : memref<16xindex>
  }
  return
}
