// What the usual form cannot say is written in another way, so that nothing is lost.
// RUN: nkx opt --print-nisa %s | FileCheck %s
// RUN: nkx opt %s > %t.mlir
// RUN: nkx opt --print-nisa %s > %t.nisa
// RUN: nkx opt %t.nisa | diff %t.mlir -
#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: @maps
func.func @maps(%a: memref<128x128xf32, #nisa.mem<"sbuf">>, %i: index, %j: index) {
  // One symbol twice; an index that is not used; symbols in another order; an expression that is no sum.
  // CHECK: dst<128| 128>={{.*}} %arg0 affine_map<(d0, d1)[s0] -> (s0, d1 + s0)>[%arg1], src<128| 128>={{.*}} %arg0 affine_map<(d0, d1)[s0] -> (d0, d1)>[%arg2]) engine=vector
  "nisa.tensor_copy"(%a, %i, %a, %j) {dst_ap = affine_map<(d0, d1)[s0] -> (s0, s0 + d1)>, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "vector", operandSegmentSizes = array<i32: 1, 1, 1, 1>, src_ap = affine_map<(d0, d1)[s0] -> (d0, d1)>, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x128xf32, #nisa.mem<"sbuf">>, index, memref<128x128xf32, #nisa.mem<"sbuf">>, index) -> ()
  // CHECK-NEXT: dst<128| 128>={{.*}} %arg0 affine_map<(d0, d1)[s0, s1] -> (s1, d1 + s0)>[%arg1, %arg2], src<128| 128>={{.*}} %arg0 affine_map<(d0, d1) -> (d0, d1 mod 2)>[]) engine=vector
  "nisa.tensor_copy"(%a, %i, %j, %a) {dst_ap = affine_map<(d0, d1)[s0, s1] -> (s1, s0 + d1)>, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "vector", operandSegmentSizes = array<i32: 1, 2, 1, 0>, src_ap = affine_map<(d0, d1) -> (d0, d1 mod 2)>, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x128xf32, #nisa.mem<"sbuf">>, index, index, memref<128x128xf32, #nisa.mem<"sbuf">>) -> ()
  // The same value as two indices; several partition dimensions; negative parts.
  // CHECK-NEXT: dst<2, 64| 128>={{.*}} %arg0[%arg1 + d0*64 + d1, %arg1 + d2], src<2, 64| 128>={{.*}} %arg0[-%arg1 + d0*64 + d1 - 3, d2]) engine=vector
  "nisa.tensor_copy"(%a, %i, %i, %a, %i) {dst_ap = affine_map<(d0, d1, d2)[s0, s1] -> (d0 * 64 + d1 + s0, d2 + s1)>, dst_par_dims = 2 : i32, dst_tile = array<i64: 2, 64, 128>, engine = "vector", operandSegmentSizes = array<i32: 1, 2, 1, 1>, src_ap = affine_map<(d0, d1, d2)[s0] -> (d0 * 64 + d1 - s0 - 3, d2)>, src_par_dims = 2 : i32, src_tile = array<i64: 2, 64, 128>} : (memref<128x128xf32, #nisa.mem<"sbuf">>, index, index, memref<128x128xf32, #nisa.mem<"sbuf">>, index) -> ()
  return
}

// CHECK-LABEL: @attributes
func.func @attributes(%a: memref<128x128xf32, #nisa.mem<"sbuf">>) {
  // CHECK: a1=dense<[1, 2]> : tensor<2xi32>, a2="true", a3="", a4=#nisa.mem<psum>, a5={m = [1], n = "x, )"}, a6=memref<2xf32>, a7=1.500000e+00 : f32, a8=[], a9="#nisa.mem<\22sbuf\22>") engine=vector
  "nisa.tensor_copy"(%a, %a) {a1 = dense<[1, 2]> : tensor<2xi32>, a2 = "true", a3 = "", a4 = #nisa.mem<"psum">, a5 = {m = [1], n = "x, )"}, a6 = memref<2xf32>, a7 = 1.5 : f32, a8 = array<i64>, a9 = "#nisa.mem<\"sbuf\">", dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x128xf32, #nisa.mem<"sbuf">>, memref<128x128xf32, #nisa.mem<"sbuf">>) -> ()
  // A type that looks like a word, a list that is no array of integers, a name with a dot: the generic form.
  // CHECK-NEXT: "nisa.tensor_copy"({{.*}}) {a1 = f32,
  "nisa.tensor_copy"(%a, %a) {a1 = f32, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x128xf32, #nisa.mem<"sbuf">>, memref<128x128xf32, #nisa.mem<"sbuf">>) -> ()
  // CHECK-NEXT: "nisa.tensor_copy"({{.*}}) {a1 = [1],
  "nisa.tensor_copy"(%a, %a) {a1 = [1], dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x128xf32, #nisa.mem<"sbuf">>, memref<128x128xf32, #nisa.mem<"sbuf">>) -> ()
  // CHECK-NEXT: "nisa.tensor_copy"({{.*}}nki.x
  "nisa.tensor_copy"(%a, %a) {nki.x = 1 : i64, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x128xf32, #nisa.mem<"sbuf">>, memref<128x128xf32, #nisa.mem<"sbuf">>) -> ()
  // CHECK-NEXT: "nisa.release"(%arg0) {last} : (memref<128x128xf32, #nisa.mem<sbuf>>) -> ()
  "nisa.release"(%a) {last} : (memref<128x128xf32, #nisa.mem<"sbuf">>) -> ()
  // CHECK-NEXT: %sbuf = "nisa.alloc"() {alignment = 64 : i64, why = "x"}
  %b = "nisa.alloc"() {alignment = 64 : i64, why = "x"} : () -> memref<1x1xf32, #nisa.mem<"sbuf">>
  return
}
