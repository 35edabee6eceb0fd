// nisa text 1
// RUN: nkx opt --coalesce-transfers %s | FileCheck %s
// One transfer in the place of several keeps all their attributes, and describes each operand once.

!tile = memref<128x2048xf32, #nisa.mem<sbuf>>
!hbm = memref<128x2048xf32, #nisa.mem<shared_hbm>>

module attributes {nisa.target = #nisa.target<trn2>} {

// CHECK-LABEL: func.func @typed
// CHECK:         "nisa.dma_copy"
// CHECK-SAME:    dst_type = i32, engine =
// CHECK-SAME:    src_type = i32}
func.func @typed(%x: !hbm) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %a = nisa.alloc : !tile
  scf.for %i = %c0 to %c16 step %c1 {
    nisa.dma_copy(dst<128| 16>=!tile %a as i32[d0, %i*16 + d1], src<128| 16>=!hbm %x as i32[d0, %i*16 + d1]) engine=dma
  }
  nisa.release %a : !tile
  return
}

// CHECK-LABEL: func.func @many
// CHECK-NOT:     scf.for
// CHECK:         "nisa.dma_copy"
// CHECK-SAME:    dst_type = i32, engine = "dma", n0 = 0 : i64, n1 = 1 : i64, n2 = 2 : i64, n3 = 3 : i64, n4 = 4 : i64, n5 = 5 : i64, n6 = 6 : i64, n7 = 7 : i64, n8 = 8 : i64, n9 = 9 : i64
func.func @many(%x: !hbm) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %a = nisa.alloc : !tile
  scf.for %i = %c0 to %c16 step %c1 {
    "nisa.dma_copy"(%a, %i, %x, %i) {dst_ap = affine_map<(d0, d1)[s0] -> (d0, d1 + s0 * 16)>, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 16>, dst_type = i32, engine = "dma", n0 = 0, n1 = 1, n2 = 2, n3 = 3, n4 = 4, n5 = 5, n6 = 6, n7 = 7, n8 = 8, n9 = 9, operandSegmentSizes = array<i32: 1, 1, 1, 1>, src_ap = affine_map<(d0, d1)[s0] -> (d0, d1 + s0 * 16)>, src_par_dims = 1 : i32, src_tile = array<i64: 128, 16>, src_type = i32} : (!tile, index, !hbm, index) -> ()
  }
  nisa.release %a : !tile
  return
}
}
