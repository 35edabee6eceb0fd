// nisa text 1
// The readable form as a person would write it: comments and line breaks, factors on either side, constants anywhere.
// RUN: nkx opt %s | FileCheck %s
// CHECK-DAG: #[[MAP:.*]] = affine_map<(d0, d1)[s0] -> (d0, d1 + s0 * 128 + 61)>
// CHECK-DAG: #[[TWO:.*]] = affine_map<(d0, d1)[s0, s1] -> (d0, d1 * 2 + s0 - s1)>
// CHECK: module attributes {nisa.target = #nisa.target<"trn2">}
module attributes {nisa.target = #nisa.target<trn2>} {
  // nisa.bogus( is only a comment: 'nisa.matmul("' too
  // CHECK: func.func @k(%arg0: memref<64x256xf32, #nisa.mem<"sbuf">>, %arg1: index, %arg2: index)
  // CHECK-SAME: note = "nisa.bogus( #nisa.mem<sbuf>"
  func.func @k(%a: memref<64x256xf32, #nisa.mem<sbuf>>, %i: index, %long.name-1$: index) attributes {note = "nisa.bogus( #nisa.mem<sbuf>"} {
    // CHECK: "nisa.tensor_copy"(%arg0, %arg1, %arg0, %arg1, %arg2) {dst_ap = #[[MAP]], dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 100>, engine = "vector", operandSegmentSizes = array<i32: 1, 1, 1, 2>, src_ap = #[[TWO]]
    nisa.tensor_copy ( dst < 64 | 100 > = memref<64x256xf32, #nisa.mem<sbuf>> %a [ d0, 64 + 128 * %i + d1 - 3 ], // to here
      src<64| 100>=memref<64x256xf32, #nisa.mem<sbuf>> %a[d0, %i + 2*d1 - %long.name-1$] ) engine = vector
    // Operands may come in any order, several operations on one line.
    // CHECK-NEXT: "nisa.tensor_copy"(%arg0, %arg0)
    // CHECK-NEXT: "nisa.release"(%arg0)
    nisa.tensor_copy(src<64| 1>=memref<64x256xf32, #nisa.mem<sbuf>> %a[d0, d1], dst<64| 1>=memref<64x256xf32, #nisa.mem<sbuf>> %a[d0, d1 + 1]) engine=gpsimd nisa.release %a : memref<64x256xf32, #nisa.mem<sbuf>>
    // CHECK-NEXT: "nisa.alloc"() : () -> memref<1x1xi8, #nisa.mem<"sbuf">>
    %m = "nisa.alloc"() : () -> memref<1x1xi8, #nisa.mem<sbuf>>
    return
  }
}
