// Products that are only read to be added up start from each other; what else is in the sum is added after them.
// RUN: nkx opt --decompose-batch-matmul --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: "text":"the products are added up in one accumulator","operation":"linalg.add","rule":"accumulate-products","cost":"about
// REMARK-SAME: "text":"the products are added up in one accumulator, and their sum is rounded"
#same = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (0, d1)>

// CHECK-LABEL: func.func @two(
// CHECK:         %[[P:.*]] = linalg.matmul ins(%arg0, %arg1 :
// CHECK-NEXT:    %[[Q:.*]] = linalg.matmul ins(%arg2, %arg3 : {{.*}}) outs(%[[P]] :
// CHECK-NOT:     linalg.add
// CHECK:         return %[[Q]]
func.func @two(%x: tensor<64x200xf32>, %w: tensor<200x300xf32>, %h: tensor<64x100xf32>, %u: tensor<100x300xf32>) -> tensor<64x300xf32> {
  %e = tensor.empty() : tensor<64x300xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x200xf32>, tensor<200x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  %q = linalg.matmul ins(%h, %u : tensor<64x100xf32>, tensor<100x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  %s = linalg.add ins(%p, %q : tensor<64x300xf32>, tensor<64x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  return %s : tensor<64x300xf32>
}

// Both biases are added to the sum.
// CHECK-LABEL: func.func @biases(
// CHECK:         %[[P:.*]] = linalg.matmul ins(%arg0, %arg1 :
// CHECK:         %[[Q:.*]] = linalg.matmul ins(%arg2, %arg3 : {{.*}}) outs(%[[P]] :
// CHECK-NEXT:    %[[R:.*]] = linalg.generic {{.*}} ins(%[[Q]], %arg4 :
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} ins(%arg5, %[[R]] :
// CHECK:         return %[[S]]
func.func @biases(%x: tensor<64x200xf32>, %w: tensor<200x300xf32>, %h: tensor<64x100xf32>, %u: tensor<100x300xf32>, %b: tensor<1x300xf32>, %c: tensor<1x300xf32>) -> tensor<64x300xf32> {
  %e = tensor.empty() : tensor<64x300xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x200xf32>, tensor<200x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  %pb = linalg.generic {indexing_maps = [#same, #row, #same], iterator_types = ["parallel", "parallel"]} ins(%p, %b : tensor<64x300xf32>, tensor<1x300xf32>) outs(%e : tensor<64x300xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %y = arith.addf %l, %r : f32
    linalg.yield %y : f32
  } -> tensor<64x300xf32>
  %q = linalg.matmul ins(%h, %u : tensor<64x100xf32>, tensor<100x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  %qc = linalg.generic {indexing_maps = [#row, #same, #same], iterator_types = ["parallel", "parallel"]} ins(%c, %q : tensor<1x300xf32>, tensor<64x300xf32>) outs(%e : tensor<64x300xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %y = arith.addf %l, %r : f32
    linalg.yield %y : f32
  } -> tensor<64x300xf32>
  %s = linalg.add ins(%pb, %qc : tensor<64x300xf32>, tensor<64x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  return %s : tensor<64x300xf32>
}

// A sum of rounded products is rounded once.
// CHECK-LABEL: func.func @rounded(
// CHECK:         %[[P:.*]] = linalg.matmul ins(%arg0, %arg1 :
// CHECK-NEXT:    %[[Q:.*]] = linalg.matmul ins(%arg2, %arg3 : {{.*}}) outs(%[[P]] :
// CHECK-NEXT:    %[[R:.*]] = linalg.generic {{.*}} ins(%[[Q]] : tensor<64x300xf32>) outs(%{{.*}} : tensor<64x300xbf16>)
// CHECK-NOT:     linalg.add
// CHECK:         return %[[R]]
func.func @rounded(%x: tensor<64x200xbf16>, %w: tensor<200x300xbf16>, %h: tensor<64x100xbf16>, %u: tensor<100x300xbf16>) -> tensor<64x300xbf16> {
  %e = tensor.empty() : tensor<64x300xf32>
  %n = tensor.empty() : tensor<64x300xbf16>
  %p = linalg.matmul ins(%x, %w : tensor<64x200xbf16>, tensor<200x300xbf16>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  %pr = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<64x300xf32>) outs(%n : tensor<64x300xbf16>) {
  ^bb0(%l: f32, %o: bf16):
    %y = arith.truncf %l : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<64x300xbf16>
  %q = linalg.matmul ins(%h, %u : tensor<64x100xbf16>, tensor<100x300xbf16>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  %qr = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<64x300xf32>) outs(%n : tensor<64x300xbf16>) {
  ^bb0(%l: f32, %o: bf16):
    %y = arith.truncf %l : f32 to bf16
    linalg.yield %y : bf16
  } -> tensor<64x300xbf16>
  %s = linalg.add ins(%pr, %qr : tensor<64x300xbf16>, tensor<64x300xbf16>) outs(%n : tensor<64x300xbf16>) -> tensor<64x300xbf16>
  return %s : tensor<64x300xbf16>
}

// Batches go through one loop.
// CHECK-LABEL: func.func @batches(
// CHECK:         scf.for
// CHECK:           %[[P:.*]] = linalg.matmul
// CHECK:           %[[Q:.*]] = linalg.matmul {{.*}} outs(%[[P]] :
// CHECK-NEXT:      tensor.insert_slice %[[Q]]
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @batches(%x: tensor<3x64x50xf32>, %w: tensor<3x50x70xf32>, %h: tensor<3x64x30xf32>, %u: tensor<3x30x70xf32>) -> tensor<3x64x70xf32> {
  %e = tensor.empty() : tensor<3x64x70xf32>
  %p = linalg.batch_matmul ins(%x, %w : tensor<3x64x50xf32>, tensor<3x50x70xf32>) outs(%e : tensor<3x64x70xf32>) -> tensor<3x64x70xf32>
  %q = linalg.batch_matmul ins(%h, %u : tensor<3x64x30xf32>, tensor<3x30x70xf32>) outs(%e : tensor<3x64x70xf32>) -> tensor<3x64x70xf32>
  %s = linalg.add ins(%p, %q : tensor<3x64x70xf32>, tensor<3x64x70xf32>) outs(%e : tensor<3x64x70xf32>) -> tensor<3x64x70xf32>
  return %s : tensor<3x64x70xf32>
}

// The Tensor engine would wait for both right operands, and saves nothing: it is busy all the time.
// CHECK-LABEL: func.func @large(
// CHECK:         linalg.add
func.func @large(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>, %h: tensor<1024x1024xf32>, %u: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %e = tensor.empty() : tensor<1024x1024xf32>
  %p = linalg.matmul ins(%x, %w : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%e : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %q = linalg.matmul ins(%h, %u : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%e : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %s = linalg.add ins(%p, %q : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%e : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %s : tensor<1024x1024xf32>
}

// What else reads a product needs it alone.
// CHECK-LABEL: func.func @read_twice(
// CHECK:         linalg.add
func.func @read_twice(%x: tensor<64x200xf32>, %w: tensor<200x300xf32>, %h: tensor<64x100xf32>, %u: tensor<100x300xf32>) -> (tensor<64x300xf32>, tensor<64x300xf32>) {
  %e = tensor.empty() : tensor<64x300xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x200xf32>, tensor<200x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  %q = linalg.matmul ins(%h, %u : tensor<64x100xf32>, tensor<100x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  %s = linalg.add ins(%p, %q : tensor<64x300xf32>, tensor<64x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  return %s, %p : tensor<64x300xf32>, tensor<64x300xf32>
}

// A knob keeps the product as it is, and so does an initial value.
// CHECK-LABEL: func.func @knob(
// CHECK:         linalg.add
func.func @knob(%x: tensor<64x200xf32>, %w: tensor<200x300xf32>, %h: tensor<64x100xf32>, %u: tensor<100x300xf32>) -> tensor<64x300xf32> {
  %e = tensor.empty() : tensor<64x300xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x200xf32>, tensor<200x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  "nkipy.tile_op"(%p) {loop_tile_size = array<i64: 64, 100, 100>} : (tensor<64x300xf32>) -> ()
  %q = linalg.matmul ins(%h, %u : tensor<64x100xf32>, tensor<100x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  %s = linalg.add ins(%p, %q : tensor<64x300xf32>, tensor<64x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  return %s : tensor<64x300xf32>
}
// CHECK-LABEL: func.func @initial(
// CHECK:         linalg.add
func.func @initial(%x: tensor<64x200xf32>, %w: tensor<200x300xf32>, %h: tensor<64x100xf32>, %u: tensor<100x300xf32>, %c: tensor<64x300xf32>) -> tensor<64x300xf32> {
  %e = tensor.empty() : tensor<64x300xf32>
  %p = linalg.matmul ins(%x, %w : tensor<64x200xf32>, tensor<200x300xf32>) outs(%c : tensor<64x300xf32>) -> tensor<64x300xf32>
  %q = linalg.matmul ins(%h, %u : tensor<64x100xf32>, tensor<100x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  %s = linalg.add ins(%p, %q : tensor<64x300xf32>, tensor<64x300xf32>) outs(%e : tensor<64x300xf32>) -> tensor<64x300xf32>
  return %s : tensor<64x300xf32>
}
