// Attention in blocks of queries: the values between the products are computed for one block, in SBUF.
// RUN: nkx opt --flash-attention %s | FileCheck %s
// RUN: nkx opt --remarks --flash-attention %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: nkx opt --flash-attention=form=none %s | FileCheck %s --check-prefix=NONE
// REMARK-DAG: linalg.matmul: attention in blocks of 256 of 1024 queries and all 1024 keys; keys loaded once, values loaded once [
// REMARK-DAG: linalg.matmul: attention in blocks of 100 of 100 queries and blocks of 2048 of 33000 keys, with a running maximum and sum; keys loaded for each block, values loaded for each block [
// REMARK-DAG: func.return: attention is not computed in blocks: a value between the products is returned [
// REMARK-DAG: nkipy.tile_op: attention is not computed in blocks: a knob names a value between the products [
// REMARK-DAG: linalg.batch_matmul: attention is not computed in blocks: each batch has few queries, which would use as few partitions [
// NONE-NOT: scf.for

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row3 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#nk = affine_map<(d0, d1, d2) -> (d1, d2)>
#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>

// Keys and values are loaded once, and the keys are turned once.  A block is two tiles of queries: the scores of the second one
// come before what the result of the first one needs.  The division is done after the second product, and its conversion stays
// with it.
// CHECK-LABEL: func.func @whole_rows(
// CHECK:         %[[KL:.*]] = linalg.copy ins(%arg1
// CHECK:         %[[K:.*]] = linalg.transpose ins(%[[KL]] : tensor<1024x64xbf16>) outs({{.*}}) permutation = [1, 0]
// CHECK-NEXT:    "nkipy.layout"(%[[K]]) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 64, 1024>}
// CHECK-NEXT:    "nkipy.tile_op"(%[[K]]) {loop_tile_size = array<i64: 64, 128>}
// CHECK:         %[[V:.*]] = linalg.copy ins(%arg2
// CHECK:         scf.for %[[I:.*]] = %c0{{.*}} to %c4{{.*}} iter_args(%[[OUT:.*]] = %{{.*}}) -> (tensor<1024x64xbf16>) {
// CHECK:           %[[AT:.*]] = arith.muli %[[I]], %c256
// CHECK:           %[[AT2:.*]] = arith.addi %[[AT]], %c128
// CHECK:           %[[Q:.*]] = tensor.extract_slice %arg0[%[[AT]], 0] [128, 64] [1, 1]
// CHECK:           %[[S:.*]] = linalg.matmul ins(%[[Q]], %[[K]] : {{.*}}) outs({{.*}}) -> tensor<128x1024xf32>
// CHECK-NEXT:      "nkipy.layout"(%[[S]]) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 1024>}
// CHECK-NEXT:      "nkipy.tile_op"(%[[S]]) {loop_tile_size = array<i64: 128, 512, 64>}
// CHECK:           %[[M:.*]] = linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[S]] : tensor<128x1024xf32>)
// CHECK:           %[[D:.*]] = linalg.generic {{.*}} ins(%[[S]], %[[M]] : tensor<128x1024xf32>, tensor<128x1xf32>)
// CHECK:           %[[E:.*]] = linalg.exp ins(%[[D]]
// CHECK-NOT:       linalg.reciprocal
// CHECK:           %[[W:.*]] = linalg.generic {{.*}} ins(%[[E]] : tensor<128x1024xf32>) outs({{.*}} : tensor<128x1024xbf16>)
// CHECK:           tensor.extract_slice %arg0[%[[AT2]], 0] [128, 64] [1, 1]
// CHECK:           linalg.matmul ins({{.*}}, %[[K]] :
// CHECK:           linalg.exp
// CHECK:           %[[L:.*]] = linalg.generic {{.*}}["parallel", "reduction"]} ins(%[[E]] : tensor<128x1024xf32>)
// CHECK:           %[[R:.*]] = linalg.reciprocal ins(%[[L]]
// CHECK-NOT:       ins(%[[E]], %[[R]]
// CHECK:           %[[O:.*]] = linalg.matmul ins(%[[W]], %[[V]] : {{.*}}) outs({{.*}}) -> tensor<128x64xf32>
// CHECK:           %[[P:.*]] = linalg.generic {{.*}} ins(%[[O]], %[[R]] : tensor<128x64xf32>, tensor<128x1xf32>)
// CHECK:           %[[B:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<128x64xf32>) outs({{.*}} : tensor<128x64xbf16>)
// CHECK:           linalg.reciprocal
// CHECK:           linalg.matmul ins({{.*}}, %[[V]] :
// CHECK:           %[[N:.*]] = tensor.insert_slice %[[B]] into %[[OUT]][%[[AT]], 0] [128, 64] [1, 1]
// CHECK-NEXT:      %[[N2:.*]] = tensor.insert_slice %{{.*}} into %[[N]][%[[AT2]], 0] [128, 64] [1, 1]
// CHECK-NEXT:      scf.yield %[[N2]]
func.func @whole_rows(%q: tensor<1024x64xbf16>, %k: tensor<1024x64xbf16>, %v: tensor<1024x64xbf16>) -> tensor<1024x64xbf16> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<1024x1024xf32>
  %s = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%q, %k : tensor<1024x64xbf16>, tensor<1024x64xbf16>) outs(%es : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %er = tensor.empty() : tensor<1024x1xf32>
  %fm = linalg.fill ins(%low : f32) outs(%er : tensor<1024x1xf32>) -> tensor<1024x1xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<1024x1024xf32>) outs(%fm : tensor<1024x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.maximumf %o, %x : f32
    linalg.yield %y : f32
  } -> tensor<1024x1xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %m : tensor<1024x1024xf32>, tensor<1024x1xf32>) outs(%es : tensor<1024x1024xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %y = arith.subf %x, %z : f32
    linalg.yield %y : f32
  } -> tensor<1024x1024xf32>
  %e = linalg.exp ins(%d : tensor<1024x1024xf32>) outs(%es : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%er : tensor<1024x1xf32>) -> tensor<1024x1xf32>
  %l = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%e : tensor<1024x1024xf32>) outs(%fl : tensor<1024x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.addf %o, %x : f32
    linalg.yield %y : f32
  } -> tensor<1024x1xf32>
  %r = linalg.reciprocal ins(%l : tensor<1024x1xf32>) outs(%er : tensor<1024x1xf32>) -> tensor<1024x1xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%e, %r : tensor<1024x1024xf32>, tensor<1024x1xf32>) outs(%es : tensor<1024x1024xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %y = arith.mulf %x, %z : f32
    linalg.yield %y : f32
  } -> tensor<1024x1024xf32>
  %ew = tensor.empty() : tensor<1024x1024xbf16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<1024x1024xf32>) outs(%ew : tensor<1024x1024xbf16>) {
  ^bb0(%x: f32, %o: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<1024x1024xbf16>
  %eo = tensor.empty() : tensor<1024x64xf32>
  %o = linalg.matmul ins(%w, %v : tensor<1024x1024xbf16>, tensor<1024x64xbf16>) outs(%eo : tensor<1024x64xf32>) -> tensor<1024x64xf32>
  %eb = tensor.empty() : tensor<1024x64xbf16>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%o : tensor<1024x64xf32>) outs(%eb : tensor<1024x64xbf16>) {
  ^bb0(%x: f32, %t: bf16):
    %y = arith.truncf %x : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<1024x64xbf16>
  return %b : tensor<1024x64xbf16>
}

// A row of 33000 scores does not fit: the largest score, the sum and the result run along, the largest score from the lowest
// number, and the last 232 keys are a block of their own.
// CHECK-LABEL: func.func @running(
// CHECK-DAG:     %[[LOW:.*]] = arith.constant -3.40282347E+38 : f32
// CHECK:         %[[FM:.*]] = linalg.fill ins(%[[LOW]]
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c16{{.*}} iter_args(%[[M:.*]] = %[[FM]], %[[L:.*]] = %{{.*}}, %[[A:.*]] = %{{.*}}) -> (tensor<100x1xf32>, tensor<100x1xf32>, tensor<100x64xf32>) {
// CHECK:           tensor.extract_slice %arg1[{{.*}}, 0] [2048, 64] [1, 1]
// CHECK:           arith.maximumf %out, %in
// CHECK:           %[[NEW:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[M]] : tensor<100x1xf32>, tensor<100x1xf32>)
// CHECK-NEXT:      ^bb0
// CHECK-NEXT:        arith.maximumf
// CHECK:           linalg.generic {{.*}} ins(%[[M]], %[[NEW]] : tensor<100x1xf32>, tensor<100x1xf32>)
// CHECK:           %[[SCALE:.*]] = linalg.exp
// CHECK:           linalg.generic {{.*}} ins(%{{.*}}, %[[NEW]] : tensor<100x2048xf32>, tensor<100x1xf32>)
// CHECK:           linalg.generic {{.*}} ins(%[[L]], %[[SCALE]] : tensor<100x1xf32>, tensor<100x1xf32>)
// CHECK:           linalg.generic {{.*}} ins(%[[A]], %[[SCALE]] : tensor<100x64xf32>, tensor<100x1xf32>)
// CHECK:           scf.yield %[[NEW]], %{{.*}}, %{{.*}} :
// CHECK:         tensor.extract_slice %arg1[%c32768{{.*}}, 0] [232, 64] [1, 1]
// CHECK:         linalg.reciprocal
func.func @running(%q: tensor<100x64xf32>, %k: tensor<33000x64xf32>, %v: tensor<33000x64xf32>) -> tensor<100x64xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<100x33000xf32>
  %s = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%q, %k : tensor<100x64xf32>, tensor<33000x64xf32>) outs(%es : tensor<100x33000xf32>) -> tensor<100x33000xf32>
  %er = tensor.empty() : tensor<100x1xf32>
  %fm = linalg.fill ins(%low : f32) outs(%er : tensor<100x1xf32>) -> tensor<100x1xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<100x33000xf32>) outs(%fm : tensor<100x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.maximumf %o, %x : f32
    linalg.yield %y : f32
  } -> tensor<100x1xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %m : tensor<100x33000xf32>, tensor<100x1xf32>) outs(%es : tensor<100x33000xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %y = arith.subf %x, %z : f32
    linalg.yield %y : f32
  } -> tensor<100x33000xf32>
  %e = linalg.exp ins(%d : tensor<100x33000xf32>) outs(%es : tensor<100x33000xf32>) -> tensor<100x33000xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%er : tensor<100x1xf32>) -> tensor<100x1xf32>
  %l = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%e : tensor<100x33000xf32>) outs(%fl : tensor<100x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.addf %o, %x : f32
    linalg.yield %y : f32
  } -> tensor<100x1xf32>
  %r = linalg.reciprocal ins(%l : tensor<100x1xf32>) outs(%er : tensor<100x1xf32>) -> tensor<100x1xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%e, %r : tensor<100x33000xf32>, tensor<100x1xf32>) outs(%es : tensor<100x33000xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %y = arith.mulf %x, %z : f32
    linalg.yield %y : f32
  } -> tensor<100x33000xf32>
  %eo = tensor.empty() : tensor<100x64xf32>
  %o = linalg.matmul ins(%p, %v : tensor<100x33000xf32>, tensor<33000x64xf32>) outs(%eo : tensor<100x64xf32>) -> tensor<100x64xf32>
  return %o : tensor<100x64xf32>
}

// Scores that are returned are needed as a whole.
// CHECK-LABEL: func.func @returned(
// CHECK-NOT:     scf.for
// CHECK-NOT:     nkipy
// CHECK:         return
func.func @returned(%q: tensor<40x64xf32>, %k: tensor<64x50xf32>, %v: tensor<50x64xf32>) -> (tensor<40x64xf32>, tensor<40x50xf32>) {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<40x50xf32>
  %s = linalg.matmul ins(%q, %k : tensor<40x64xf32>, tensor<64x50xf32>) outs(%es : tensor<40x50xf32>) -> tensor<40x50xf32>
  %e = linalg.exp ins(%s : tensor<40x50xf32>) outs(%es : tensor<40x50xf32>) -> tensor<40x50xf32>
  %eo = tensor.empty() : tensor<40x64xf32>
  %o = linalg.matmul ins(%e, %v : tensor<40x50xf32>, tensor<50x64xf32>) outs(%eo : tensor<40x64xf32>) -> tensor<40x64xf32>
  return %o, %s : tensor<40x64xf32>, tensor<40x50xf32>
}

// The user's tiles stay.
// CHECK-LABEL: func.func @knob(
// CHECK-NOT:     nkipy.layout
// CHECK:         "nkipy.tile_op"(%{{.*}}) {loop_tile_size = array<i64: 8, 8>}
func.func @knob(%q: tensor<40x64xf32>, %k: tensor<64x50xf32>, %v: tensor<50x64xf32>) -> tensor<40x64xf32> {
  %es = tensor.empty() : tensor<40x50xf32>
  %s = linalg.matmul ins(%q, %k : tensor<40x64xf32>, tensor<64x50xf32>) outs(%es : tensor<40x50xf32>) -> tensor<40x50xf32>
  %e = linalg.exp ins(%s : tensor<40x50xf32>) outs(%es : tensor<40x50xf32>) -> tensor<40x50xf32>
  "nkipy.tile_op"(%e) {loop_tile_size = array<i64: 8, 8>} : (tensor<40x50xf32>) -> ()
  %eo = tensor.empty() : tensor<40x64xf32>
  %o = linalg.matmul ins(%e, %v : tensor<40x50xf32>, tensor<50x64xf32>) outs(%eo : tensor<40x64xf32>) -> tensor<40x64xf32>
  return %o : tensor<40x64xf32>
}

// Three queries of each head would use three partitions; the plain operations have the heads there.
// CHECK-LABEL: func.func @few(
// CHECK-NOT:     scf.for
// CHECK:         linalg.batch_matmul
func.func @few(%q: tensor<8x3x64xf32>, %k: tensor<8x64x50xf32>, %v: tensor<8x50x64xf32>) -> tensor<8x3x64xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<8x3x50xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<8x3x64xf32>, tensor<8x64x50xf32>) outs(%es : tensor<8x3x50xf32>) -> tensor<8x3x50xf32>
  %ee = tensor.empty() : tensor<8x3x50xf32>
  %e = linalg.exp ins(%s : tensor<8x3x50xf32>) outs(%ee : tensor<8x3x50xf32>) -> tensor<8x3x50xf32>
  %el = tensor.empty() : tensor<8x3x1xf32>
  %fl = linalg.fill ins(%zero : f32) outs(%el : tensor<8x3x1xf32>) -> tensor<8x3x1xf32>
  %l = linalg.generic {indexing_maps = [#id3, #row3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%e : tensor<8x3x50xf32>) outs(%fl : tensor<8x3x1xf32>) {
  ^bb0(%x: f32, %o: f32):
    %y = arith.addf %o, %x : f32
    linalg.yield %y : f32
  } -> tensor<8x3x1xf32>
  %p = linalg.generic {indexing_maps = [#id3, #row3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %l : tensor<8x3x50xf32>, tensor<8x3x1xf32>) outs(%ee : tensor<8x3x50xf32>) {
  ^bb0(%x: f32, %z: f32, %o: f32):
    %y = arith.mulf %x, %z : f32
    linalg.yield %y : f32
  } -> tensor<8x3x50xf32>
  %eo = tensor.empty() : tensor<8x3x64xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<8x3x50xf32>, tensor<8x50x64xf32>) outs(%eo : tensor<8x3x64xf32>) -> tensor<8x3x64xf32>
  return %o : tensor<8x3x64xf32>
}
