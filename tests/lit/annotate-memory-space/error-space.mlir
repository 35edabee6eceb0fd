// A memory space that does not exist.
// RUN: not nkx opt --annotate-memory-space %s 2>&1 | FileCheck %s
// CHECK: error: 9 is not a memory space
func.func @f() {
  %s = memref.alloc() : memref<8x8xf32>
  "nkipy.layout"(%s) {mem_space = 9 : i32} : (memref<8x8xf32>) -> ()
  return
}
