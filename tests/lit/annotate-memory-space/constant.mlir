// Mem_space Constant is for a buffer that is filled with one constant.
// RUN: nkx opt --annotate-memory-space %s | FileCheck %s
// CHECK: memref.alloc() : memref<8x8xf32, 5 : i32>
// CHECK: linalg.fill ins(%{{.*}}) outs(%{{.*}} : memref<8x8xf32, 5 : i32>)
func.func @f() {
  %c = arith.constant 2.0 : f32
  %s = memref.alloc() : memref<8x8xf32>
  linalg.fill ins(%c : f32) outs(%s : memref<8x8xf32>)
  "nkipy.layout"(%s) {mem_space = 5 : i32} : (memref<8x8xf32>) -> ()
  return
}
