// RUN: nkx opt --insert-spill-reload=sbuf-capacity=16384 %s | FileCheck %s
// RUN: nkx opt --remarks --insert-spill-reload=sbuf-capacity=16384 %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: remark: linalg.mul: its result takes the place of an operand: together they do not fit into SBUF

// Each buffer takes 8192 bytes per partition; there is room for two.  The operand that is not read later is overwritten.
// CHECK-LABEL: func.func @last_reader
// CHECK-NOT: 1 : i32
// CHECK: linalg.exp ins(%[[A:[^ ]+]] : {{.*}} outs(%[[B:[^ ]+]] :
// CHECK-NEXT: linalg.mul ins(%[[A]], %[[B]] : {{.*}} outs(%[[A]] :
// CHECK-NEXT: memref.copy %[[A]], %arg1
// CHECK-NEXT: memref.copy %[[B]], %arg1
func.func @last_reader(%x: memref<128x1x1x2048xf32, 4 : i32>, %y: memref<128x1x1x2048xf32, 4 : i32>) {
  %a = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  %b = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  %c = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  memref.copy %x, %a : memref<128x1x1x2048xf32, 4 : i32> to memref<128x1x1x2048xf32, 3 : i32>
  linalg.exp ins(%a : memref<128x1x1x2048xf32, 3 : i32>) outs(%b : memref<128x1x1x2048xf32, 3 : i32>)
  linalg.mul ins(%a, %b : memref<128x1x1x2048xf32, 3 : i32>, memref<128x1x1x2048xf32, 3 : i32>) outs(%c : memref<128x1x1x2048xf32, 3 : i32>)
  memref.copy %c, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  memref.copy %b, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  return
}

// If both are read later, the one that is overwritten waits in HBM and comes back.
// CHECK-LABEL: func.func @spilled
// CHECK: linalg.exp ins(%[[A:[^ ]+]] : {{.*}} outs(%[[B:[^ ]+]] :
// CHECK-NEXT: %[[S:.*]] = memref.alloc() {{.*}} : memref<128x1x1x2048xf32, 1 : i32>
// CHECK-NEXT: memref.copy %[[A]], %[[S]]
// CHECK-NEXT: linalg.mul ins(%[[A]], %[[B]] : {{.*}} outs(%[[A]] :
// CHECK-NEXT: memref.copy %[[A]], %arg1
// CHECK-NEXT: memref.copy %[[B]], %arg1
// CHECK-NEXT: %[[D:.*]] = memref.alloc() {{.*}} : memref<128x1x1x2048xf32, 3 : i32>
// CHECK-NEXT: memref.copy %[[S]], %[[D]]
// CHECK-NEXT: memref.copy %[[D]], %arg1
func.func @spilled(%x: memref<128x1x1x2048xf32, 4 : i32>, %y: memref<128x1x1x2048xf32, 4 : i32>) {
  %a = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  %b = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  %c = memref.alloc() : memref<128x1x1x2048xf32, 3 : i32>
  memref.copy %x, %a : memref<128x1x1x2048xf32, 4 : i32> to memref<128x1x1x2048xf32, 3 : i32>
  linalg.exp ins(%a : memref<128x1x1x2048xf32, 3 : i32>) outs(%b : memref<128x1x1x2048xf32, 3 : i32>)
  linalg.mul ins(%a, %b : memref<128x1x1x2048xf32, 3 : i32>, memref<128x1x1x2048xf32, 3 : i32>) outs(%c : memref<128x1x1x2048xf32, 3 : i32>)
  memref.copy %c, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  memref.copy %b, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  memref.copy %a, %y : memref<128x1x1x2048xf32, 3 : i32> to memref<128x1x1x2048xf32, 4 : i32>
  return
}
