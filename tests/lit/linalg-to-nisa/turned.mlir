// What is transposed for several readers stays in PSUM, if Vector and Scalar read it and it has room in a bank.
// RUN: nkx opt --linalg-to-nisa --nisa-verify %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: what is transposed is read from PSUM by 2 instructions
// REMARK: what is transposed is read from PSUM by 1 instruction
// REMARK-NOT: read from PSUM
// CHECK-LABEL: func.func @stays
// CHECK:       %[[T:[a-z0-9_]+]] = "nisa.alloc"{{.*}} -> memref<96x64xf32, #nisa.mem<"psum">>
// CHECK:       "nisa.matmul"(%[[T]], {{.*}}is_transpose = true
// CHECK-NOT:   nisa.tensor_copy
// CHECK:       "nisa.activation"(%{{.*}}, %[[T]]
// CHECK:       "nisa.tensor_tensor_arith"(%{{.*}}, %[[T]]
// CHECK:       "nisa.release"(%[[T]])
func.func @stays(%x: memref<64x96xf32, 4 : i32>, %o: memref<96x64xf32, 4 : i32>) {
  %a = memref.alloc() : memref<64x96xf32, 3 : i32>
  linalg.copy ins(%x : memref<64x96xf32, 4 : i32>) outs(%a : memref<64x96xf32, 3 : i32>)
  %t = memref.alloc() : memref<96x64xf32, 3 : i32>
  linalg.transpose ins(%a : memref<64x96xf32, 3 : i32>) outs(%t : memref<96x64xf32, 3 : i32>) permutation = [1, 0]
  %e = memref.alloc() : memref<96x64xf32, 3 : i32>
  linalg.exp ins(%t : memref<96x64xf32, 3 : i32>) outs(%e : memref<96x64xf32, 3 : i32>)
  %m = memref.alloc() : memref<96x64xf32, 3 : i32>
  linalg.mul ins(%t, %e : memref<96x64xf32, 3 : i32>, memref<96x64xf32, 3 : i32>) outs(%m : memref<96x64xf32, 3 : i32>)
  linalg.copy ins(%m : memref<96x64xf32, 3 : i32>) outs(%o : memref<96x64xf32, 4 : i32>)
  memref.dealloc %a : memref<64x96xf32, 3 : i32>
  memref.dealloc %t : memref<96x64xf32, 3 : i32>
  memref.dealloc %e : memref<96x64xf32, 3 : i32>
  memref.dealloc %m : memref<96x64xf32, 3 : i32>
  return
}

// DMA and the Tensor engine read SBUF only, and an instruction reads one operand in PSUM.  A transpose of bf16 is bf16 there.
// CHECK-LABEL: func.func @copied
// CHECK-COUNT-2: "nisa.tensor_copy"
// CHECK-NOT:     "nisa.tensor_copy"
// CHECK:         %[[V:[a-z0-9_]+]] = "nisa.alloc"{{.*}} -> memref<96x64xbf16, #nisa.mem<"psum">>
// CHECK:         "nisa.activation"(%{{.*}}, %[[V]]
func.func @copied(%x: memref<64x96xf32, 4 : i32>, %y: memref<64x96xbf16, 4 : i32>, %o: memref<96x64xf32, 4 : i32>, %p: memref<96x64xf32, 4 : i32>, %q: memref<96x64xbf16, 4 : i32>) {
  %a = memref.alloc() : memref<64x96xf32, 3 : i32>
  linalg.copy ins(%x : memref<64x96xf32, 4 : i32>) outs(%a : memref<64x96xf32, 3 : i32>)
  %t = memref.alloc() : memref<96x64xf32, 3 : i32>
  linalg.transpose ins(%a : memref<64x96xf32, 3 : i32>) outs(%t : memref<96x64xf32, 3 : i32>) permutation = [1, 0]
  linalg.copy ins(%t : memref<96x64xf32, 3 : i32>) outs(%o : memref<96x64xf32, 4 : i32>)
  %u = memref.alloc() : memref<96x64xf32, 3 : i32>
  linalg.transpose ins(%a : memref<64x96xf32, 3 : i32>) outs(%u : memref<96x64xf32, 3 : i32>) permutation = [1, 0]
  %m = memref.alloc() : memref<96x64xf32, 3 : i32>
  linalg.mul ins(%u, %u : memref<96x64xf32, 3 : i32>, memref<96x64xf32, 3 : i32>) outs(%m : memref<96x64xf32, 3 : i32>)
  linalg.copy ins(%m : memref<96x64xf32, 3 : i32>) outs(%p : memref<96x64xf32, 4 : i32>)
  %b = memref.alloc() : memref<64x96xbf16, 3 : i32>
  linalg.copy ins(%y : memref<64x96xbf16, 4 : i32>) outs(%b : memref<64x96xbf16, 3 : i32>)
  %v = memref.alloc() : memref<96x64xbf16, 3 : i32>
  linalg.transpose ins(%b : memref<64x96xbf16, 3 : i32>) outs(%v : memref<96x64xbf16, 3 : i32>) permutation = [1, 0]
  %n = memref.alloc() : memref<96x64xbf16, 3 : i32>
  linalg.exp ins(%v : memref<96x64xbf16, 3 : i32>) outs(%n : memref<96x64xbf16, 3 : i32>)
  linalg.copy ins(%n : memref<96x64xbf16, 3 : i32>) outs(%q : memref<96x64xbf16, 4 : i32>)
  memref.dealloc %a : memref<64x96xf32, 3 : i32>
  memref.dealloc %t : memref<96x64xf32, 3 : i32>
  memref.dealloc %u : memref<96x64xf32, 3 : i32>
  memref.dealloc %m : memref<96x64xf32, 3 : i32>
  memref.dealloc %b : memref<64x96xbf16, 3 : i32>
  memref.dealloc %v : memref<96x64xbf16, 3 : i32>
  memref.dealloc %n : memref<96x64xbf16, 3 : i32>
  return
}
