// The largest elements of rows: a tile of 128 rows at a time, eight results at a time, and the rest of the rows.
// RUN: nkx opt --linalg-to-nisa=target=trn2 --nisa-verify --print-nisa %s | FileCheck %s
// RUN: nkx opt --remarks --linalg-to-nisa %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: func.func @largest
// CHECK:         scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK:           nisa.dma_copy(dst<128| 64>={{.*}}, src<128| 64>={{.*}} %arg0[%[[I]]*128 + d0, d1])
// CHECK-NEXT:      nisa.max8(dst<128| 8>={{[^%]*}}%[[V:[a-z_0-9]+]][d0, d1], src<128| 64>={{[^%]*}}%[[X:[a-z_0-9]+]][d0, d1])
// CHECK-NEXT:      nisa.find_index8(dst<128| 8>={{[^%]*}}%[[P:[a-z_0-9]+]][d0, d1], src<128| 64>={{[^%]*}}%[[X]][d0, d1], values<128| 8>={{[^%]*}}%[[V]][d0, d1])
// CHECK:           nisa.match_replace8(dst<128| 64>={{[^%]*}}%[[Y:[a-z_0-9]+]][d0, d1], src<128| 64>={{[^%]*}}%[[X]][d0, d1], values<128| 8>={{[^%]*}}%[[V]][d0, d1], replacement=f32 %[[NAN:.*]])
// CHECK-NEXT:      nisa.max8(dst<128| 8>={{[^%]*}}%[[V]][d0, d1 + 8], src<128| 64>={{[^%]*}}%[[Y]][d0, d1])
// CHECK-NEXT:      nisa.find_index8(dst<128| 8>={{[^%]*}}%[[P]][d0, d1 + 8], src<128| 64>={{[^%]*}}%[[Y]][d0, d1], values<128| 8>={{[^%]*}}%[[V]][d0, d1 + 8])
// CHECK:           nisa.dma_copy(dst<128| 9>={{.*}}[%[[I]]*128 + d0, d1], src<128| 9>={{[^%]*}}%[[V]][d0, d1])
// CHECK:           nisa.dma_copy(dst<128| 9>={{.*}}[%[[I]]*128 + d0, d1], src<128| 9>={{[^%]*}}%[[P]][d0, d1])
// CHECK:         }
// CHECK:         nisa.dma_copy(dst<3| 64>={{.*}}, src<3| 64>={{.*}} %arg0[d0 + 256, d1])
// CHECK:         nisa.max8(dst<3| 8>
// REMARK:      9 of each row by max8: 5 passes over 64 elements; a NaN in a row is left out
func.func @largest(%x: memref<259x64xf32, 4 : i32>) -> (memref<259x9xf32, 4 : i32>, memref<259x9xi32, 4 : i32>) {
  %v:2 = call @topk(%x) : (memref<259x64xf32, 4 : i32>) -> (memref<259x9xf32, 4 : i32>, memref<259x9xi32, 4 : i32>)
  return %v#0, %v#1 : memref<259x9xf32, 4 : i32>, memref<259x9xi32, 4 : i32>
}
func.func private @topk(memref<259x64xf32, 4 : i32>) -> (memref<259x9xf32, 4 : i32>, memref<259x9xi32, 4 : i32>) attributes {nkipy.topk = {k = 9 : i64}}

// The smallest are the largest of -x; places alone need no store of the elements.
// CHECK-LABEL: func.func @places_of_smallest
// CHECK:         nisa.tensor_scalar_arith(dst<40| 33>={{[^%]*}}%[[N:[a-z_0-9]+]][d0, d1], {{.*}}op0=multiply
// CHECK:         nisa.max8({{.*}}, src<40| 33>={{[^%]*}}%[[N]][d0, d1])
// CHECK:         nisa.find_index8
// CHECK-NOT:     tensor_scalar_arith
// CHECK:         nisa.dma_copy(dst<40| 2>
// CHECK-NOT:     nisa.dma_copy
func.func @places_of_smallest(%x: memref<40x33xf32, 4 : i32>) -> memref<40x2xi32, 4 : i32> {
  %v:2 = call @least(%x) : (memref<40x33xf32, 4 : i32>) -> (memref<40x2xf32, 4 : i32>, memref<40x2xi32, 4 : i32>)
  return %v#1 : memref<40x2xi32, 4 : i32>
}
func.func private @least(memref<40x33xf32, 4 : i32>) -> (memref<40x2xf32, 4 : i32>, memref<40x2xi32, 4 : i32>) attributes {nkipy.topk = {k = 2 : i64, smallest}}

// The end of an ascending order: the results column by column, from the last.
// CHECK-LABEL: func.func @end_of_order
// CHECK:         nisa.max8
// CHECK-NOT:     nisa.find_index8
// CHECK:         nisa.tensor_copy(dst<40| 1>={{[^%]*}}%[[O:[a-z_0-9]+]][d0, d1 + 1], src<40| 1>={{[^%]*}}%[[V:[a-z_0-9]+]][d0, d1])
// CHECK-NEXT:    nisa.tensor_copy(dst<40| 1>={{[^%]*}}%[[O]][d0, d1], src<40| 1>={{[^%]*}}%[[V]][d0, d1 + 1])
func.func @end_of_order(%x: memref<40x33xf32, 4 : i32>) -> memref<40x2xf32, 4 : i32> {
  %v:2 = call @end(%x) : (memref<40x33xf32, 4 : i32>) -> (memref<40x2xf32, 4 : i32>, memref<40x2xi32, 4 : i32>)
  return %v#0 : memref<40x2xf32, 4 : i32>
}
func.func private @end(memref<40x33xf32, 4 : i32>) -> (memref<40x2xf32, 4 : i32>, memref<40x2xi32, 4 : i32>) attributes {nkipy.topk = {backwards, k = 2 : i64}}
