// A scan is one instruction for each tile, and its last result is kept for the next one.
// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d0, 0)>
!t = memref<64x96xf32, 3 : i32>
!c = memref<64x1xf32, 3 : i32>

// The 1 is one element of each partition.
// CHECK-LABEL: func.func @sum
// CHECK:       scf.for
// CHECK:         %[[ONE:[a-z0-9_]+]] = "nisa.alloc"() {alignment = 64 : i64} : () -> memref<64x1xf32, #nisa.mem<"sbuf">>
// CHECK-NEXT:    "nisa.memset"(%[[ONE]], %{{.*}})
// CHECK-NEXT:    "nisa.tensor_tensor_scan"(%[[Y:[a-z0-9_]+]], %[[ONE]], %{{.*}}, %[[B:[a-z0-9_]+]]) {{.*}}op0 = "multiply", op1 = "add"
// CHECK-NEXT:    "nisa.tensor_copy"(%[[B]], %[[Y]])
// CHECK-NEXT:    "nisa.release"(%[[ONE]])
func.func @sum(%lo: f32, %a: !t, %y: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %o = memref.alloc() : !c
  linalg.fill ins(%lo : f32) outs(%o : !c)
  scf.for %i = %c0 to %c4 step %c1 {
    linalg.generic {indexing_maps = [#id, #id, #col], iterator_types = ["parallel", "reduction"]} ins(%a : !t) outs(%y, %o : !t, !c) {
    ^bb0(%x: f32, %u: f32, %b: f32):
      %r = arith.addf %b, %x : f32
      linalg.yield %r, %r : f32, f32
    }
  }
  memref.dealloc %o : !c
  return
}

// Two operations are one instruction; nothing reads the last result.
// CHECK-LABEL: func.func @recurrence
// CHECK:       "nisa.tensor_tensor_scan"(%{{.*}}, %arg1, %arg2, %{{.*}}) {{.*}}op0 = "multiply", op1 = "subtract"{{.*}}reverse_operands = "second"
// CHECK-NOT:   tensor_copy
// CHECK:       return
func.func @recurrence(%lo: f32, %a: !t, %b: !t, %y: !t) {
  %o = memref.alloc() : !c
  linalg.fill ins(%lo : f32) outs(%o : !c)
  linalg.generic {indexing_maps = [#id, #id, #id, #col], iterator_types = ["parallel", "reduction"]} ins(%a, %b : !t, !t) outs(%y, %o : !t, !c) {
  ^bb0(%p: f32, %q: f32, %u: f32, %h: f32):
    %m = arith.mulf %p, %h : f32
    %r = arith.subf %q, %m : f32
    linalg.yield %r, %r : f32, f32
  }
  memref.dealloc %o : !c
  return
}

// A maximum needs no 1.
// CHECK-LABEL: func.func @maximum
// CHECK:       "nisa.tensor_tensor_scan"(%{{.*}}, %arg1, %arg1, %{{.*}}) {{.*}}op0 = "max", op1 = "max"
func.func @maximum(%lo: f32, %a: !t, %y: !t) {
  %o = memref.alloc() : !c
  linalg.fill ins(%lo : f32) outs(%o : !c)
  linalg.generic {indexing_maps = [#id, #id, #col], iterator_types = ["parallel", "reduction"]} ins(%a : !t) outs(%y, %o : !t, !c) {
  ^bb0(%x: f32, %u: f32, %b: f32):
    %r = arith.maximumf %b, %x : f32
    linalg.yield %r, %r : f32, f32
  }
  memref.dealloc %o : !c
  return
}

// A column of the state for each round: nothing reads it again.
// CHECK-LABEL: func.func @rows
// CHECK:       "nisa.tensor_tensor_scan"
// CHECK-NOT:   tensor_copy
// CHECK:       return
func.func @rows(%lo: f32, %a: !t, %y: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %o = memref.alloc() : memref<64x4xf32, 3 : i32>
  linalg.fill ins(%lo : f32) outs(%o : memref<64x4xf32, 3 : i32>)
  scf.for %i = %c0 to %c4 step %c1 {
    %b = memref.subview %o[0, %i] [64, 1] [1, 1] : memref<64x4xf32, 3 : i32> to memref<64x1xf32, strided<[4, 1], offset: ?>, 3 : i32>
    linalg.generic {indexing_maps = [#id, #id, #col], iterator_types = ["parallel", "reduction"]} ins(%a : !t) outs(%y, %b : !t, memref<64x1xf32, strided<[4, 1], offset: ?>, 3 : i32>) {
    ^bb0(%x: f32, %u: f32, %r: f32):
      %s = arith.addf %r, %x : f32
      linalg.yield %s, %s : f32, f32
    }
  }
  memref.dealloc %o : memref<64x4xf32, 3 : i32>
  return
}

// The same, but the next round copies the column of the round before.
// CHECK-LABEL: func.func @copied
// CHECK:       "nisa.tensor_tensor_scan"
// CHECK:       "nisa.tensor_copy"
func.func @copied(%lo: f32, %a: !t, %y: !t, %z: memref<64x5xf32, 3 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %o = memref.alloc() : memref<64x5xf32, 3 : i32>
  linalg.fill ins(%lo : f32) outs(%o : memref<64x5xf32, 3 : i32>)
  scf.for %i = %c0 to %c4 step %c1 {
    memref.copy %o, %z : memref<64x5xf32, 3 : i32> to memref<64x5xf32, 3 : i32>
    %b = memref.subview %o[0, %i] [64, 1] [1, 1] : memref<64x5xf32, 3 : i32> to memref<64x1xf32, strided<[5, 1], offset: ?>, 3 : i32>
    linalg.generic {indexing_maps = [#id, #id, #col], iterator_types = ["parallel", "reduction"]} ins(%a : !t) outs(%y, %b : !t, memref<64x1xf32, strided<[5, 1], offset: ?>, 3 : i32>) {
    ^bb0(%x: f32, %u: f32, %r: f32):
      %s = arith.addf %r, %x : f32
      linalg.yield %s, %s : f32, f32
    }
  }
  memref.dealloc %o : memref<64x5xf32, 3 : i32>
  return
}
