// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d0, 0)>
#row = affine_map<(d0, d1) -> (0, d1)>
!t = memref<64x96xf32, 3 : i32>
!b = memref<64x96xbf16, 3 : i32>
!i = memref<64x96xi32, 3 : i32>
!m = memref<64x96xi1, 3 : i32>

// CHECK-DAG: #[[COL:[a-z0-9]+]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-DAG: #[[ROW:[a-z0-9]+]] = affine_map<(d0, d1) -> (0, d1)>

// Two operations: the value in between has a buffer, released behind its use.
// CHECK-LABEL: func.func @two
// CHECK:       %[[T:[a-z0-9_]+]] = "nisa.alloc"() {alignment = 64 : i64} : () -> memref<64x96xf32, #nisa.mem<"sbuf">>
// CHECK-NEXT:  "nisa.tensor_tensor_arith"(%[[T]], %{{.*}}, %{{.*}}) {{.*}}engine = "vector"{{.*}}op = "multiply"
// CHECK-NEXT:  "nisa.activation"(%{{.*}}, %[[T]], {{.*}}engine = "scalar"{{.*}}op = "exp"
// CHECK-NEXT:  "nisa.release"(%[[T]])
func.func @two(%h: memref<64x96xf32, 4 : i32>) {
  %a = memref.alloc() : !t
  %o = memref.alloc() : !t
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %a : !t, !t) outs(%o : !t) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %q = math.exp %p : f32
    linalg.yield %q : f32
  }
  memref.copy %o, %h : !t to memref<64x96xf32, 4 : i32>
  memref.dealloc %a : !t
  memref.dealloc %o : !t
  return
}

// The bias of a reciprocal is -0: of 1/-inf it keeps the sign.
// CHECK-LABEL: func.func @named
// CHECK:       %[[MINUS0:.*]] = arith.constant -0.000000e+00 : f32
// CHECK:       "nisa.tensor_tensor_arith"{{.*}}op = "subtract"
// CHECK:       "nisa.activation"{{.*}}op = "square"
// CHECK:       "nisa.activation"(%{{[^,]*}}, %{{[^,]*}}, %[[MINUS0]], %{{[^,]*}}) {{.*}}op = "reciprocal"
// CHECK:       "nisa.tensor_scalar_arith"{{.*}}op0 = "multiply"
// CHECK:       "nisa.activation"{{.*}}op = "floor"
// CHECK-NOT:   linalg
func.func @named() {
  %a = memref.alloc() : !t
  %o = memref.alloc() : !t
  linalg.sub ins(%a, %o : !t, !t) outs(%o : !t)
  linalg.square ins(%a : !t) outs(%o : !t)
  linalg.reciprocal ins(%a : !t) outs(%o : !t)
  linalg.negf ins(%a : !t) outs(%o : !t)
  linalg.floor ins(%a : !t) outs(%o : !t)
  memref.dealloc %a : !t
  memref.dealloc %o : !t
  return
}

// A scalar on the left is said so; one element per partition is a scalar, too; a row is brought to all partitions.
// CHECK-LABEL: func.func @broadcasts
// CHECK:       "nisa.tensor_scalar_arith"{{.*}}op0 = "subtract"{{.*}}reverse_operands = "first"
// CHECK:       "nisa.tensor_scalar_arith"{{.*}}op0 = "subtract"{{.*}}operand0_ap = #[[COL]]{{.*}}operand0_tile = array<i64: 64, 1>{{.*}}reverse_operands = "none"
// CHECK:       "nisa.tensor_scalar_arith"{{.*}}reverse_operands = "first"
// CHECK:       %[[R:[a-z0-9_]+]] = "nisa.alloc"() {alignment = 64 : i64} : () -> memref<64x96xf32, #nisa.mem<"sbuf">>
// CHECK:       "nisa.dma_copy"(%[[R]], {{.*}}src_ap = #[[ROW]]
// CHECK:       "nisa.tensor_tensor_arith"(%{{.*}}, %{{.*}}, %[[R]])
// CHECK:       "nisa.release"(%[[R]])
func.func @broadcasts() {
  %a = memref.alloc() : !t
  %o = memref.alloc() : !t
  %c = memref.alloc() : memref<64x1xf32, 3 : i32>
  %r = memref.alloc() : memref<1x96xf32, 3 : i32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : !t) outs(%o : !t) {
  ^bb0(%x: f32, %z: f32):
    %k = arith.constant 3.0 : f32
    %p = arith.subf %k, %x : f32
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %c : !t, memref<64x1xf32, 3 : i32>) outs(%o : !t) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.subf %x, %y : f32
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#col, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%c, %a : memref<64x1xf32, 3 : i32>, !t) outs(%o : !t) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.subf %x, %y : f32
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %r : !t, memref<1x96xf32, 3 : i32>) outs(%o : !t) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.addf %x, %y : f32
    linalg.yield %p : f32
  }
  memref.dealloc %a : !t
  memref.dealloc %o : !t
  memref.dealloc %c : memref<64x1xf32, 3 : i32>
  memref.dealloc %r : memref<1x96xf32, 3 : i32>
  return
}

// != is true for NaN; "one" is not, and takes three; a bool as a number needs no conversion.
// CHECK-LABEL: func.func @compare
// CHECK:       "nisa.tensor_tensor_arith"{{.*}}op = "is_ne"
// CHECK-NEXT:  %[[L:[a-z0-9_]+]] = "nisa.alloc"() {{.*}}xi1, #nisa.mem<"sbuf">>
// CHECK-NEXT:  %[[G:[a-z0-9_]+]] = "nisa.alloc"()
// CHECK-NEXT:  "nisa.tensor_tensor_arith"(%[[L]], {{.*}}op = "is_lt"
// CHECK-NEXT:  "nisa.tensor_tensor_arith"(%[[G]], {{.*}}op = "is_gt"
// CHECK-NEXT:  "nisa.tensor_tensor_arith"(%{{.*}}, %[[L]], %[[G]]) {{.*}}op = "logical_or"
func.func @compare() {
  %a = memref.alloc() : !t
  %o = memref.alloc() : !t
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %a : !t, !t) outs(%o : !t) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.cmpf une, %x, %y : f32
    %q = arith.uitofp %p : i1 to f32
    linalg.yield %q : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %a : !t, !t) outs(%o : !t) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.cmpf one, %x, %y : f32
    %q = arith.uitofp %p : i1 to f32
    linalg.yield %q : f32
  }
  memref.dealloc %a : !t
  memref.dealloc %o : !t
  return
}

// where: one side is copied, the other over it where the condition holds.  If the result is in the place of the first
// operand, only the second is copied, where it does not hold.
// CHECK-LABEL: func.func @where
// CHECK:       "nisa.tensor_copy"(%[[O:[a-z0-9_]+]], %[[B:[a-z0-9_]+]])
// CHECK-NEXT:  "nisa.tensor_copy_predicated"(%[[O]], %[[A:[a-z0-9_]+]], %[[M:[a-z0-9_]+]]) {{.*}}reverse_pred = false
// CHECK-NEXT:  "nisa.tensor_copy_predicated"(%[[A]], %[[B]], %[[M]]) {{.*}}reverse_pred = true
func.func @where() {
  %m = memref.alloc() : !m
  %a = memref.alloc() : !t
  %b = memref.alloc() : !t
  %o = memref.alloc() : !t
  linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %a, %b : !m, !t, !t) outs(%o : !t) {
  ^bb0(%c: i1, %x: f32, %y: f32, %z: f32):
    %p = arith.select %c, %x, %y : f32
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %a, %b : !m, !t, !t) outs(%a : !t) {
  ^bb0(%c: i1, %x: f32, %y: f32, %z: f32):
    %p = arith.select %c, %x, %y : f32
    linalg.yield %p : f32
  }
  memref.dealloc %m : !m
  memref.dealloc %a : !t
  memref.dealloc %b : !t
  memref.dealloc %o : !t
  return
}

// 32-bit integers stay integers on gpsimd; bit operations do anyway.
// CHECK-LABEL: func.func @integers
// CHECK:       "nisa.tensor_tensor_arith"{{.*}}engine = "gpsimd"{{.*}}op = "add"
// CHECK:       "nisa.tensor_tensor_arith"{{.*}}engine = "vector"{{.*}}op = "bitwise_xor"
// CHECK:       "nisa.tensor_tensor_arith"{{.*}}engine = "gpsimd"{{.*}}op = "max"{{.*}}unsigned
func.func @integers() {
  %a = memref.alloc() : !i
  %o = memref.alloc() : !i
  linalg.add ins(%a, %a : !i, !i) outs(%o : !i)
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %a : !i, !i) outs(%o : !i) {
  ^bb0(%x: i32, %y: i32, %z: i32):
    %p = arith.xori %x, %y : i32
    linalg.yield %p : i32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %a : !i, !i) outs(%o : !i) {
  ^bb0(%x: i32, %y: i32, %z: i32):
    %p = arith.maxui %x, %y : i32
    linalg.yield %p : i32
  }
  memref.dealloc %a : !i
  memref.dealloc %o : !i
  return
}

// Conversions around f32 arithmetic are part of reading and writing.  One to an integer truncates, so an activation does it
// unless the value is whole: the conversion of an engine would round.
// CHECK-LABEL: func.func @narrow
// CHECK:       "nisa.tensor_tensor_arith"(%{{.*}}, %{{.*}}, %{{.*}}) {{.*}}op = "multiply"{{.*}}(memref<64x96xbf16, #nisa.mem<"sbuf">>, memref<64x96xbf16, #nisa.mem<"sbuf">>, memref<64x96xf32, #nisa.mem<"sbuf">>)
// CHECK:       "nisa.activation"{{.*}}engine = "scalar"{{.*}}op = "trunc"{{.*}}unsigned{{.*}}(memref<64x96xi32, #nisa.mem<"sbuf">>, memref<64x96xf32, #nisa.mem<"sbuf">>
// CHECK:       "nisa.activation"{{.*}}op = "floor"
// CHECK-NOT:   "trunc"
// CHECK:       "nisa.tensor_copy"{{.*}}engine = "vector"{{.*}}(memref<64x96xi32, #nisa.mem<"sbuf">>, memref<64x96xf32, #nisa.mem<"sbuf">>)
func.func @narrow() {
  %a = memref.alloc() : !b
  %f = memref.alloc() : !t
  %i = memref.alloc() : !i
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %f : !b, !t) outs(%a : !b) {
  ^bb0(%x: bf16, %y: f32, %z: bf16):
    %e = arith.extf %x : bf16 to f32
    %p = arith.mulf %e, %y : f32
    %q = arith.truncf %p : f32 to bf16
    linalg.yield %q : bf16
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%f : !t) outs(%i : !i) {
  ^bb0(%x: f32, %z: i32):
    %q = arith.fptoui %x : f32 to i32
    linalg.yield %q : i32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%f : !t) outs(%i : !i) {
  ^bb0(%x: f32, %z: i32):
    %w = math.floor %x : f32
    %q = arith.fptosi %w : f32 to i32
    linalg.yield %q : i32
  }
  memref.dealloc %a : !b
  memref.dealloc %f : !t
  memref.dealloc %i : !i
  return
}

// cos is a turned sin; the three operations of sign are one; pow of tensors is on gpsimd.
// CHECK-LABEL: func.func @functions
// CHECK:       "nisa.activation"(%[[T:[a-z0-9_]+]], {{.*}}op = "abs"
// CHECK-NEXT:  "nisa.tensor_scalar_arith"(%[[T]], %[[T]], {{.*}}op0 = "subtract", op1 = "add", {{.*}}reverse_operands = "first"
// CHECK-NEXT:  "nisa.activation"(%{{.*}}, %[[T]], {{.*}}op = "sin"
// CHECK-NEXT:  "nisa.release"(%[[T]])
// CHECK-NEXT:  "nisa.activation"{{.*}}op = "sign"
// CHECK-NEXT:  "nisa.tensor_tensor_power"{{.*}}engine = "gpsimd"
func.func @functions() {
  %a = memref.alloc() : !t
  %o = memref.alloc() : !t
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : !t) outs(%o : !t) {
  ^bb0(%x: f32, %z: f32):
    %p = math.cos %x : f32
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : !t) outs(%o : !t) {
  ^bb0(%x: f32, %z: f32):
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %c = arith.cmpf one, %x, %zero : f32
    %s = math.copysign %one, %x : f32
    %p = arith.select %c, %s, %x : f32
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %a : !t, !t) outs(%o : !t) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = math.powf %x, %y : f32
    linalg.yield %p : f32
  }
  memref.dealloc %a : !t
  memref.dealloc %o : !t
  return
}

// Positions stay a formula until they are data.
// CHECK-LABEL: func.func @iota
// CHECK:       "nisa.iota"(%{{.*}}, %arg0) {coefficients = array<i64: 5, 1>{{.*}}engine = "gpsimd"
// CHECK:       "nisa.iota"({{.*}}coefficients = array<i64: 0, 1>{{.*}}memref<64x96xf32
func.func @iota(%at: index) {
  %i = memref.alloc() : !i
  %f = memref.alloc() : !t
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%i : !i) {
  ^bb0(%z: i32):
    %c5 = arith.constant 5 : index
    %r = linalg.index 0 : index
    %c = linalg.index 1 : index
    %p = arith.muli %r, %c5 : index
    %q = arith.addi %p, %c : index
    %s = arith.addi %q, %at : index
    %v = arith.index_cast %s : index to i32
    linalg.yield %v : i32
  }
  linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%f : !t) {
  ^bb0(%z: f32):
    %c = linalg.index 1 : index
    %w = arith.index_cast %c : index to i64
    %v = arith.sitofp %w : i64 to f32
    linalg.yield %v : f32
  }
  memref.dealloc %i : !i
  memref.dealloc %f : !t
  return
}
