// Mem_space Constant on a buffer that is filled with a value known only later.
// RUN: not nkx opt --annotate-memory-space %s 2>&1 | FileCheck %s
// CHECK: kernel.py:4:1: error: CONSTANT memory space requires a scalar broadcast
func.func @f(%x: f32) {
  %s = memref.alloc() : memref<8x8xf32>
  linalg.fill ins(%x : f32) outs(%s : memref<8x8xf32>)
  "nkipy.layout"(%s) {mem_space = 5 : i32} : (memref<8x8xf32>) -> () loc("kernel.py":4:1)
  return
}
