// RUN: nkx opt --simplify-linalg %s | FileCheck %s
// RUN: nkx opt --remarks --simplify-linalg %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: a transpose of 4 dimensions becomes loops around copies of two
// REMARK: a transpose of 3 dimensions becomes loops around transposes of two

// The last dimension stays: copies of it with the longest other one.
// CHECK-LABEL: func.func @heads
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c2
// CHECK: scf.for %[[J:.*]] = %c0{{.*}} to %c3
// CHECK: %[[X:.*]] = memref.subview %arg0[%[[I]], 0, %[[J]], 0] [1, 128, 1, 64] {{.*}} to memref<128x64xf32
// CHECK: %[[Y:.*]] = memref.subview %arg1[%[[I]], %[[J]], 0, 0] [1, 1, 128, 64] {{.*}} to memref<128x64xf32
// CHECK: memref.copy %[[X]], %[[Y]]
// CHECK-NOT: linalg.transpose
func.func @heads(%x: memref<2x128x3x64xf32, 4 : i32>, %y: memref<2x3x128x64xf32, 4 : i32>) {
  linalg.transpose ins(%x : memref<2x128x3x64xf32, 4 : i32>) outs(%y : memref<2x3x128x64xf32, 4 : i32>) permutation = [0, 2, 1, 3]
  return
}

// The last dimension moves: tiles of 128 by 128 through SBUF, and the rest.
// CHECK-LABEL: func.func @last
// CHECK: scf.for %[[B:.*]] = %c0{{.*}} to %c4
// CHECK: %[[X:.*]] = memref.subview %arg0[%[[B]], 0, 0] [1, 128, 128] {{.*}} to memref<128x128xf32
// CHECK: %[[Y:.*]] = memref.subview %arg1[%[[B]], 0, 0] [1, 128, 128] {{.*}} to memref<128x128xf32
// CHECK: %[[T:.*]] = memref.alloc() {{.*}} : memref<128x128xf32, 3 : i32>
// CHECK: linalg.transpose ins(%[[X]] {{.*}} outs(%[[T]] {{.*}} permutation = [1, 0]
// CHECK: memref.copy %[[T]], %[[Y]]
// CHECK: memref.subview %arg0[%[[B]], 128, 0] [1, 2, 128]
// CHECK: memref.subview %arg1[%[[B]], 0, 128] [1, 128, 2]
func.func @last(%x: memref<4x130x128xf32, 4 : i32>, %y: memref<4x128x130xf32, 4 : i32>) {
  linalg.transpose ins(%x : memref<4x130x128xf32, 4 : i32>) outs(%y : memref<4x128x130xf32, 4 : i32>) permutation = [0, 2, 1]
  return
}

// A short dimension changes places with a long one: copies of the long one and what stays, one for each of the short.
// CHECK-LABEL: func.func @short
// CHECK-NOT: linalg.transpose
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c2
// CHECK: memref.subview %arg0[0, 0, %[[I]]] [64, 128, 1] {{.*}} to memref<64x128xf32
// CHECK: memref.subview %arg1[0, %[[I]], 0] [64, 1, 128] {{.*}} to memref<64x128xf32
// CHECK: memref.copy
func.func @short(%x: memref<64x128x2xf32, 4 : i32>, %y: memref<64x2x128xf32, 4 : i32>) {
  linalg.transpose ins(%x : memref<64x128x2xf32, 4 : i32>) outs(%y : memref<64x2x128xf32, 4 : i32>) permutation = [0, 2, 1]
  return
}

// In SBUF the partitions stay where they are.
// CHECK-LABEL: func.func @free
// CHECK: scf.for %[[I:.*]] = %c0{{.*}} to %c32
// CHECK: memref.subview %arg0[0, 0, %[[I]]] [128, 64, 1] {{.*}} to memref<128x64xf32
// CHECK: memref.copy
func.func @free(%x: memref<128x64x32xf32, 3 : i32>, %y: memref<128x32x64xf32, 3 : i32>) {
  linalg.transpose ins(%x : memref<128x64x32xf32, 3 : i32>) outs(%y : memref<128x32x64xf32, 3 : i32>) permutation = [0, 2, 1]
  return
}

// One tile into SBUF is one DMA.
// CHECK-LABEL: func.func @tile
// CHECK-NEXT: linalg.transpose ins(%arg0 {{.*}} outs(%arg1
// CHECK-NEXT: return
func.func @tile(%x: memref<128x64xf32, 4 : i32>, %y: memref<64x128xf32, 3 : i32>) {
  linalg.transpose ins(%x : memref<128x64xf32, 4 : i32>) outs(%y : memref<64x128xf32, 3 : i32>) permutation = [1, 0]
  return
}
