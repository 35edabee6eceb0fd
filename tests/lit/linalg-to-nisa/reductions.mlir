// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d0, 0)>
#row = affine_map<(d0, d1) -> (0, d1)>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#mid = affine_map<(d0, d1, d2) -> (d0, 0, d2)>
!t = memref<64x96xf32, 3 : i32>

// CHECK-DAG: #[[TURNED:[a-z0-9]+]] = affine_map<(d0, d1, d2) -> (d0, d2, d1)>

// A tile is combined with what the destination holds, so that tiles accumulate.
// CHECK-LABEL: func.func @free
// CHECK:       "nisa.memset"(%[[O:[a-z0-9_]+]], %{{.*}})
// CHECK:       scf.for
// CHECK:         %[[T:[a-z0-9_]+]] = "nisa.alloc"() {alignment = 64 : i64} : () -> memref<64x1xf32, #nisa.mem<"sbuf">>
// CHECK-NEXT:    "nisa.tensor_reduce_arith"(%[[T]], %{{.*}}) {{.*}}negated = false, num_r_dim = 1 : i64, op = "max"
// CHECK-NEXT:    "nisa.tensor_tensor_arith"(%[[O]], %[[O]], %[[T]]) {{.*}}op = "max"
// CHECK-NEXT:    "nisa.release"(%[[T]])
func.func @free(%lo: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %o = memref.alloc() : memref<64x1xf32, 3 : i32>
  linalg.fill ins(%lo : f32) outs(%o : memref<64x1xf32, 3 : i32>)
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : !t
    linalg.generic {indexing_maps = [#id, #col], iterator_types = ["parallel", "reduction"]} ins(%a : !t) outs(%o : memref<64x1xf32, 3 : i32>) {
    ^bb0(%x: f32, %z: f32):
      %p = arith.maximumf %x, %z : f32
      linalg.yield %p : f32
    }
    memref.dealloc %a : !t
  }
  memref.dealloc %o : memref<64x1xf32, 3 : i32>
  return
}

// Over partitions, accumulating as well; the minimum is minus the maximum of minus.
// CHECK-LABEL: func.func @partitions
// CHECK:       "nisa.cross_lane_reduce_arith"(%[[T:[a-z0-9_]+]], %{{.*}}) {{.*}}engine = "gpsimd", num_r_dim = 0 : i64{{.*}}reduce_op = "add"
// CHECK-NEXT:  "nisa.tensor_tensor_arith"(%[[O:[a-z0-9_]+]], %[[O]], %[[T]]) {{.*}}op = "add"
// CHECK:       "nisa.tensor_scalar_arith"(%[[N:[a-z0-9_]+]], %{{.*}}op0 = "multiply"
// CHECK-NEXT:  "nisa.cross_lane_reduce_arith"(%[[U:[a-z0-9_]+]], %[[N]]) {{.*}}reduce_op = "max"
// CHECK-NEXT:  "nisa.tensor_scalar_arith"(%[[U]], %[[U]], {{.*}}op0 = "multiply"
// CHECK:       "nisa.tensor_tensor_arith"(%[[O]], %[[O]], %[[U]]) {{.*}}op = "min"
func.func @partitions() {
  %a = memref.alloc() : !t
  %o = memref.alloc() : memref<1x96xf32, 3 : i32>
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%a : !t) outs(%o : memref<1x96xf32, 3 : i32>) {
  ^bb0(%x: f32, %z: f32):
    %p = arith.addf %z, %x : f32
    linalg.yield %p : f32
  }
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%a : !t) outs(%o : memref<1x96xf32, 3 : i32>) {
  ^bb0(%x: f32, %z: f32):
    %p = arith.minimumf %z, %x : f32
    linalg.yield %p : f32
  }
  memref.dealloc %a : !t
  memref.dealloc %o : memref<1x96xf32, 3 : i32>
  return
}

// A reduced loop in the middle: the access pattern puts it last.
// CHECK-LABEL: func.func @middle
// CHECK:       "nisa.tensor_reduce_arith"({{.*}}dst_tile = array<i64: 32, 10>{{.*}}num_r_dim = 1 : i64{{.*}}src_ap = #[[TURNED]]{{.*}}src_tile = array<i64: 32, 10, 6>
func.func @middle() {
  %a = memref.alloc() : memref<32x6x10xf32, 3 : i32>
  %o = memref.alloc() : memref<32x1x10xf32, 3 : i32>
  linalg.generic {indexing_maps = [#id3, #mid], iterator_types = ["parallel", "reduction", "parallel"]} ins(%a : memref<32x6x10xf32, 3 : i32>) outs(%o : memref<32x1x10xf32, 3 : i32>) {
  ^bb0(%x: f32, %z: f32):
    %p = arith.mulf %z, %x : f32
    linalg.yield %p : f32
  }
  memref.dealloc %a : memref<32x6x10xf32, 3 : i32>
  memref.dealloc %o : memref<32x1x10xf32, 3 : i32>
  return
}

// What is reduced is computed first; the activation that computes it adds it up, into a sum that was cleared.
// CHECK-LABEL: func.func @of_squares
// CHECK:       %[[S:[a-z0-9_]+]] = "nisa.alloc"() {{.*}} memref<64x1xf32
// CHECK:       "nisa.memset"(%[[S]], {{.*}}engine = "gpsimd"
// CHECK:       "nisa.activation"(%[[Q:[a-z0-9_]+]], %[[S]], {{.*}}op = "square"
// CHECK-NOT:   "nisa.tensor_reduce_arith"
// CHECK:       "nisa.release"(%[[Q]])
func.func @of_squares() {
  %a = memref.alloc() : !t
  %o = memref.alloc() : memref<64x1xf32, 3 : i32>
  linalg.generic {indexing_maps = [#id, #col], iterator_types = ["parallel", "reduction"]} ins(%a : !t) outs(%o : memref<64x1xf32, 3 : i32>) {
  ^bb0(%x: f32, %z: f32):
    %q = arith.mulf %x, %x : f32
    %p = arith.addf %z, %q : f32
    linalg.yield %p : f32
  }
  memref.dealloc %a : !t
  memref.dealloc %o : memref<64x1xf32, 3 : i32>
  return
}
