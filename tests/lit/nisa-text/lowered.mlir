// A kernel from buffers to readable NISA and back.
// RUN: nkx opt --linalg-to-nisa %s > %t.mlir
// RUN: nkx opt --linalg-to-nisa --print-nisa %s > %t.nisa
// RUN: FileCheck %s < %t.nisa
// RUN: nkx opt %t.nisa | diff %t.mlir -
// CHECK:      scf.for %i = %c0 to %c2 step %c1 {
// CHECK:        %sbuf = nisa.alloc alignment=64 : memref<128x64xf32, #nisa.mem<sbuf>>
// CHECK-NEXT:   nisa.dma_copy(dst<128| 64>={{.*}} %sbuf[d0, d1], src<128| 64>={{.*}}) engine=dma
// CHECK-NEXT:   %[[B:sbuf_.*]] = nisa.alloc
// CHECK-NEXT:   nisa.activation(dst<128| 64>={{.*}} %[[B]][d0, d1], src<128| 64>={{.*}} %sbuf[d0, d1], bias=f32 %{{.*}}, scale=f32 %{{.*}}, op=exp) engine=scalar
// CHECK:        nisa.dma_copy(dst<128| 64>={{.*}}, src<128| 64>={{.*}} %[[B]][d0, d1]) engine=dma
func.func @k(%x: memref<256x64xf32, 4 : i32>) -> memref<256x64xf32, 4 : i32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c128 = arith.constant 128 : index
  %r = memref.alloc() {alignment = 64 : i64} : memref<256x64xf32, 4 : i32>
  scf.for %t = %c0 to %c2 step %c1 {
    %o = arith.muli %t, %c128 : index
    %src = memref.subview %x[%o, 0] [128, 64] [1, 1] : memref<256x64xf32, 4 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 4 : i32>
    %a = memref.alloc() {alignment = 64 : i64} : memref<128x64xf32, 3 : i32>
    memref.copy %src, %a : memref<128x64xf32, strided<[64, 1], offset: ?>, 4 : i32> to memref<128x64xf32, 3 : i32>
    %b = memref.alloc() {alignment = 64 : i64} : memref<128x64xf32, 3 : i32>
    linalg.exp ins(%a : memref<128x64xf32, 3 : i32>) outs(%b : memref<128x64xf32, 3 : i32>)
    %dst = memref.subview %r[%o, 0] [128, 64] [1, 1] : memref<256x64xf32, 4 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 4 : i32>
    memref.copy %b, %dst : memref<128x64xf32, 3 : i32> to memref<128x64xf32, strided<[64, 1], offset: ?>, 4 : i32>
    memref.dealloc %a : memref<128x64xf32, 3 : i32>
    memref.dealloc %b : memref<128x64xf32, 3 : i32>
  }
  return %r : memref<256x64xf32, 4 : i32>
}
