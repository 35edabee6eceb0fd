// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s
// RUN: nkx opt --linalg-to-nisa %s | mlir-opt -

// Spaces become #nisa.mem, results get names, the module its machine; nkipy attributes go.
// CHECK: module attributes {nisa.target = #nisa.target<"trn2">}
// CHECK-LABEL: func.func @load_store(
// CHECK-SAME:  memref<64x128xf32, #nisa.mem<"shared_hbm">>) -> memref<64x128xf32, #nisa.mem<"shared_hbm">>
// CHECK-SAME:  nki.output_names = ["output"]
// CHECK:       %[[S:[a-z0-9_]+]] = "nisa.alloc"() {alignment = 64 : i64} : () -> memref<64x128xf32, #nisa.mem<"sbuf">>
// CHECK:       "nisa.dma_copy"(%[[S]], %arg0) {{.*}}dst_tile = array<i64: 64, 128>{{.*}}engine = "dma"
// CHECK:       %[[R:[a-z0-9_]+]] = "nisa.alloc"() : () -> memref<64x128xf32, #nisa.mem<"shared_hbm">>
// CHECK:       "nisa.dma_copy"(%[[R]], %[[S]])
// CHECK:       "nisa.release"(%[[S]])
// CHECK:       return %[[R]]
func.func @load_store(%a: memref<64x128xf32, 4 : i32>) -> memref<64x128xf32, 4 : i32> attributes {nkipy.alias = 1 : i64} {
  %s = memref.alloc() {alignment = 64 : i64} : memref<64x128xf32, 3 : i32>
  memref.copy %a, %s : memref<64x128xf32, 4 : i32> to memref<64x128xf32, 3 : i32>
  %r = memref.alloc() : memref<64x128xf32, 4 : i32>
  memref.copy %s, %r : memref<64x128xf32, 3 : i32> to memref<64x128xf32, 4 : i32>
  memref.dealloc %s : memref<64x128xf32, 3 : i32>
  return %r : memref<64x128xf32, 4 : i32>
}

// HBM to PSUM and back goes through SBUF, and that is released.
// CHECK-LABEL: func.func @psum_hop
// CHECK:       %[[P:[a-z0-9_]+]] = "nisa.alloc"() : () -> memref<64x128xf32, #nisa.mem<"psum">>
// CHECK:       %[[T:[a-z0-9_]+]] = "nisa.alloc"() {{.*}} -> memref<64x128xf32, #nisa.mem<"sbuf">>
// CHECK:       "nisa.dma_copy"(%[[T]], %arg0)
// CHECK:       "nisa.tensor_copy"(%[[P]], %[[T]]) {{.*}}engine = "vector"
// CHECK:       "nisa.release"(%[[T]])
// CHECK:       %[[U:[a-z0-9_]+]] = "nisa.alloc"() {{.*}} -> memref<64x128xf32, #nisa.mem<"sbuf">>
// CHECK:       "nisa.tensor_copy"(%[[U]], %[[P]])
// CHECK:       "nisa.dma_copy"(%arg1, %[[U]])
// CHECK:       "nisa.release"(%[[U]])
// CHECK:       "nisa.release"(%[[P]])
func.func @psum_hop(%a: memref<64x128xf32, 4 : i32>, %b: memref<64x128xf32, 4 : i32>) {
  %p = memref.alloc() : memref<64x128xf32, 2 : i32>
  memref.copy %a, %p : memref<64x128xf32, 4 : i32> to memref<64x128xf32, 2 : i32>
  memref.copy %p, %b : memref<64x128xf32, 2 : i32> to memref<64x128xf32, 4 : i32>
  memref.dealloc %p : memref<64x128xf32, 2 : i32>
  return
}

// On chip a buffer has two dimensions; several results have numbered names.
// CHECK-LABEL: func.func @rank_one
// CHECK-SAME:  nki.output_names = ["output_0", "output_1"]
// CHECK:       "nisa.alloc"() : () -> memref<100x1xf32, #nisa.mem<"sbuf">>
// CHECK:       "nisa.dma_copy"({{.*}}dst_ap = #[[COL:[a-z0-9]+]], dst_par_dims = 1 : i32, dst_tile = array<i64: 100, 1>
// CHECK:       "nisa.alloc"() : () -> memref<1x1xf32, #nisa.mem<"sbuf">>
func.func @rank_one(%a: memref<100xf32, 4 : i32>, %b: memref<f32, 4 : i32>) -> (memref<100xf32, 4 : i32>, memref<f32, 4 : i32>) {
  %s = memref.alloc() : memref<100xf32, 3 : i32>
  memref.copy %a, %s : memref<100xf32, 4 : i32> to memref<100xf32, 3 : i32>
  %r = memref.alloc() : memref<100xf32, 4 : i32>
  memref.copy %s, %r : memref<100xf32, 3 : i32> to memref<100xf32, 4 : i32>
  memref.dealloc %s : memref<100xf32, 3 : i32>
  %t = memref.alloc() : memref<f32, 3 : i32>
  memref.copy %b, %t : memref<f32, 4 : i32> to memref<f32, 3 : i32>
  %q = memref.alloc() : memref<f32, 4 : i32>
  memref.copy %t, %q : memref<f32, 3 : i32> to memref<f32, 4 : i32>
  memref.dealloc %t : memref<f32, 3 : i32>
  return %r, %q : memref<100xf32, 4 : i32>, memref<f32, 4 : i32>
}

// A copy that changes nothing, onto itself, is no instruction.
// CHECK-LABEL: func.func @self
// CHECK-NOT:   nisa.dma_copy
// CHECK:       return
func.func @self(%a: memref<64x128xf32, 4 : i32>) {
  memref.copy %a, %a : memref<64x128xf32, 4 : i32> to memref<64x128xf32, 4 : i32>
  return
}
