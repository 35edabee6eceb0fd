// RUN: nkx opt --linalg-to-nisa=target=trn2 --print-nisa %s | FileCheck %s
// What is only read to be copied is written where the copy goes.
#id = affine_map<(i, j) -> (i, j)>
!t = memref<64x4x96xf32, 3 : i32>
!h = memref<64x4x96xbf16, 3 : i32>
!tile = memref<64x96xf32, strided<[384, 1], offset: ?>, 3 : i32>
!half = memref<64x96xbf16, strided<[384, 1], offset: ?>, 3 : i32>
!o = memref<64x4x96xbf16, 1 : i32>

// Tiles of f32 that a second loop rounds: the first loop rounds them, and the second one goes.
// CHECK-LABEL: func.func @loops
// CHECK:       %sbuf = nisa.alloc {{.*}}: memref<64x4x96xbf16
// CHECK:       nisa.tensor_tensor_arith(dst{{.*}} %sbuf[d0, %i, d1], lhs
// CHECK-NOT:   nisa.tensor_copy
// CHECK:       nisa.dma_copy(
func.func @loops(%x: memref<64x96xf32, 3 : i32>, %o: !o) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = memref.alloc() : !t
  %h = memref.alloc() : !h
  scf.for %i = %c0 to %c4 step %c1 {
    %v = memref.subview %t[0, %i, 0] [64, 1, 96] [1, 1, 1] : !t to !tile
    linalg.add ins(%x, %x : memref<64x96xf32, 3 : i32>, memref<64x96xf32, 3 : i32>) outs(%v : !tile)
  }
  scf.for %i = %c0 to %c4 step %c1 {
    %v = memref.subview %t[0, %i, 0] [64, 1, 96] [1, 1, 1] : !t to !tile
    %w = memref.subview %h[0, %i, 0] [64, 1, 96] [1, 1, 1] : !h to !half
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v : !tile) outs(%w : !half) {
    ^bb0(%a: f32, %z: bf16):
      %r = arith.truncf %a : f32 to bf16
      linalg.yield %r : bf16
    }
  }
  memref.dealloc %t : !t
  memref.copy %h, %o : !h to !o
  memref.dealloc %h : !h
  return
}

// The tiles are read once more, in f32: they stay.
// CHECK-LABEL: func.func @read_twice
// CHECK:       nisa.tensor_tensor_arith(dst{{.*}}memref<64x4x96xf32
// CHECK:       nisa.tensor_copy(
func.func @read_twice(%x: memref<64x96xf32, 3 : i32>, %o: !o, %p: memref<64x96xf32, 3 : i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = memref.alloc() : !t
  %h = memref.alloc() : !h
  scf.for %i = %c0 to %c4 step %c1 {
    %v = memref.subview %t[0, %i, 0] [64, 1, 96] [1, 1, 1] : !t to !tile
    linalg.add ins(%x, %x : memref<64x96xf32, 3 : i32>, memref<64x96xf32, 3 : i32>) outs(%v : !tile)
  }
  scf.for %i = %c0 to %c4 step %c1 {
    %v = memref.subview %t[0, %i, 0] [64, 1, 96] [1, 1, 1] : !t to !tile
    %w = memref.subview %h[0, %i, 0] [64, 1, 96] [1, 1, 1] : !h to !half
    linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v : !tile) outs(%w : !half) {
    ^bb0(%a: f32, %z: bf16):
      %r = arith.truncf %a : f32 to bf16
      linalg.yield %r : bf16
    }
    linalg.add ins(%v, %p : !tile, memref<64x96xf32, 3 : i32>) outs(%p : memref<64x96xf32, 3 : i32>)
  }
  memref.dealloc %t : !t
  memref.copy %h, %o : !h to !o
  memref.dealloc %h : !h
  return
}
