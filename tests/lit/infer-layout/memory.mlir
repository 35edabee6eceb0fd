// Where values live: results in shared HBM, what is read tile by tile in SBUF, the rest in HBM.
// RUN: nkx opt --infer-layout %s 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARN < %t.err

// A view reads across tiles: its source is in HBM.  The view of a result is the result.
// CHECK-LABEL: @views
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 1 : i32
// CHECK: linalg.abs
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 4 : i32
func.func @views(%x: tensor<4x128x64xf32>) -> tensor<512x8x8xf32> {
  %e0 = tensor.empty() : tensor<4x128x64xf32>
  %a = linalg.exp ins(%x : tensor<4x128x64xf32>) outs(%e0 : tensor<4x128x64xf32>) -> tensor<4x128x64xf32>
  %c = tensor.collapse_shape %a [[0, 1], [2]] : tensor<4x128x64xf32> into tensor<512x64xf32>
  %e1 = tensor.empty() : tensor<512x64xf32>
  %b = linalg.abs ins(%c : tensor<512x64xf32>) outs(%e1 : tensor<512x64xf32>) -> tensor<512x64xf32>
  %d = tensor.expand_shape %b [[0], [1, 2]] output_shape [512, 8, 8] : tensor<512x64xf32> into tensor<512x8x8xf32>
  return %d : tensor<512x8x8xf32>
}

// What a loop carries is in HBM, not shared HBM, unless it is a result; the initial value has the same buffer.
// CHECK-LABEL: @loop
// CHECK: linalg.fill
// CHECK-NEXT: %[[L:.*]] = scf.for
// CHECK: linalg.add
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 1 : i32
// CHECK: "nkipy.layout"(%[[L]]) {mem_space = 1 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 64>}
// CHECK-NEXT: linalg
func.func @loop(%x: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<128x64xf32>
  %e1 = tensor.empty() : tensor<128x64xf32>
  %e2 = tensor.empty() : tensor<128x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e0 : tensor<128x64xf32>) -> tensor<128x64xf32>
  %l = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %z) -> (tensor<128x64xf32>) {
    %n = linalg.add ins(%acc, %x : tensor<128x64xf32>, tensor<128x64xf32>) outs(%e1 : tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %n : tensor<128x64xf32>
  }
  %r = linalg.exp ins(%l : tensor<128x64xf32>) outs(%e2 : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %r : tensor<128x64xf32>
}

// Batched: one matmul at a time, put together in a result.  Its tile is the matmul's.
// CHECK-LABEL: @batches
// CHECK: %[[L:.*]] = scf.for
// CHECK: linalg.matmul
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 256>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 256, 64>}
// CHECK-NEXT: tensor.insert_slice
// CHECK-NEXT: scf.yield
// CHECK: "nkipy.layout"(%[[L]]) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 1, 128, 256>}
func.func @batches(%a: tensor<4x256x64xf32>, %b: tensor<4x64x256xf32>) -> tensor<4x256x256xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<4x256x256xf32>
  %l = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %e) -> (tensor<4x256x256xf32>) {
    %x = tensor.extract_slice %a[%i, 0, 0] [1, 256, 64] [1, 1, 1] : tensor<4x256x64xf32> to tensor<256x64xf32>
    %y = tensor.extract_slice %b[%i, 0, 0] [1, 64, 256] [1, 1, 1] : tensor<4x64x256xf32> to tensor<64x256xf32>
    %o = tensor.extract_slice %acc[%i, 0, 0] [1, 256, 256] [1, 1, 1] : tensor<4x256x256xf32> to tensor<256x256xf32>
    %m = linalg.matmul ins(%x, %y : tensor<256x64xf32>, tensor<64x256xf32>) outs(%o : tensor<256x256xf32>) -> tensor<256x256xf32>
    %n = tensor.insert_slice %m into %acc[%i, 0, 0] [1, 256, 256] [1, 1, 1] : tensor<256x256xf32> into tensor<4x256x256xf32>
    scf.yield %n : tensor<4x256x256xf32>
  }
  return %l : tensor<4x256x256xf32>
}

// Two parts put together in a buffer of their own.
// CHECK-LABEL: @concatenated
// CHECK: tensor.insert_slice
// CHECK-NEXT: %[[C:.*]] = tensor.insert_slice
// CHECK-NEXT: "nkipy.layout"(%[[C]]) {mem_space = 1 : i32, partition_dim = 0 : i32
func.func @concatenated(%x: tensor<128x64xf32>, %y: tensor<128x64xf32>) -> tensor<128x128xf32> {
  %e0 = tensor.empty() : tensor<128x128xf32>
  %i = tensor.insert_slice %x into %e0[0, 0] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<128x128xf32>
  %c = tensor.insert_slice %y into %i[0, 64] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<128x128xf32>
  %e1 = tensor.empty() : tensor<128x128xf32>
  %r = linalg.exp ins(%c : tensor<128x128xf32>) outs(%e1 : tensor<128x128xf32>) -> tensor<128x128xf32>
  return %r : tensor<128x128xf32>
}

// The user wants SBUF for a result that nobody else reads: computed in SBUF tile by tile, stored in shared HBM.
// WARN: warning: a returned value lives in shared HBM, not in SBUF
// CHECK-LABEL: @only_returned
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 64, 64>}
// CHECK-NOT: linalg.copy
// CHECK: return
func.func @only_returned(%x: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %e = tensor.empty() : tensor<128x64xf32>
  %r = linalg.exp ins(%x : tensor<128x64xf32>) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>
  "nkipy.layout"(%r) {mem_space = 3 : i32, tile_size = array<i64: 64, 64>} : (tensor<128x64xf32>) -> ()
  return %r : tensor<128x64xf32>
}

// One that others read stays in SBUF and is returned as a copy.
// CHECK-LABEL: @returned_and_read
// CHECK: %[[X:.*]] = linalg.exp
// CHECK-NEXT: "nkipy.layout"(%[[X]]) {given, mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 64, 64>}
// CHECK: linalg.abs ins(%[[X]]
// CHECK: %[[C:.*]] = linalg.copy ins(%[[X]]
// CHECK-NEXT: "nkipy.layout"(%[[C]]) {given, mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 64, 64>}
// CHECK: return %[[C]]
func.func @returned_and_read(%x: tensor<128x64xf32>) -> (tensor<128x64xf32>, tensor<128x64xf32>) {
  %e = tensor.empty() : tensor<128x64xf32>
  %r = linalg.exp ins(%x : tensor<128x64xf32>) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>
  "nkipy.layout"(%r) {mem_space = 3 : i32, tile_size = array<i64: 64, 64>} : (tensor<128x64xf32>) -> ()
  %f = tensor.empty() : tensor<128x64xf32>
  %s = linalg.abs ins(%r : tensor<128x64xf32>) outs(%f : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %r, %s : tensor<128x64xf32>, tensor<128x64xf32>
}

// Shared HBM for what a loop carries, if the user says so; SBUF cannot be had.
// WARN: warning: a value that a loop carries lives in HBM, not in SBUF
// CHECK-LABEL: @loop_knobs
// CHECK: %[[L:.*]]:2 = scf.for
// CHECK-DAG: "nkipy.layout"(%[[L]]#0) {mem_space = 4 : i32
// CHECK-DAG: "nkipy.layout"(%[[L]]#1) {mem_space = 1 : i32
func.func @loop_knobs(%x: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %e0 = tensor.empty() : tensor<128x64xf32>
  %e1 = tensor.empty() : tensor<128x64xf32>
  %e2 = tensor.empty() : tensor<128x64xf32>
  %l:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%p = %x, %q = %x) -> (tensor<128x64xf32>, tensor<128x64xf32>) {
    %m = linalg.add ins(%p, %q : tensor<128x64xf32>, tensor<128x64xf32>) outs(%e0 : tensor<128x64xf32>) -> tensor<128x64xf32>
    %n = linalg.mul ins(%p, %q : tensor<128x64xf32>, tensor<128x64xf32>) outs(%e1 : tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %m, %n : tensor<128x64xf32>, tensor<128x64xf32>
  }
  "nkipy.layout"(%l#0) {mem_space = 4 : i32} : (tensor<128x64xf32>) -> ()
  "nkipy.layout"(%l#1) {mem_space = 3 : i32} : (tensor<128x64xf32>) -> ()
  %r = linalg.add ins(%l#0, %l#1 : tensor<128x64xf32>, tensor<128x64xf32>) outs(%e2 : tensor<128x64xf32>) -> tensor<128x64xf32>
  return %r : tensor<128x64xf32>
}
