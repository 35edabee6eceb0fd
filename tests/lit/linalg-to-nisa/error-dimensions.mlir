// RUN: not nkx opt --linalg-to-nisa %s 2>&1 | FileCheck %s

// A buffer has a dimension for the partitions and one for each loop.
// CHECK: 7:3: error: not supported on NISA: memref.copy: it works on more than 11 dimensions
func.func @f(%a: memref<2x2x2x2x2x2x2x2x2x2x2x2xf32, 4 : i32>, %b: memref<2x2x2x2x2x2x2x2x2x2x2x2xf32, 4 : i32>) {
  // the loops of a copy are the dimensions of what it copies
  memref.copy %a, %b : memref<2x2x2x2x2x2x2x2x2x2x2x2xf32, 4 : i32> to memref<2x2x2x2x2x2x2x2x2x2x2x2xf32, 4 : i32>
  return
}
