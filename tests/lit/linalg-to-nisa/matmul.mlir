// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s
// RUN: nkx opt --remarks --linalg-to-nisa %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: linalg.matmul: transposed on the tensor engine [
// REMARK: func.func: 2 instructions, loops counted once: 2 tensor [
// REMARK: func.func: 6 instructions, loops counted once: 2 tensor, 3 vector, 1 gpsimd

#ta = affine_map<(d0, d1, d2) -> (d2, d0)>
#tb = affine_map<(d0, d1, d2) -> (d2, d1)>
#tc = affine_map<(d0, d1, d2) -> (d0, d1)>

// Zeros that would be filled into a fresh accumulator are there already; a tail in K joins the group.
// CHECK-LABEL: func.func @group
// CHECK:       %[[P:[a-z0-9_]+]] = "nisa.alloc"() : () -> memref<128x512xf32, #nisa.mem<"psum">>
// CHECK-NOT:   nisa.memset
// CHECK:       "nisa.matmul"(%[[P]], {{.*}}engine = "tensor", is_transpose = false, {{.*}}moving_tile = array<i64: 128, 512>{{.*}}perf_opt = "none_", psum_zero_region = "size2048"{{.*}}stationary_tile = array<i64: 128, 128>
// CHECK:       "nisa.matmul"(%[[P]], {{.*}}moving_tile = array<i64: 7, 512>{{.*}}stationary_tile = array<i64: 7, 128>
func.func @group() {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<128x128xf32, 3 : i32>
  %b = memref.alloc() : memref<128x512xf32, 3 : i32>
  %p = memref.alloc() : memref<128x512xf32, 2 : i32>
  linalg.fill ins(%zero : f32) outs(%p : memref<128x512xf32, 2 : i32>)
  linalg.matmul indexing_maps = [#ta, #tb, #tc] ins(%a, %b : memref<128x128xf32, 3 : i32>, memref<128x512xf32, 3 : i32>) outs(%p : memref<128x512xf32, 2 : i32>)
  %ta = memref.subview %a[0, 0] [7, 128] [1, 1] : memref<128x128xf32, 3 : i32> to memref<7x128xf32, strided<[128, 1]>, 3 : i32>
  %tb = memref.subview %b[0, 0] [7, 512] [1, 1] : memref<128x512xf32, 3 : i32> to memref<7x512xf32, strided<[512, 1]>, 3 : i32>
  linalg.matmul indexing_maps = [#ta, #tb, #tc] ins(%ta, %tb : memref<7x128xf32, strided<[128, 1]>, 3 : i32>, memref<7x512xf32, strided<[512, 1]>, 3 : i32>) outs(%p : memref<128x512xf32, 2 : i32>)
  memref.dealloc %a : memref<128x128xf32, 3 : i32>
  memref.dealloc %b : memref<128x512xf32, 3 : i32>
  memref.dealloc %p : memref<128x512xf32, 2 : i32>
  return
}

// An operand that is not transposed yet is turned on the way; the accumulator of a bf16 product is f32.
// CHECK-LABEL: func.func @plain
// CHECK:       "nisa.alloc"() : () -> memref<32x48xf32, #nisa.mem<"psum">>
// CHECK:       "nisa.matmul"(%[[Q:[a-z0-9_]+]], {{.*}}is_transpose = true
// CHECK-NEXT:  "nisa.tensor_copy"(%[[T:[a-z0-9_]+]], %[[Q]])
// CHECK:       "nisa.matmul"(%{{.*}}, %[[T]], %{{.*}})
// CHECK:       "nisa.release"(%[[T]])
// CHECK:       "nisa.tensor_copy"{{.*}}(memref<32x48xbf16, #nisa.mem<"sbuf">>, memref<32x48xf32, #nisa.mem<"psum">>)
func.func @plain() {
  %a = memref.alloc() : memref<32x64xbf16, 3 : i32>
  %b = memref.alloc() : memref<64x48xbf16, 3 : i32>
  %o = memref.alloc() : memref<32x48xbf16, 3 : i32>
  %p = memref.alloc() : memref<32x48xbf16, 2 : i32>
  linalg.matmul ins(%a, %b : memref<32x64xbf16, 3 : i32>, memref<64x48xbf16, 3 : i32>) outs(%p : memref<32x48xbf16, 2 : i32>)
  memref.copy %p, %o : memref<32x48xbf16, 2 : i32> to memref<32x48xbf16, 3 : i32>
  memref.dealloc %a : memref<32x64xbf16, 3 : i32>
  memref.dealloc %b : memref<64x48xbf16, 3 : i32>
  memref.dealloc %o : memref<32x48xbf16, 3 : i32>
  memref.dealloc %p : memref<32x48xbf16, 2 : i32>
  return
}

// A destination in SBUF is added to.
// CHECK-LABEL: func.func @into_sbuf
// CHECK:       %[[P:[a-z0-9_]+]] = "nisa.alloc"() {alignment = 64 : i64} : () -> memref<32x48xf32, #nisa.mem<"psum">>
// CHECK:       "nisa.matmul"(%[[P]]
// CHECK:       "nisa.tensor_tensor_arith"(%[[O:[a-z0-9_]+]], %[[O]], %[[P]]) {{.*}}op = "add"
// CHECK:       "nisa.release"(%[[P]])
func.func @into_sbuf() {
  %a = memref.alloc() : memref<64x32xf32, 3 : i32>
  %b = memref.alloc() : memref<64x48xf32, 3 : i32>
  %o = memref.alloc() : memref<32x48xf32, 3 : i32>
  linalg.matmul indexing_maps = [#ta, #tb, #tc] ins(%a, %b : memref<64x32xf32, 3 : i32>, memref<64x48xf32, 3 : i32>) outs(%o : memref<32x48xf32, 3 : i32>)
  memref.dealloc %a : memref<64x32xf32, 3 : i32>
  memref.dealloc %b : memref<64x48xf32, 3 : i32>
  memref.dealloc %o : memref<32x48xf32, 3 : i32>
  return
}

// Integers: the sum is kept in SBUF; a row at a time is given to all partitions and multiplied by a column, on gpsimd.
// CHECK-LABEL: func.func @integers
// CHECK:       %[[S:.*]] = "nisa.alloc"() : () -> memref<16x24xi32, #nisa.mem<"sbuf">>
// CHECK-NEXT:  "nisa.memset"(%[[S]]
// CHECK:       scf.for %[[K:.*]] = %c0 to %c8 step %c1
// CHECK-NEXT:    "nisa.dma_copy"(%[[ROW:[a-z0-9_]+]], %arg1, %[[K]])
// CHECK-NEXT:    "nisa.tensor_scalar_arith"(%[[T:[a-z0-9_]+]], %[[ROW]], %arg0, %[[K]]) {{.*}}engine = "gpsimd"{{.*}}op0 = "multiply"
// CHECK-NEXT:    "nisa.tensor_tensor_arith"(%[[S]], %[[S]], %[[T]]) {{.*}}engine = "gpsimd"{{.*}}op = "add"
func.func @integers(%a: memref<16x8xi32, 3 : i32>, %b: memref<8x24xi32, 3 : i32>, %o: memref<16x24xi32, 4 : i32>) {
  %c = memref.alloc() : memref<16x24xi32, 2 : i32>
  linalg.matmul ins(%a, %b : memref<16x8xi32, 3 : i32>, memref<8x24xi32, 3 : i32>) outs(%c : memref<16x24xi32, 2 : i32>)
  memref.copy %c, %o : memref<16x24xi32, 2 : i32> to memref<16x24xi32, 4 : i32>
  memref.dealloc %c : memref<16x24xi32, 2 : i32>
  return
}
