// RUN: nkx opt --linalg-to-nisa --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: nkx opt --linalg-to-nisa=sbuf-capacity=2600 --nisa-verify --print-nisa %s | FileCheck %s --check-prefix=FULL
// What goes through HBM between the same partitions stays in SBUF.
!x = memref<128x512xf32, 4 : i32>
!h = memref<8x128x64xf32, 1 : i32>
!t = memref<128x64xf32, 3 : i32>
!slice = memref<128x64xf32, strided<[512, 1], offset: ?>, 4 : i32>
!head = memref<128x64xf32, strided<[64, 1], offset: ?>, 1 : i32>

// The heads of an attention: dimension 1 of the buffer is on the partitions in every access.
// CHECK-LABEL: func.func @heads
// CHECK:         %[[S:[a-z0-9_]+]] = nisa.alloc alignment=64 : memref<128x8x64xf32, #nisa.mem<sbuf>>
// CHECK:         nisa.activation(dst<128| 64>={{.*}} %[[S]][d0, %{{.*}}, d1], src
// CHECK:         nisa.activation(dst{{.*}}, src<128| 64>={{.*}} %[[S]][d0, %{{.*}}, d1]
// CHECK:         nisa.release %[[S]]
// CHECK:         return
// REMARK:      stays in SBUF, 2048 bytes of each partition: every access has its dimension 1 on the partitions
// FULL-LABEL:  func.func @heads
// FULL:          nisa.alloc {{.*}}: memref<8x128x64xf32, #nisa.mem<hbm>>
func.func @heads(%x: !x, %o: !x) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %h = memref.alloc() : !h
  scf.for %i = %c0 to %c8 step %c1 {
    %at = arith.muli %i, %c64 : index
    %t = memref.alloc() : !t
    %s = memref.subview %x[0, %at] [128, 64] [1, 1] : !x to !slice
    memref.copy %s, %t : !slice to !t
    %u = memref.alloc() : !t
    linalg.exp ins(%t : !t) outs(%u : !t)
    %d = memref.subview %h[%i, 0, 0] [1, 128, 64] [1, 1, 1] : !h to !head
    memref.copy %u, %d : !t to !head
    memref.dealloc %t : !t
    memref.dealloc %u : !t
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %at = arith.muli %i, %c64 : index
    %t = memref.alloc() : !t
    %s = memref.subview %h[%i, 0, 0] [1, 128, 64] [1, 1, 1] : !h to !head
    memref.copy %s, %t : !head to !t
    %u = memref.alloc() : !t
    linalg.exp ins(%t : !t) outs(%u : !t)
    %d = memref.subview %o[0, %at] [128, 64] [1, 1] : !x to !slice
    memref.copy %u, %d : !t to !slice
    memref.dealloc %t : !t
    memref.dealloc %u : !t
  }
  return
}

// A load that transposes becomes a transpose on the Tensor engine.
// CHECK-LABEL: func.func @turned
// CHECK:         %[[K:[a-z0-9_]+]] = nisa.alloc alignment=64 : memref<128x64xf32, #nisa.mem<sbuf>>
// CHECK:         nisa.activation(dst{{.*}} %[[K]][d0, d1]
// CHECK:         nisa.matmul(dst<64| 128>={{.*}}, stationary<128| 64>={{.*}} %[[K]][d0, d1], {{.*}}is_transpose=true
// CHECK:         nisa.activation(dst{{.*}}, src<64| 128>=memref<64x128xf32, #nisa.mem<psum>>
// CHECK:         return
func.func @turned(%x: memref<128x64xf32, 4 : i32>, %o: memref<64x128xf32, 4 : i32>) {
  %h = memref.alloc() : memref<128x64xf32, 1 : i32>
  %t = memref.alloc() : !t
  memref.copy %x, %t : memref<128x64xf32, 4 : i32> to !t
  %u = memref.alloc() : !t
  linalg.exp ins(%t : !t) outs(%u : !t)
  memref.dealloc %t : !t
  memref.copy %u, %h : !t to memref<128x64xf32, 1 : i32>
  memref.dealloc %u : !t
  %v = memref.alloc() : memref<64x128xf32, 3 : i32>
  linalg.transpose ins(%h : memref<128x64xf32, 1 : i32>) outs(%v : memref<64x128xf32, 3 : i32>) permutation = [1, 0]
  %w = memref.alloc() : memref<64x128xf32, 3 : i32>
  linalg.exp ins(%v : memref<64x128xf32, 3 : i32>) outs(%w : memref<64x128xf32, 3 : i32>)
  memref.dealloc %v : memref<64x128xf32, 3 : i32>
  memref.copy %w, %o : memref<64x128xf32, 3 : i32> to memref<64x128xf32, 4 : i32>
  memref.dealloc %w : memref<64x128xf32, 3 : i32>
  return
}

// A result that is read again: what was stored is in SBUF still.
// CHECK-LABEL: func.func @read_again
// CHECK:         nisa.activation(dst<128| 64>={{[^%]*}}%[[A:[a-z0-9_]+]][d0, d1],
// CHECK:         nisa.dma_copy(dst{{.*}}#nisa.mem<shared_hbm>> %{{.*}}, src<128| 64>={{.*}} %[[A]][d0, d1])
// CHECK-NEXT:    %{{.*}} = nisa.alloc
// CHECK-NEXT:    nisa.activation(dst{{.*}}, src<128| 64>={{.*}} %[[A]][d0, d1],
// CHECK:         return
func.func @read_again(%x: memref<128x64xf32, 4 : i32>) -> (memref<128x64xf32, 4 : i32>, memref<128x64xf32, 4 : i32>) {
  %c = memref.alloc() : memref<128x64xf32, 4 : i32>
  %d = memref.alloc() : memref<128x64xf32, 4 : i32>
  %t = memref.alloc() : !t
  memref.copy %x, %t : memref<128x64xf32, 4 : i32> to !t
  %u = memref.alloc() : !t
  linalg.exp ins(%t : !t) outs(%u : !t)
  memref.dealloc %t : !t
  memref.copy %u, %c : !t to memref<128x64xf32, 4 : i32>
  memref.dealloc %u : !t
  %v = memref.alloc() : !t
  memref.copy %c, %v : memref<128x64xf32, 4 : i32> to !t
  %w = memref.alloc() : !t
  linalg.tanh ins(%v : !t) outs(%w : !t)
  memref.dealloc %v : !t
  memref.copy %w, %d : !t to memref<128x64xf32, 4 : i32>
  memref.dealloc %w : !t
  return %c, %d : memref<128x64xf32, 4 : i32>, memref<128x64xf32, 4 : i32>
}
