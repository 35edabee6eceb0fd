// RUN: nkx opt --legalize-layout %s | FileCheck %s
// linalg.index counts the loops of the whole operation, also in its parts and when loops of one turn have gone; a gather's
// indices may lie in the partitions or not.
#out = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#idx = affine_map<(d0, d1, d2) -> (d2)>

// CHECK-LABEL: func.func @parts
// CHECK:       scf.for %[[I:.*]] = %c0{{.*}} to %c3
// CHECK:         scf.for %[[J:.*]] = %c0{{.*}} to %c2
// CHECK:           %[[AT:.*]] = arith.muli %[[J]], %c64
// CHECK:           linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
// CHECK:             %[[ROW:.*]] = linalg.index 0
// CHECK-NEXT:        %[[WHOLE:.*]] = arith.addi %[[ROW]], %[[AT]]
// CHECK:             memref.load %arg0[%[[I]], %[[WHOLE]],
func.func @parts(%table: memref<3x128x9xf32, 4 : i32>, %idx: memref<40xi32, 4 : i32>) {
  %o = memref.alloc() : memref<3x128x40xf32, 3 : i32>
  "nkipy.layout"(%o) {mem_space = 3 : i32, partition_dim = 1 : i32, tile_size = array<i64: 1, 64, 40>} : (memref<3x128x40xf32, 3 : i32>) -> ()
  linalg.generic {indexing_maps = [#idx, #out], iterator_types = ["parallel", "parallel", "parallel"]} ins(%idx : memref<40xi32, 4 : i32>) outs(%o : memref<3x128x40xf32, 3 : i32>) {
  ^bb0(%x: i32, %z: f32):
    %at = arith.index_cast %x : i32 to index
    %b = linalg.index 0 : index
    %r = linalg.index 1 : index
    %v = memref.load %table[%b, %r, %at] : memref<3x128x9xf32, 4 : i32>
    linalg.yield %v : f32
  }
  return
}
