// RUN: not nkx opt --linalg-to-nisa %s 2>&1 | FileCheck %s
// Nothing is left over silently: every operation without a lowering is named, with the reason.

// CHECK: 16:3: error: not supported on NISA: linalg.generic: no engine computes math.cbrt
// CHECK: 21:3: error: not supported on NISA: linalg.batch_matmul: batches are taken apart before
// CHECK: 23:8: error: not supported on NISA: memref.alloc: it has no memory space
// CHECK: 24:3: error: not supported on NISA: nkipy.layout: it should be gone by now
// CHECK: 26:3: error: not supported on NISA: linalg.matmul: the tensor engine multiplies floats only
// CHECK: 28:3: error: not supported on NISA: memref.copy: an operand's reshape mixes partitions and blocks
#id = affine_map<(d0, d1) -> (d0, d1)>
!t = memref<64x96xf32, 3 : i32>
func.func @k(%b: memref<2x8x8xf32, 3 : i32>, %i: memref<8x8xi8, 3 : i32>, %p: memref<8x8xi32, 2 : i32>) {
  %s = memref.alloc() : memref<8x6xf32, 3 : i32>
  %a = memref.alloc() : !t
  %o = memref.alloc() : !t
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %a : !t, !t) outs(%o : !t) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %v = math.cbrt %x : f32
    linalg.yield %v : f32
  }
  linalg.batch_matmul ins(%b, %b : memref<2x8x8xf32, 3 : i32>, memref<2x8x8xf32, 3 : i32>) outs(%b : memref<2x8x8xf32, 3 : i32>)
  %d = memref.alloc() : memref<12x4xf32, 3 : i32>
  %n = memref.alloc() : memref<8x8xf32>
  "nkipy.layout"(%a) {mem_space = 3 : i32} : (!t) -> ()
  %c = memref.collapse_shape %s [[0, 1]] : memref<8x6xf32, 3 : i32> into memref<48xf32, 3 : i32>
  linalg.matmul ins(%i, %i : memref<8x8xi8, 3 : i32>, memref<8x8xi8, 3 : i32>) outs(%p : memref<8x8xi32, 2 : i32>)
  %e = memref.expand_shape %c [[0, 1]] output_shape [12, 4] : memref<48xf32, 3 : i32> into memref<12x4xf32, 3 : i32>
  memref.copy %e, %d : memref<12x4xf32, 3 : i32> to memref<12x4xf32, 3 : i32>
  return
}
