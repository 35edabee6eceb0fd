// RUN: nkx opt --insert-spill-reload=sbuf-capacity=16384 %s | FileCheck %s

// Each buffer takes 8192 bytes per partition; there is room for two.  %a waits in HBM: only what was written of it goes
// there and comes back.

// 130 rows of 1000 in tiles of 128x256: the last block of rows has 2, the last block of a row has 232 elements.
// CHECK-LABEL: func.func @tails
// CHECK: %[[S:.*]] = memref.alloc() {{.*}} : memref<128x2x4x256xf32, 1 : i32>
// CHECK: %[[A:.*]] = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
// CHECK-NOT: 1 : i32>
// CHECK-DAG: %[[A0:.*]] = memref.subview %[[A]][0, 0, 0, 0] [128, 1, 3, 256]
// CHECK-DAG: %[[S0:.*]] = memref.subview %[[S]][0, 0, 0, 0] [128, 1, 3, 256]
// CHECK: memref.copy %[[A0]], %[[S0]]
// CHECK-DAG: %[[A1:.*]] = memref.subview %[[A]][0, 0, 3, 0] [128, 1, 1, 232]
// CHECK-DAG: %[[S1:.*]] = memref.subview %[[S]][0, 0, 3, 0] [128, 1, 1, 232]
// CHECK: memref.copy %[[A1]], %[[S1]]
// CHECK-DAG: %[[A2:.*]] = memref.subview %[[A]][0, 1, 0, 0] [2, 1, 3, 256]
// CHECK-DAG: %[[S2:.*]] = memref.subview %[[S]][0, 1, 0, 0] [2, 1, 3, 256]
// CHECK: memref.copy %[[A2]], %[[S2]]
// CHECK-DAG: %[[A3:.*]] = memref.subview %[[A]][0, 1, 3, 0] [2, 1, 1, 232]
// CHECK-DAG: %[[S3:.*]] = memref.subview %[[S]][0, 1, 3, 0] [2, 1, 1, 232]
// CHECK: memref.copy %[[A3]], %[[S3]] : {{.*$}}
// CHECK-NOT: 1 : i32>
// CHECK: %[[N:.*]] = memref.alloc() {{.*}} : memref<128x2x4x256xf32, 3 : i32>
// CHECK: %[[R0:.*]] = memref.subview %[[N]][0, 0, 0, 0] [128, 1, 3, 256]
// CHECK: memref.copy %{{.*}}, %[[R0]] : {{.*}} 1 : i32> to {{.*$}}
// CHECK: %[[R1:.*]] = memref.subview %[[N]][0, 0, 3, 0] [128, 1, 1, 232]
// CHECK: memref.copy %{{.*}}, %[[R1]] : {{.*}} 1 : i32> to {{.*$}}
// CHECK: %[[R2:.*]] = memref.subview %[[N]][0, 1, 0, 0] [2, 1, 3, 256]
// CHECK: memref.copy %{{.*}}, %[[R2]] : {{.*}} 1 : i32> to {{.*$}}
// CHECK: %[[R3:.*]] = memref.subview %[[N]][0, 1, 3, 0] [2, 1, 1, 232]
// CHECK: memref.copy %{{.*}}, %[[R3]] : {{.*}} 1 : i32> to {{.*$}}
// CHECK-NOT: 1 : i32>
// CHECK: return
func.func @tails(%x: memref<130x1000xf32, 4 : i32>, %y: memref<128x2x4x256xf32, 4 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c256 = arith.constant 256 : index
  %a = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  scf.for %j = %c0 to %c3 step %c1 {
    %at = arith.muli %j, %c256 : index
    %f = memref.subview %x[0, %at] [128, 256] [1, 1] : memref<130x1000xf32, 4 : i32> to memref<128x256xf32, strided<[1000, 1], offset: ?>, 4 : i32>
    %t = memref.subview %a[0, 0, %j, 0] [128, 1, 1, 256] [1, 1, 1, 1] : memref<128x2x4x256xf32, 3 : i32> to memref<128x1x1x256xf32, strided<[2048, 1024, 256, 1], offset: ?>, 3 : i32>
    %u = memref.collapse_shape %t [[0, 1, 2], [3]] : memref<128x1x1x256xf32, strided<[2048, 1024, 256, 1], offset: ?>, 3 : i32> into memref<128x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>
    memref.copy %f, %u : memref<128x256xf32, strided<[1000, 1], offset: ?>, 4 : i32> to memref<128x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>
  }
  %f1 = memref.subview %x[0, 768] [128, 232] [1, 1] : memref<130x1000xf32, 4 : i32> to memref<128x232xf32, strided<[1000, 1], offset: 768>, 4 : i32>
  %t1 = memref.subview %a[0, 0, 3, 0] [128, 1, 1, 232] [1, 1, 1, 1] : memref<128x2x4x256xf32, 3 : i32> to memref<128x232xf32, strided<[2048, 1], offset: 768>, 3 : i32>
  memref.copy %f1, %t1 : memref<128x232xf32, strided<[1000, 1], offset: 768>, 4 : i32> to memref<128x232xf32, strided<[2048, 1], offset: 768>, 3 : i32>
  scf.for %j = %c0 to %c3 step %c1 {
    %at = arith.muli %j, %c256 : index
    %f = memref.subview %x[128, %at] [2, 256] [1, 1] : memref<130x1000xf32, 4 : i32> to memref<2x256xf32, strided<[1000, 1], offset: ?>, 4 : i32>
    %t = memref.subview %a[0, 1, %j, 0] [2, 1, 1, 256] [1, 1, 1, 1] : memref<128x2x4x256xf32, 3 : i32> to memref<2x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>
    memref.copy %f, %t : memref<2x256xf32, strided<[1000, 1], offset: ?>, 4 : i32> to memref<2x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>
  }
  %f2 = memref.subview %x[128, 768] [2, 232] [1, 1] : memref<130x1000xf32, 4 : i32> to memref<2x232xf32, strided<[1000, 1], offset: 128768>, 4 : i32>
  %t2 = memref.subview %a[0, 1, 3, 0] [2, 1, 1, 232] [1, 1, 1, 1] : memref<128x2x4x256xf32, 3 : i32> to memref<2x232xf32, strided<[2048, 1], offset: 1792>, 3 : i32>
  memref.copy %f2, %t2 : memref<2x232xf32, strided<[1000, 1], offset: 128768>, 4 : i32> to memref<2x232xf32, strided<[2048, 1], offset: 1792>, 3 : i32>
  %b = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  memref.copy %y, %b : memref<128x2x4x256xf32, 4 : i32> to memref<128x2x4x256xf32, 3 : i32>
  %c = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  linalg.exp ins(%b : memref<128x2x4x256xf32, 3 : i32>) outs(%c : memref<128x2x4x256xf32, 3 : i32>)
  memref.copy %c, %y : memref<128x2x4x256xf32, 3 : i32> to memref<128x2x4x256xf32, 4 : i32>
  memref.copy %t1, %f1 : memref<128x232xf32, strided<[2048, 1], offset: 768>, 3 : i32> to memref<128x232xf32, strided<[1000, 1], offset: 768>, 4 : i32>
  return
}

// Two writers that together write all of it, in a nest of loops and in a loop that goes through it backwards by more
// than its own size: one copy.
// CHECK-LABEL: func.func @all
// CHECK: %[[S:.*]] = memref.alloc() {{.*}} : memref<128x2x4x256xf32, 1 : i32>
// CHECK: %[[A:.*]] = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
// CHECK: memref.copy %[[A]], %[[S]] :
// CHECK: %[[N:.*]] = memref.alloc() {{.*}} : memref<128x2x4x256xf32, 3 : i32>
// CHECK-NEXT: memref.copy %[[S]], %[[N]] : {{.*$}}
// CHECK-NOT: 1 : i32>
// CHECK: return
func.func @all(%y: memref<128x2x4x256xf32, 4 : i32>) {
  %cst = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c-2 = arith.constant -2 : index
  %a = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %c3 step %c2 {
      %t = memref.subview %a[0, %i, %j, 0] [128, 1, 1, 256] [1, 1, 1, 1] : memref<128x2x4x256xf32, 3 : i32> to memref<128x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>
      linalg.fill ins(%cst : f32) outs(%t : memref<128x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>)
    }
    scf.for %j = %c0 to %c2 step %c1 {
      %back = arith.muli %j, %c-2 : index
      %at = arith.addi %back, %c3 : index
      %t = memref.subview %a[0, %i, %at, 0] [128, 1, 1, 256] [1, 1, 1, 1] : memref<128x2x4x256xf32, 3 : i32> to memref<128x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>
      linalg.fill ins(%cst : f32) outs(%t : memref<128x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>)
    }
  }
  %b = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  memref.copy %y, %b : memref<128x2x4x256xf32, 4 : i32> to memref<128x2x4x256xf32, 3 : i32>
  %c = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  linalg.exp ins(%b : memref<128x2x4x256xf32, 3 : i32>) outs(%c : memref<128x2x4x256xf32, 3 : i32>)
  memref.copy %c, %y : memref<128x2x4x256xf32, 3 : i32> to memref<128x2x4x256xf32, 4 : i32>
  memref.copy %a, %y : memref<128x2x4x256xf32, 3 : i32> to memref<128x2x4x256xf32, 4 : i32>
  return
}

// A diagonal: each place by itself.  Two adjacent elements more are one part.  What is written after the reload does not
// belong to the parts.
// CHECK-LABEL: func.func @apart
// CHECK: %[[S:.*]] = memref.alloc() {{.*}} : memref<128x2x4x256xf32, 1 : i32>
// CHECK: %[[A:.*]] = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
// CHECK: %[[A0:.*]] = memref.subview %[[A]][0, 0, 0, 0] [128, 1, 1, 256]
// CHECK: memref.copy %[[A0]], %{{.*}} 1 : i32>
// CHECK: %[[A1:.*]] = memref.subview %[[A]][0, 1, 1, 0] [128, 1, 1, 256]
// CHECK: memref.copy %[[A1]], %{{.*}} 1 : i32>
// CHECK: %[[A2:.*]] = memref.subview %[[A]][0, 1, 3, 7] [128, 1, 1, 2]
// CHECK: memref.copy %[[A2]], %{{.*}} 1 : i32>
// CHECK-NOT: memref.subview %[[A]]
// CHECK: return
func.func @apart(%y: memref<128x2x4x256xf32, 4 : i32>) {
  %cst = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %a = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  scf.for %i = %c0 to %c2 step %c1 {
    %t = memref.subview %a[0, %i, %i, 0] [128, 1, 1, 256] [1, 1, 1, 1] : memref<128x2x4x256xf32, 3 : i32> to memref<128x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>
    linalg.fill ins(%cst : f32) outs(%t : memref<128x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>)
  }
  %t1 = memref.subview %a[0, 1, 3, 8] [128, 1, 1, 1] [1, 1, 1, 1] : memref<128x2x4x256xf32, 3 : i32> to memref<128x1xf32, strided<[2048, 1], offset: 1800>, 3 : i32>
  linalg.fill ins(%cst : f32) outs(%t1 : memref<128x1xf32, strided<[2048, 1], offset: 1800>, 3 : i32>)
  %t2 = memref.subview %a[0, 1, 3, 7] [128, 1, 1, 1] [1, 1, 1, 1] : memref<128x2x4x256xf32, 3 : i32> to memref<128x1xf32, strided<[2048, 1], offset: 1799>, 3 : i32>
  linalg.fill ins(%cst : f32) outs(%t2 : memref<128x1xf32, strided<[2048, 1], offset: 1799>, 3 : i32>)
  %b = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  memref.copy %y, %b : memref<128x2x4x256xf32, 4 : i32> to memref<128x2x4x256xf32, 3 : i32>
  %c = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  linalg.exp ins(%b : memref<128x2x4x256xf32, 3 : i32>) outs(%c : memref<128x2x4x256xf32, 3 : i32>)
  memref.copy %c, %y : memref<128x2x4x256xf32, 3 : i32> to memref<128x2x4x256xf32, 4 : i32>
  %t3 = memref.subview %a[0, 0, 1, 0] [128, 1, 1, 256] [1, 1, 1, 1] : memref<128x2x4x256xf32, 3 : i32> to memref<128x256xf32, strided<[2048, 1], offset: 256>, 3 : i32>
  linalg.fill ins(%cst : f32) outs(%t3 : memref<128x256xf32, strided<[2048, 1], offset: 256>, 3 : i32>)
  memref.copy %a, %y : memref<128x2x4x256xf32, 3 : i32> to memref<128x2x4x256xf32, 4 : i32>
  return
}

// An offset that is not known: it may be anywhere along its dimension, so all blocks of the first row block go.
// CHECK-LABEL: func.func @somewhere
// CHECK: memref.subview %{{.*}}[0, 0, 0, 0] [128, 1, 4, 256] [1, 1, 1, 1] : {{.*}} 3 : i32>
// CHECK: return
func.func @somewhere(%k: index, %y: memref<128x2x4x256xf32, 4 : i32>) {
  %cst = arith.constant 1.0 : f32
  %a = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  %t = memref.subview %a[0, 0, %k, 0] [128, 1, 1, 256] [1, 1, 1, 1] : memref<128x2x4x256xf32, 3 : i32> to memref<128x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>
  linalg.fill ins(%cst : f32) outs(%t : memref<128x256xf32, strided<[2048, 1], offset: ?>, 3 : i32>)
  %b = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  memref.copy %y, %b : memref<128x2x4x256xf32, 4 : i32> to memref<128x2x4x256xf32, 3 : i32>
  %c = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  linalg.exp ins(%b : memref<128x2x4x256xf32, 3 : i32>) outs(%c : memref<128x2x4x256xf32, 3 : i32>)
  memref.copy %c, %y : memref<128x2x4x256xf32, 3 : i32> to memref<128x2x4x256xf32, 4 : i32>
  memref.copy %a, %y : memref<128x2x4x256xf32, 3 : i32> to memref<128x2x4x256xf32, 4 : i32>
  return
}

// What nothing has written yet goes nowhere.
// CHECK-LABEL: func.func @nothing
// CHECK-NOT: 1 : i32>
// CHECK: return
func.func @nothing(%y: memref<128x2x4x256xf32, 4 : i32>) {
  %cst = arith.constant 1.0 : f32
  %a = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  %z = memref.alloc() : memref<128x2x4x256xf32, 4 : i32>
  memref.copy %a, %z : memref<128x2x4x256xf32, 3 : i32> to memref<128x2x4x256xf32, 4 : i32>
  %b = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  memref.copy %y, %b : memref<128x2x4x256xf32, 4 : i32> to memref<128x2x4x256xf32, 3 : i32>
  %c = memref.alloc() : memref<128x2x4x256xf32, 3 : i32>
  linalg.exp ins(%b : memref<128x2x4x256xf32, 3 : i32>) outs(%c : memref<128x2x4x256xf32, 3 : i32>)
  memref.copy %c, %y : memref<128x2x4x256xf32, 3 : i32> to memref<128x2x4x256xf32, 4 : i32>
  linalg.fill ins(%cst : f32) outs(%a : memref<128x2x4x256xf32, 3 : i32>)
  memref.copy %a, %y : memref<128x2x4x256xf32, 3 : i32> to memref<128x2x4x256xf32, 4 : i32>
  return
}
