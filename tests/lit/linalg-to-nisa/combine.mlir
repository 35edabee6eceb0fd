// RUN: nkx opt --linalg-to-nisa=target=trn2 --print-nisa %s | FileCheck %s
// RUN: nkx opt --linalg-to-nisa=target=trn1 --print-nisa %s | FileCheck %s --check-prefix=TRN1
// Two instructions that one does as well; the buffer between them goes.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i, 0)>
!t = memref<64x96xf32, 3 : i32>
!h = memref<64x96xbf16, 3 : i32>
!p = memref<64x96xf32, 2 : i32>
!c = memref<64x1xf32, 3 : i32>

// exp(0.5 x + 1): scale and bias of the activation.  On trn1 the bias would have to be in memory.
// CHECK-LABEL: func.func @affine
// CHECK-NOT:   nisa.tensor_scalar_arith
// CHECK:       nisa.activation(dst{{.*}} %arg0[d0, d1], src{{.*}} %sbuf[d0, d1], bias=f32 %cst, scale=f32 %cst_0, op=exp)
// TRN1-LABEL:  func.func @affine
// TRN1:        nisa.tensor_scalar_arith({{.*}}op0=multiply, op1=add, reverse_operands=none)
// TRN1:        nisa.activation(
func.func @affine(%o: !t) {
  %x = memref.alloc() : !t
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !t) outs(%o : !t) {
  ^bb0(%a: f32, %z: f32):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %p = arith.mulf %a, %half : f32
    %q = arith.addf %p, %one : f32
    %r = math.exp %q : f32
    linalg.yield %r : f32
  }
  memref.dealloc %x : !t
  return
}

// Out of PSUM straight into the arithmetic; PSUM is held that much longer.
// CHECK-LABEL: func.func @eviction
// CHECK:       nisa.tensor_scalar_arith(dst{{.*}} %arg0[d0, d1], src{{.*}} %psum[d0, d1], operand0=f32 %{{.*}}, operand1=f32 %{{.*}}, op0=multiply, op1=subtract, reverse_operands=second)
// CHECK-NEXT:  nisa.release %psum
// CHECK-NOT:   nisa.tensor_copy
func.func @eviction(%o: !t) {
  %two = arith.constant 2.0 : f32
  %p = memref.alloc() : !p
  linalg.fill ins(%two : f32) outs(%p : !p)
  %s = memref.alloc() : !t
  memref.copy %p, %s : !p to !t
  memref.dealloc %p : !p
  %u = memref.alloc() : !t
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : !t) outs(%u : !t) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.mulf %a, %two : f32
    linalg.yield %v : f32
  }
  memref.dealloc %s : !t
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%u : !t) outs(%o : !t) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.subf %two, %a : f32
    linalg.yield %v : f32
  }
  memref.dealloc %u : !t
  return
}

// What was rounded to bf16 stays rounded; what is read twice, or in another order, stays.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-5: nisa.tensor_scalar_arith({{.*}}operand0=f32 %{{[a-z0-9_]*}}, op0=
// CHECK:       return
func.func @kept(%x: !t, %o: !t, %o2: !t) {
  %two = arith.constant 2.0 : f32
  %h = memref.alloc() : !h
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !t) outs(%h : !h) {
  ^bb0(%a: f32, %z: bf16):
    %v = arith.mulf %a, %two : f32
    %n = arith.truncf %v : f32 to bf16
    linalg.yield %n : bf16
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%h : !h) outs(%o : !t) {
  ^bb0(%a: bf16, %z: f32):
    %w = arith.extf %a : bf16 to f32
    %v = arith.addf %w, %two : f32
    linalg.yield %v : f32
  }
  memref.dealloc %h : !h
  %s = memref.alloc() : !t
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !t) outs(%s : !t) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.mulf %a, %two : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : !t) outs(%o : !t) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.addf %a, %two : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : !t) outs(%o2 : !t) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.maximumf %a, %two : f32
    linalg.yield %v : f32
  }
  memref.dealloc %s : !t
  return
}

// Two operations of bf16 are one with one rounding; the sum of what exp writes is added up before that.
// CHECK-LABEL: func.func @shorter_floats
// CHECK:       nisa.tensor_scalar_arith(dst{{.*}}xf32{{.*}}, src{{.*}}x1xbf16{{.*}}, operand0=f32 %{{.*}}, op0=multiply
// CHECK:       nisa.activation(dst{{.*}}xbf16{{.*}}, reduce_res{{.*}}xf32{{.*}}, src{{.*}}xbf16{{.*}}, bias<64| 1>={{.*}}xf32{{.*}}op=exp)
// CHECK-NOT:   nisa.tensor_reduce_arith
// CHECK:       return
func.func @shorter_floats(%o: !h, %sum: memref<64x1xf32, 3 : i32>) {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : bf16
  %x = memref.alloc() : !h
  linalg.fill ins(%two : bf16) outs(%x : !h)
  %m = memref.alloc() : memref<64x1xbf16, 3 : i32>
  linalg.fill ins(%two : bf16) outs(%m : memref<64x1xbf16, 3 : i32>)
  %d = memref.alloc() : !h
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m : !h, memref<64x1xbf16, 3 : i32>) outs(%d : !h) {
  ^bb0(%a: bf16, %b: bf16, %z: bf16):
    %v = arith.subf %a, %b : bf16
    linalg.yield %v : bf16
  }
  memref.dealloc %x : !h
  memref.dealloc %m : memref<64x1xbf16, 3 : i32>
  %e = memref.alloc() : !h
  linalg.exp ins(%d : !h) outs(%e : !h)
  memref.dealloc %d : !h
  %s = memref.alloc() : memref<64x1xf32, 3 : i32>
  linalg.fill ins(%zero : f32) outs(%s : memref<64x1xf32, 3 : i32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%e : !h) outs(%s : memref<64x1xf32, 3 : i32>) {
  ^bb0(%a: bf16, %z: f32):
    %v = arith.extf %a : bf16 to f32
    %w = arith.addf %z, %v : f32
    linalg.yield %w : f32
  }
  memref.copy %e, %o : !h to !h
  memref.dealloc %e : !h
  memref.copy %s, %sum : memref<64x1xf32, 3 : i32> to memref<64x1xf32, 3 : i32>
  memref.dealloc %s : memref<64x1xf32, 3 : i32>
  return
}

// x is written between the two: they stay apart.
// CHECK-LABEL: func.func @overwritten
// CHECK:       nisa.tensor_scalar_arith({{.*}}op0=multiply
// CHECK:       nisa.memset(
// CHECK:       nisa.tensor_scalar_arith({{.*}}op0=add
func.func @overwritten(%o: !t) {
  %two = arith.constant 2.0 : f32
  %x = memref.alloc() : !t
  linalg.fill ins(%two : f32) outs(%x : !t)
  %s = memref.alloc() : !t
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !t) outs(%s : !t) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.mulf %a, %two : f32
    linalg.yield %v : f32
  }
  linalg.fill ins(%two : f32) outs(%x : !t)
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : !t) outs(%o : !t) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.addf %a, %two : f32
    linalg.yield %v : f32
  }
  memref.dealloc %s : !t
  memref.dealloc %x : !t
  return
}

// The only part of a sum is the sum; another start than 0 is a part of its own.
// CHECK-LABEL: func.func @sums
// CHECK:       nisa.tensor_reduce_arith(dst{{.*}} %[[A:[a-z0-9_]+]][d0, 0], src{{.*}}op=add
// CHECK-NEXT:  nisa.dma_copy(dst{{.*}} %arg1[d0, 0], src{{.*}} %[[A]][d0, 0])
// CHECK:       nisa.memset(
// CHECK:       nisa.tensor_reduce_arith(
// CHECK:       nisa.tensor_tensor_arith({{.*}}op=add
func.func @sums(%x: !t, %o: memref<64x1xf32, 4 : i32>) {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %s0 = memref.alloc() : !c
  linalg.fill ins(%zero : f32) outs(%s0 : !c)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !t) outs(%s0 : !c) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.addf %z, %a : f32
    linalg.yield %v : f32
  }
  memref.copy %s0, %o : !c to memref<64x1xf32, 4 : i32>
  memref.dealloc %s0 : !c
  %s2 = memref.alloc() : !c
  linalg.fill ins(%two : f32) outs(%s2 : !c)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !t) outs(%s2 : !c) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.addf %z, %a : f32
    linalg.yield %v : f32
  }
  memref.copy %s2, %o : !c to memref<64x1xf32, 4 : i32>
  memref.dealloc %s2 : !c
  return
}

// A load whose data only are copied goes to their place.
// CHECK-LABEL: func.func @load
// CHECK:       nisa.dma_copy(dst{{.*}} %[[K:.*]][d0, d1], src{{.*}} %arg0[d0, d1]) engine=dma
// CHECK-NOT:   nisa.tensor_copy
// CHECK:       nisa.activation(dst{{.*}} %arg1[d0, d1], src{{.*}} %[[K]][d0, d1]
func.func @load(%x: memref<64x96xf32, 4 : i32>, %o: !t) {
  %k = memref.alloc() : !t
  %s = memref.alloc() : !t
  memref.copy %x, %s : memref<64x96xf32, 4 : i32> to !t
  memref.copy %s, %k : !t to !t
  memref.dealloc %s : !t
  linalg.exp ins(%k : !t) outs(%o : !t)
  memref.dealloc %k : !t
  return
}

// A load that is converted stays: DMA keeps the type.
// CHECK-LABEL: func.func @converted_load
// CHECK:       nisa.dma_copy(
// CHECK:       nisa.tensor_copy(
func.func @converted_load(%x: memref<64x96xf32, 4 : i32>, %o: !h) {
  %s = memref.alloc() : !t
  memref.copy %x, %s : memref<64x96xf32, 4 : i32> to !t
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : !t) outs(%o : !h) {
  ^bb0(%a: f32, %z: bf16):
    %v = arith.truncf %a : f32 to bf16
    linalg.yield %v : bf16
  }
  memref.dealloc %s : !t
  return
}

// bf16 is read as it is: the engine widens it without a copy.
// CHECK-LABEL: func.func @widened
// CHECK-NOT:   nisa.tensor_copy
// CHECK:       nisa.tensor_reduce_arith(dst{{.*}}xf32{{.*}}, src{{.*}}xbf16{{.*}}, op=add
func.func @widened(%o: !c) {
  %x = memref.alloc() : !h
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : !t
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !h) outs(%s : !t) {
  ^bb0(%a: bf16, %z: f32):
    %v = arith.extf %a : bf16 to f32
    linalg.yield %v : f32
  }
  linalg.fill ins(%zero : f32) outs(%o : !c)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%s : !t) outs(%o : !c) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.addf %z, %a : f32
    linalg.yield %v : f32
  }
  memref.dealloc %s : !t
  memref.dealloc %x : !h
  return
}

// The only part of a maximum of bf16 is the maximum.
// CHECK-LABEL: func.func @largest
// CHECK-NOT:   nisa.memset(
// CHECK:       nisa.tensor_reduce_arith(dst{{.*}} %[[M:[a-z0-9_]+]][d0, 0], src{{.*}}op=max
// CHECK-NEXT:  nisa.dma_copy(dst{{.*}} %arg1[d0, 0], src{{.*}} %[[M]][d0, 0])
func.func @largest(%x: !h, %o: memref<64x1xbf16, 4 : i32>) {
  %least = arith.constant 0xFF80 : bf16
  %s = memref.alloc() : memref<64x1xbf16, 3 : i32>
  linalg.fill ins(%least : bf16) outs(%s : memref<64x1xbf16, 3 : i32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !h) outs(%s : memref<64x1xbf16, 3 : i32>) {
  ^bb0(%a: bf16, %z: bf16):
    %v = arith.maximumf %a, %z : bf16
    linalg.yield %v : bf16
  }
  memref.copy %s, %o : memref<64x1xbf16, 3 : i32> to memref<64x1xbf16, 4 : i32>
  memref.dealloc %s : memref<64x1xbf16, 3 : i32>
  return
}

// So it is of integers, whose least one is not infinite, but not with another start.
// CHECK-LABEL: func.func @integers
// CHECK-NOT:   nisa.memset(
// CHECK:       nisa.tensor_reduce_arith(dst{{.*}} %[[M:[a-z0-9_]+]][d0, 0], src{{.*}}op=max
// CHECK-NEXT:  nisa.dma_copy(dst{{.*}} %arg1[d0, 0], src{{.*}} %[[M]][d0, 0])
func.func @integers(%x: memref<64x96xi32, 3 : i32>, %o: memref<64x1xi32, 4 : i32>) {
  %least = arith.constant -2147483648 : i32
  %s = memref.alloc() : memref<64x1xi32, 3 : i32>
  linalg.fill ins(%least : i32) outs(%s : memref<64x1xi32, 3 : i32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x96xi32, 3 : i32>) outs(%s : memref<64x1xi32, 3 : i32>) {
  ^bb0(%a: i32, %z: i32):
    %v = arith.maxsi %a, %z : i32
    linalg.yield %v : i32
  }
  memref.copy %s, %o : memref<64x1xi32, 3 : i32> to memref<64x1xi32, 4 : i32>
  memref.dealloc %s : memref<64x1xi32, 3 : i32>
  return
}

// CHECK-LABEL: func.func @integers_above
// CHECK:       nisa.memset(
// CHECK:       nisa.tensor_reduce_arith(dst{{.*}} %[[M:[a-z0-9_]+]][d0, 0], src{{.*}}op=max
// CHECK:       nisa.tensor_tensor_arith({{.*}}op=max
func.func @integers_above(%x: memref<64x96xi32, 3 : i32>, %o: memref<64x1xi32, 4 : i32>) {
  %least = arith.constant 0 : i32
  %s = memref.alloc() : memref<64x1xi32, 3 : i32>
  linalg.fill ins(%least : i32) outs(%s : memref<64x1xi32, 3 : i32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x96xi32, 3 : i32>) outs(%s : memref<64x1xi32, 3 : i32>) {
  ^bb0(%a: i32, %z: i32):
    %v = arith.maxsi %a, %z : i32
    linalg.yield %v : i32
  }
  memref.copy %s, %o : memref<64x1xi32, 3 : i32> to memref<64x1xi32, 4 : i32>
  memref.dealloc %s : memref<64x1xi32, 3 : i32>
  return
}
