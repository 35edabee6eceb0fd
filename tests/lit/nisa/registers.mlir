// Registers in memory, and how many a sequencer has.
// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s
// CHECK-DAG: error: nisa.register_store: a register holds one element
// CHECK-DAG: error: nisa.register_store: the type of value is not that of the elements of dst
// CHECK-DAG: error: nisa.register_store: dst is in psum, which the sync engine does not write
// CHECK-DAG: error: nisa.register_load: it is register 65 in use here; a sequencer has 64
// CHECK-NOT: error:
!cells = memref<1x128xi32, #nisa.mem<"sbuf">>
!sums = memref<128x128xf32, #nisa.mem<"psum">>
#one = affine_map<(d0, d1) -> (d0, d1)>
module attributes {nisa.target = #nisa.target<"trn2">} {
  func.func @good(%n: i32, %f: f32) {
    %c = "nisa.alloc"() : () -> !cells
    "nisa.register_store"(%c, %n) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.release"(%c) : (!cells) -> ()
    return
  }
  func.func @several(%n: i32, %f: f32) {
    %c = "nisa.alloc"() : () -> !cells
    "nisa.register_store"(%c, %n) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 2>} : (!cells, i32) -> ()
    "nisa.release"(%c) : (!cells) -> ()
    return
  }
  func.func @another_type(%n: i32, %f: f32) {
    %c = "nisa.alloc"() : () -> !cells
    "nisa.register_store"(%c, %f) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, f32) -> ()
    "nisa.release"(%c) : (!cells) -> ()
    return
  }
  func.func @in_psum(%n: i32, %f: f32) {
    %c = "nisa.alloc"() : () -> !cells
    %p = "nisa.alloc"() : () -> !sums
    "nisa.register_store"(%p, %f) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!sums, f32) -> ()
    "nisa.release"(%p) : (!sums) -> ()
    "nisa.release"(%c) : (!cells) -> ()
    return
  }
  func.func @as_many_as_there_are(%n: i32, %f: f32) {
    %c = "nisa.alloc"() : () -> !cells
    %v0 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 0)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v1 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 1)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v2 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 2)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v3 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 3)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v4 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 4)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v5 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 5)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v6 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 6)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v7 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 7)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v8 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 8)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v9 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 9)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v10 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 10)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v11 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 11)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v12 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 12)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v13 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 13)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v14 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 14)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v15 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 15)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v16 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 16)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v17 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 17)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v18 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 18)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v19 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 19)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v20 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 20)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v21 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 21)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v22 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 22)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v23 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 23)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v24 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 24)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v25 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 25)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v26 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 26)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v27 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 27)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v28 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 28)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v29 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 29)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v30 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 30)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v31 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 31)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v32 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 32)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v33 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 33)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v34 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 34)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v35 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 35)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v36 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 36)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v37 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 37)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v38 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 38)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v39 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 39)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v40 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 40)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v41 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 41)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v42 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 42)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v43 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 43)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v44 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 44)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v45 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 45)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v46 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 46)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v47 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 47)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v48 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 48)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v49 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 49)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v50 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 50)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v51 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 51)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v52 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 52)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v53 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 53)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v54 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 54)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v55 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 55)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v56 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 56)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v57 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 57)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v58 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 58)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v59 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 59)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v60 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 60)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v61 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 61)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v62 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 62)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v63 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 63)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v0) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v1) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v2) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v3) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v4) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v5) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v6) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v7) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v8) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v9) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v10) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v11) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v12) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v13) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v14) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v15) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v16) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v17) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v18) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v19) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v20) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v21) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v22) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v23) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v24) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v25) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v26) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v27) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v28) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v29) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v30) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v31) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v32) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v33) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v34) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v35) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v36) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v37) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v38) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v39) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v40) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v41) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v42) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v43) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v44) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v45) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v46) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v47) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v48) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v49) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v50) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v51) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v52) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v53) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v54) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v55) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v56) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v57) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v58) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v59) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v60) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v61) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v62) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v63) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.release"(%c) : (!cells) -> ()
    return
  }
  func.func @more_but_not_at_a_time(%n: i32, %f: f32) {
    %c = "nisa.alloc"() : () -> !cells
    %v0 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 0)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v0) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v1 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 1)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v1) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v2 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 2)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v2) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v3 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 3)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v3) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v4 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 4)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v4) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v5 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 5)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v5) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v6 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 6)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v6) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v7 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 7)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v7) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v8 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 8)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v8) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v9 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 9)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v9) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v10 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 10)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v10) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v11 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 11)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v11) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v12 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 12)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v12) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v13 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 13)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v13) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v14 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 14)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v14) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v15 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 15)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v15) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v16 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 16)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v16) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v17 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 17)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v17) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v18 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 18)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v18) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v19 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 19)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v19) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v20 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 20)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v20) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v21 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 21)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v21) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v22 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 22)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v22) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v23 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 23)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v23) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v24 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 24)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v24) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v25 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 25)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v25) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v26 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 26)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v26) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v27 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 27)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v27) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v28 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 28)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v28) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v29 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 29)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v29) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v30 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 30)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v30) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v31 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 31)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v31) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v32 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 32)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v32) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v33 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 33)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v33) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v34 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 34)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v34) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v35 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 35)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v35) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v36 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 36)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v36) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v37 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 37)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v37) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v38 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 38)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v38) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v39 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 39)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v39) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v40 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 40)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v40) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v41 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 41)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v41) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v42 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 42)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v42) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v43 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 43)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v43) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v44 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 44)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v44) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v45 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 45)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v45) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v46 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 46)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v46) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v47 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 47)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v47) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v48 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 48)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v48) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v49 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 49)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v49) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v50 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 50)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v50) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v51 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 51)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v51) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v52 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 52)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v52) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v53 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 53)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v53) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v54 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 54)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v54) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v55 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 55)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v55) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v56 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 56)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v56) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v57 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 57)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v57) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v58 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 58)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v58) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v59 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 59)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v59) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v60 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 60)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v60) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v61 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 61)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v61) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v62 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 62)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v62) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v63 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 63)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v63) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v64 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 64)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v64) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    %v65 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 65)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v65) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.release"(%c) : (!cells) -> ()
    return
  }
  func.func @too_many(%n: i32, %f: f32) {
    %c = "nisa.alloc"() : () -> !cells
    %v0 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 0)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v1 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 1)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v2 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 2)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v3 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 3)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v4 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 4)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v5 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 5)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v6 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 6)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v7 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 7)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v8 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 8)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v9 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 9)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v10 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 10)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v11 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 11)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v12 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 12)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v13 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 13)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v14 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 14)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v15 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 15)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v16 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 16)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v17 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 17)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v18 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 18)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v19 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 19)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v20 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 20)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v21 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 21)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v22 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 22)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v23 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 23)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v24 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 24)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v25 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 25)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v26 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 26)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v27 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 27)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v28 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 28)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v29 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 29)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v30 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 30)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v31 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 31)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v32 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 32)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v33 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 33)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v34 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 34)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v35 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 35)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v36 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 36)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v37 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 37)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v38 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 38)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v39 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 39)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v40 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 40)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v41 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 41)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v42 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 42)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v43 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 43)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v44 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 44)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v45 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 45)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v46 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 46)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v47 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 47)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v48 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 48)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v49 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 49)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v50 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 50)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v51 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 51)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v52 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 52)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v53 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 53)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v54 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 54)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v55 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 55)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v56 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 56)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v57 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 57)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v58 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 58)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v59 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 59)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v60 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 60)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v61 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 61)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v62 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 62)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v63 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 63)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    %v64 = "nisa.register_load"(%c) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 + 64)>, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (!cells) -> i32
    "nisa.register_store"(%c, %v0) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v1) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v2) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v3) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v4) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v5) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v6) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v7) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v8) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v9) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v10) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v11) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v12) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v13) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v14) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v15) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v16) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v17) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v18) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v19) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v20) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v21) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v22) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v23) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v24) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v25) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v26) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v27) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v28) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v29) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v30) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v31) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v32) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v33) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v34) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v35) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v36) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v37) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v38) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v39) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v40) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v41) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v42) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v43) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v44) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v45) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v46) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v47) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v48) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v49) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v50) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v51) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v52) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v53) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v54) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v55) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v56) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v57) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v58) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v59) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v60) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v61) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v62) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v63) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.register_store"(%c, %v64) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #one, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (!cells, i32) -> ()
    "nisa.release"(%c) : (!cells) -> ()
    return
  }
}
