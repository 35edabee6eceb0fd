// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s
#id = affine_map<(d0, d1) -> (d0, d1)>

// The bits of floats as integers, and back: an operation that converts nothing.
// CHECK-LABEL: func.func @magnitude
// CHECK:       %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK:       "nisa.tensor_scalar_arith"(%[[B:[a-z0-9_]+]], %{{[a-z0-9_]+}}, %[[ZERO]]) {{.*}}op0 = "bitwise_or"{{.*}} : (memref<64x96xi32, #nisa.mem<"sbuf">>, memref<64x96xf32, #nisa.mem<"sbuf">>, i32)
// CHECK:       "nisa.tensor_scalar_arith"(%[[C:[a-z0-9_]+]], %[[B]], %{{.*}}) {{.*}}op0 = "bitwise_and"
// CHECK:       "nisa.tensor_scalar_arith"(%{{.*}}, %[[C]], %{{.*}}) {{.*}}op0 = "bitwise_or"{{.*}} : (memref<64x96xf32, #nisa.mem<"sbuf">>, memref<64x96xi32, #nisa.mem<"sbuf">>, i32)
func.func @magnitude(%h: memref<64x96xf32, 4 : i32>) {
  %a = memref.alloc() : memref<64x96xf32, 3 : i32>
  memref.copy %h, %a : memref<64x96xf32, 4 : i32> to memref<64x96xf32, 3 : i32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : memref<64x96xf32, 3 : i32>) outs(%a : memref<64x96xf32, 3 : i32>) {
  ^bb0(%x: f32, %z: f32):
    %m = arith.constant 0x7FFFFFFF : i32
    %b = arith.bitcast %x : f32 to i32
    %c = arith.andi %b, %m : i32
    %d = arith.bitcast %c : i32 to f32
    linalg.yield %d : f32
  }
  memref.copy %a, %h : memref<64x96xf32, 3 : i32> to memref<64x96xf32, 4 : i32>
  memref.dealloc %a : memref<64x96xf32, 3 : i32>
  return
}
