// Arguments, results and what calls take and give are SharedHbm; declarations too.
// RUN: nkx opt --annotate-memory-space %s | FileCheck %s
// CHECK: func.func private @custom(memref<8x8xf32, strided<[?, ?], offset: ?>, 4 : i32>, f32) -> memref<8x8xf32, 4 : i32> attributes {nkipy.custom_op}
func.func private @custom(memref<8x8xf32, strided<[?, ?], offset: ?>>, f32) -> memref<8x8xf32> attributes {nkipy.custom_op}

// A value in SBUF is copied for the call.
// CHECK-LABEL: @call
// CHECK:         %[[S:.*]] = memref.alloc() : memref<8x8xf32, 3 : i32>
// CHECK:         %[[C:.*]] = memref.cast %[[S]]
// CHECK:         %[[A:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32, 4 : i32>
// CHECK-NEXT:    memref.copy %[[C]], %[[A]]
// CHECK-NEXT:    %[[D:.*]] = memref.cast %[[A]] : memref<8x8xf32, 4 : i32> to memref<8x8xf32, strided<[?, ?], offset: ?>, 4 : i32>
// CHECK-NEXT:    %[[R:.*]] = call @custom(%[[D]], %{{.*}}) : {{.*}} -> memref<8x8xf32, 4 : i32>
// CHECK-NEXT:    return %[[R]] : memref<8x8xf32, 4 : i32>
func.func @call(%x: f32) -> memref<8x8xf32> {
  %s = memref.alloc() : memref<8x8xf32>
  linalg.fill ins(%x : f32) outs(%s : memref<8x8xf32>)
  "nkipy.layout"(%s) {mem_space = 3 : i32} : (memref<8x8xf32>) -> ()
  %c = memref.cast %s : memref<8x8xf32> to memref<8x8xf32, strided<[?, ?], offset: ?>>
  %r = call @custom(%c, %x) : (memref<8x8xf32, strided<[?, ?], offset: ?>>, f32) -> memref<8x8xf32>
  return %r : memref<8x8xf32>
}

// A result that the user put into SBUF, one that is in HBM, an argument, and one twice.
// CHECK-LABEL: @results
// CHECK-SAME:    (%[[A:.*]]: memref<8x8xf32, 4 : i32>, %{{.*}}: f32) -> (memref<8x8xf32, 4 : i32>, memref<8x8xf32, 4 : i32>, memref<8x8xf32, 4 : i32>, memref<8x8xf32, 4 : i32>)
// CHECK:         %[[S:.*]] = memref.alloc() : memref<8x8xf32, 3 : i32>
// CHECK:         %[[H:.*]] = memref.alloc() : memref<8x8xf32, 4 : i32>
// CHECK:         "nkipy.layout"(%[[S]]) {mem_space = 3 : i32}
// CHECK:         "nkipy.layout"(%[[H]]) {mem_space = 4 : i32}
// CHECK:         %[[O:.*]] = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32, 4 : i32>
// CHECK-NEXT:    memref.copy %[[S]], %[[O]] : memref<8x8xf32, 3 : i32> to memref<8x8xf32, 4 : i32>
// CHECK-NEXT:    return %[[O]], %[[H]], %[[A]], %[[H]]
func.func @results(%a: memref<8x8xf32>, %x: f32) -> (memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) {
  %s = memref.alloc() : memref<8x8xf32>
  linalg.fill ins(%x : f32) outs(%s : memref<8x8xf32>)
  %h = memref.alloc() : memref<8x8xf32>
  linalg.fill ins(%x : f32) outs(%h : memref<8x8xf32>)
  "nkipy.layout"(%s) {mem_space = 3 : i32} : (memref<8x8xf32>) -> ()
  "nkipy.layout"(%h) {mem_space = 1 : i32} : (memref<8x8xf32>) -> ()
  return %s, %h, %a, %h : memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>
}
