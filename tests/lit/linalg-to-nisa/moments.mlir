// RUN: nkx opt --linalg-to-nisa --nisa-verify --print-nisa %s | FileCheck %s
// Mean and variance of the same rows: one reading, in parts of at most 512 elements.
#id = affine_map<(i, j) -> (i, j)>
#col = affine_map<(i, j) -> (i, 0)>
!x = memref<128x1300xf32, 3 : i32>
!k = memref<128x1xf32, 3 : i32>

// The centred rows are read by others, too: they stay.
// CHECK-LABEL: func.func @population
// CHECK:       nisa.bn_stats(dst<128| 6>={{.*}} [[T:%[a-z0-9_]+]][d0, d1], src<128| 433>={{.*}} %arg0[d0, d1])
// CHECK-NEXT:  nisa.bn_stats(dst<128| 6>={{.*}} [[T]][d0, d1 + 6], src<128| 433>={{.*}} %arg0[d0, d1 + 433])
// CHECK-NEXT:  nisa.bn_stats(dst<128| 6>={{.*}} [[T]][d0, d1 + 12], src<128| 434>={{.*}} %arg0[d0, d1 + 866])
// CHECK-NEXT:  nisa.bn_aggr(dst<128| 2>={{.*}} [[P:%[a-z0-9_]+]][d0, d1], src<128| 18>={{.*}} [[T]][d0, d1])
// CHECK-NEXT:  nisa.release [[T]]
// CHECK-NOT:   nisa.tensor_reduce_arith
// CHECK:       nisa.tensor_scalar_arith(dst{{.*}}, src{{.*}} %arg0[d0, d1], operand0<128| 1>={{.*}} [[P]][d0, 0], op0=subtract
// CHECK:       nisa.activation(dst{{.*}} %arg2[d0, 0], src<128| 1>={{.*}} [[P]][d0, 1]
// CHECK-NEXT:  nisa.release [[P]]
// CHECK:       return
func.func @population(%x: !x, %centred: !x, %out: !k) {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 7.692307692e-4 : f32
  %s = memref.alloc() : !k
  linalg.fill ins(%zero : f32) outs(%s : !k)
  linalg.generic {indexing_maps = [#id, #col], iterator_types = ["parallel", "reduction"]} ins(%x : !x) outs(%s : !k) {
  ^bb0(%a: f32, %z: f32):
    %r = arith.addf %a, %z : f32
    linalg.yield %r : f32
  }
  %m = memref.alloc() : !k
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : !k) outs(%m : !k) {
  ^bb0(%a: f32, %z: f32):
    %r = arith.mulf %a, %n : f32
    linalg.yield %r : f32
  }
  memref.dealloc %s : !k
  %c = memref.alloc() : !x
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m : !x, !k) outs(%c : !x) {
  ^bb0(%a: f32, %b: f32, %z: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  }
  memref.dealloc %m : !k
  %q = memref.alloc() : !x
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%c, %c : !x, !x) outs(%q : !x) {
  ^bb0(%a: f32, %b: f32, %z: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  }
  linalg.exp ins(%c : !x) outs(%centred : !x)
  linalg.abs ins(%c : !x) outs(%centred : !x)
  memref.dealloc %c : !x
  %v = memref.alloc() : !k
  linalg.fill ins(%zero : f32) outs(%v : !k)
  linalg.generic {indexing_maps = [#id, #col], iterator_types = ["parallel", "reduction"]} ins(%q : !x) outs(%v : !k) {
  ^bb0(%a: f32, %z: f32):
    %r = arith.addf %a, %z : f32
    linalg.yield %r : f32
  }
  memref.dealloc %q : !x
  %w = memref.alloc() : !k
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v : !k) outs(%w : !k) {
  ^bb0(%a: f32, %z: f32):
    %r = arith.mulf %a, %n : f32
    linalg.yield %r : f32
  }
  memref.dealloc %v : !k
  linalg.exp ins(%w : !k) outs(%out : !k)
  memref.dealloc %w : !k
  return
}

// Rows that are overwritten after their sum have other squares.
// CHECK-LABEL: func.func @overwritten
// CHECK-NOT:   nisa.bn_stats
// CHECK:       nisa.tensor_reduce_arith
// CHECK:       nisa.activation(dst{{.*}}, reduce_res{{.*}}op=square)
// CHECK:       return
func.func @overwritten(%y: !x, %out: !k) {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 7.692307692e-4 : f32
  %x = memref.alloc() : !x
  linalg.exp ins(%y : !x) outs(%x : !x)
  %s = memref.alloc() : !k
  linalg.fill ins(%zero : f32) outs(%s : !k)
  linalg.generic {indexing_maps = [#id, #col], iterator_types = ["parallel", "reduction"]} ins(%x : !x) outs(%s : !k) {
  ^bb0(%a: f32, %z: f32):
    %r = arith.addf %a, %z : f32
    linalg.yield %r : f32
  }
  linalg.abs ins(%y : !x) outs(%x : !x)
  %m = memref.alloc() : !k
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : !k) outs(%m : !k) {
  ^bb0(%a: f32, %z: f32):
    %r = arith.mulf %a, %n : f32
    linalg.yield %r : f32
  }
  memref.dealloc %s : !k
  %c = memref.alloc() : !x
  linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m : !x, !k) outs(%c : !x) {
  ^bb0(%a: f32, %b: f32, %z: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  }
  memref.dealloc %m : !k
  memref.dealloc %x : !x
  %q = memref.alloc() : !x
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%c, %c : !x, !x) outs(%q : !x) {
  ^bb0(%a: f32, %b: f32, %z: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  }
  memref.dealloc %c : !x
  %v = memref.alloc() : !k
  linalg.fill ins(%zero : f32) outs(%v : !k)
  linalg.generic {indexing_maps = [#id, #col], iterator_types = ["parallel", "reduction"]} ins(%q : !x) outs(%v : !k) {
  ^bb0(%a: f32, %z: f32):
    %r = arith.addf %a, %z : f32
    linalg.yield %r : f32
  }
  memref.dealloc %q : !x
  linalg.exp ins(%v : !k) outs(%out : !k)
  memref.dealloc %v : !k
  return
}

// Rows of several dimensions: whole inner ones, parts of the one before. The factor of an unbiased variance stays.
// CHECK-LABEL: func.func @planes
// CHECK:       nisa.bn_stats(dst<64| 6>={{.*}} [[T:%[a-z0-9_]+]][d0, d1], src<64| 1, 3, 150>={{.*}} %arg0[d0, d1, d2, d3])
// CHECK-NEXT:  nisa.bn_stats(dst<64| 6>={{.*}} [[T]][d0, d1 + 6], src<64| 1, 3, 150>={{.*}} %arg0[d0, d1, d2 + 3, d3])
// CHECK-NEXT:  nisa.bn_stats(dst<64| 6>={{.*}} [[T]][d0, d1 + 12], src<64| 1, 3, 150>={{.*}} %arg0[d0, d1 + 1, d2, d3])
// CHECK-NEXT:  nisa.bn_stats(dst<64| 6>={{.*}} [[T]][d0, d1 + 18], src<64| 1, 3, 150>={{.*}} %arg0[d0, d1 + 1, d2 + 3, d3])
// CHECK-NEXT:  nisa.bn_aggr(dst<64| 2>={{.*}} [[P:%[a-z0-9_]+]][d0, d1], src<64| 24>={{.*}} [[T]][d0, d1])
// CHECK-NEXT:  nisa.release [[T]]
// CHECK-NEXT:  nisa.tensor_scalar_arith(dst<64| 1>={{.*}} %arg1[d0, 0], src<64| 1>={{.*}} [[P]][d0, 1], operand0=f32 %{{.*}}, operand1=f32 %{{.*}}, op0=multiply, op1=multiply
// CHECK-NEXT:  nisa.release [[P]]
// CHECK-NEXT:  return
#p = affine_map<(i, a, b, c) -> (i, a, b, c)>
#q = affine_map<(i, a, b, c) -> (i, 0)>
!p = memref<64x2x6x150xf32, 3 : i32>
!q = memref<64x1xf32, 3 : i32>
func.func @planes(%x: !p, %out: !q) {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 5.555555556e-4 : f32
  %n_less = arith.constant 5.558643691e-4 : f32
  %s = memref.alloc() : !q
  linalg.fill ins(%zero : f32) outs(%s : !q)
  linalg.generic {indexing_maps = [#p, #q], iterator_types = ["parallel", "reduction", "reduction", "reduction"]} ins(%x : !p) outs(%s : !q) {
  ^bb0(%a: f32, %z: f32):
    %r = arith.addf %a, %z : f32
    linalg.yield %r : f32
  }
  %m = memref.alloc() : !q
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : !q) outs(%m : !q) {
  ^bb0(%a: f32, %z: f32):
    %r = arith.mulf %a, %n : f32
    linalg.yield %r : f32
  }
  memref.dealloc %s : !q
  %c = memref.alloc() : !p
  linalg.generic {indexing_maps = [#p, #q, #p], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %m : !p, !q) outs(%c : !p) {
  ^bb0(%a: f32, %b: f32, %z: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  }
  memref.dealloc %m : !q
  %d = memref.alloc() : !p
  linalg.generic {indexing_maps = [#p, #p, #p], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%c, %c : !p, !p) outs(%d : !p) {
  ^bb0(%a: f32, %b: f32, %z: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  }
  memref.dealloc %c : !p
  %v = memref.alloc() : !q
  linalg.fill ins(%zero : f32) outs(%v : !q)
  linalg.generic {indexing_maps = [#p, #q], iterator_types = ["parallel", "reduction", "reduction", "reduction"]} ins(%d : !p) outs(%v : !q) {
  ^bb0(%a: f32, %z: f32):
    %r = arith.addf %a, %z : f32
    linalg.yield %r : f32
  }
  memref.dealloc %d : !p
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%v : !q) outs(%out : !q) {
  ^bb0(%a: f32, %z: f32):
    %r = arith.mulf %a, %n_less : f32
    linalg.yield %r : f32
  }
  memref.dealloc %v : !q
  return
}
