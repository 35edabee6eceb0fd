// RUN: nkx opt --legalize-layout %s | FileCheck %s

// The counter of the loop over blocks is added to an offset of eight values.
// CHECK-LABEL: func.func @eight_values
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: %[[BLOCK:.+]] = arith.muli %[[I]], %{{.+}} : index
// CHECK: %[[AT:.+]] = arith.addi %{{.+}}, %[[BLOCK]] : index
// CHECK: memref.subview %arg0[%[[AT]], 0] [128, 64] [1, 1]
func.func @eight_values(%h: memref<4096x64xf32, 4 : i32>, %a: index, %b: index, %c: index, %d: index, %e: index, %f: index, %g: index, %k: index) {
  %0 = arith.addi %a, %b : index
  %1 = arith.addi %0, %c : index
  %2 = arith.addi %1, %d : index
  %3 = arith.addi %2, %e : index
  %4 = arith.addi %3, %f : index
  %5 = arith.addi %4, %g : index
  %6 = arith.addi %5, %k : index
  %x = memref.alloc() : memref<256x64xf32, 3 : i32>
  "nkipy.layout"(%x) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 64>} : (memref<256x64xf32, 3 : i32>) -> ()
  %s = memref.subview %h[%6, 0] [256, 64] [1, 1] : memref<4096x64xf32, 4 : i32> to memref<256x64xf32, strided<[64, 1], offset: ?>, 4 : i32>
  memref.copy %s, %x : memref<256x64xf32, strided<[64, 1], offset: ?>, 4 : i32> to memref<256x64xf32, 3 : i32>
  return
}
