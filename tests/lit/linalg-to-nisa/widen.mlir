// RUN: nkx opt --linalg-to-nisa --nisa-verify --print-nisa %s | FileCheck %s
// RUN: nkx opt --linalg-to-nisa=sbuf-capacity=1000 --nisa-verify --print-nisa %s | FileCheck %s --check-prefix=FULL
!m = memref<128x256xf32, 4 : i32>
!l = memref<128x64xf32, strided<[256, 1]>, 4 : i32>
!h = memref<128x64xf32, strided<[256, 1], offset: 64>, 4 : i32>
!g = memref<128x64xf32, strided<[256, 1], offset: 65>, 4 : i32>
!t = memref<128x64xf32, 3 : i32>

// Columns 64 to 127 are loaded together with 0 to 63, which are wanted later; readers of either find them in one buffer.
// CHECK-LABEL: func.func @neighbours
// CHECK:       nisa.dma_copy(dst<128| 128>={{.*}} [[W:%[a-z0-9_]+]][d0, d1], src<128| 128>={{.*}} %arg0[d0, d1])
// CHECK-NOT:   nisa.dma_copy
// CHECK:       nisa.activation(dst{{.*}}, src<128| 64>={{.*}} [[W]][d0, d1 + 64]
// CHECK:       nisa.tensor_tensor_arith({{.*}}rhs<128| 64>={{.*}} [[W]][d0, d1], op=add
// CHECK-NEXT:  nisa.release [[W]]
// CHECK:       return
// Not if SBUF has no room for the time that the first columns wait.
// FULL-LABEL:  func.func @neighbours
// FULL-COUNT-2: nisa.dma_copy(
// FULL-NOT:    nisa.dma_copy
// FULL:        return
func.func @neighbours(%x: !m, %o: !t) {
  %a = memref.alloc() : !t
  %h = memref.subview %x[0, 64] [128, 64] [1, 1] : !m to !h
  memref.copy %h, %a : !h to !t
  %e = memref.alloc() : !t
  linalg.exp ins(%a : !t) outs(%e : !t)
  memref.dealloc %a : !t
  %b = memref.alloc() : !t
  %l = memref.subview %x[0, 0] [128, 64] [1, 1] : !m to !l
  memref.copy %l, %b : !l to !t
  linalg.add ins(%e, %b : !t, !t) outs(%o : !t)
  memref.dealloc %b : !t
  memref.dealloc %e : !t
  return
}

// A column is missing between them.
// CHECK-LABEL: func.func @gap
// CHECK-COUNT-2: nisa.dma_copy(dst<128| 64>
// CHECK:       return
func.func @gap(%x: !m, %o: !t) {
  %a = memref.alloc() : !t
  %h = memref.subview %x[0, 65] [128, 64] [1, 1] : !m to !g
  memref.copy %h, %a : !g to !t
  %b = memref.alloc() : !t
  %l = memref.subview %x[0, 0] [128, 64] [1, 1] : !m to !l
  memref.copy %l, %b : !l to !t
  linalg.add ins(%a, %b : !t, !t) outs(%o : !t)
  memref.dealloc %b : !t
  memref.dealloc %a : !t
  return
}

// One of them is changed after it was loaded.
// CHECK-LABEL: func.func @changed
// CHECK-COUNT-2: nisa.dma_copy(dst<128| 64>
// CHECK:       return
func.func @changed(%x: !m, %o: !t) {
  %a = memref.alloc() : !t
  %h = memref.subview %x[0, 64] [128, 64] [1, 1] : !m to !h
  memref.copy %h, %a : !h to !t
  linalg.exp ins(%a : !t) outs(%a : !t)
  %b = memref.alloc() : !t
  %l = memref.subview %x[0, 0] [128, 64] [1, 1] : !m to !l
  memref.copy %l, %b : !l to !t
  linalg.add ins(%a, %b : !t, !t) outs(%o : !t)
  memref.dealloc %b : !t
  memref.dealloc %a : !t
  return
}

// A product reads both halves, and keeps what else it says.
// CHECK-LABEL: func.func @product
// CHECK:       nisa.dma_copy(dst<128| 128>
// CHECK:       nisa.matmul({{.*}} stationary<128| 64>={{.*}} [[W:%[a-z0-9_]+]][d0, d1 + 64], moving<128| 64>={{.*}} [[W]][d0, d1],{{.*}} is_transpose=false, perf_opt=none_
// CHECK:       return
!p = memref<64x64xf32, 2 : i32>
func.func @product(%x: !m, %o: !p) {
  %a = memref.alloc() : !t
  %h = memref.subview %x[0, 64] [128, 64] [1, 1] : !m to !h
  memref.copy %h, %a : !h to !t
  %b = memref.alloc() : !t
  %l = memref.subview %x[0, 0] [128, 64] [1, 1] : !m to !l
  memref.copy %l, %b : !l to !t
  linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] ins(%a, %b : !t, !t) outs(%o : !p)
  memref.dealloc %b : !t
  memref.dealloc %a : !t
  return
}

// The third one begins where the first did, which is part of a larger load by then.
// CHECK-LABEL: func.func @third
// CHECK:       nisa.dma_copy(dst<128| 128>={{.*}} src<128| 128>={{.*}} %arg0[d0, d1])
// CHECK:       nisa.dma_copy(dst<128| 32>={{.*}} src<128| 32>={{.*}} %arg0[d0, d1 + 32])
// CHECK-NOT:   nisa.dma_copy
// CHECK:       return
func.func @third(%x: !m, %o: !t, %p: memref<128x32xf32, 3 : i32>) {
  %a = memref.alloc() : !t
  %h = memref.subview %x[0, 64] [128, 64] [1, 1] : !m to !h
  memref.copy %h, %a : !h to !t
  %b = memref.alloc() : !t
  %l = memref.subview %x[0, 0] [128, 64] [1, 1] : !m to !l
  memref.copy %l, %b : !l to !t
  linalg.add ins(%a, %b : !t, !t) outs(%o : !t)
  memref.dealloc %a : !t
  memref.dealloc %b : !t
  %c = memref.alloc() : memref<128x32xf32, 3 : i32>
  %s = memref.subview %x[0, 32] [128, 32] [1, 1] : !m to memref<128x32xf32, strided<[256, 1], offset: 32>, 4 : i32>
  memref.copy %s, %c : memref<128x32xf32, strided<[256, 1], offset: 32>, 4 : i32> to memref<128x32xf32, 3 : i32>
  linalg.exp ins(%c : memref<128x32xf32, 3 : i32>) outs(%p : memref<128x32xf32, 3 : i32>)
  memref.dealloc %c : memref<128x32xf32, 3 : i32>
  return
}
