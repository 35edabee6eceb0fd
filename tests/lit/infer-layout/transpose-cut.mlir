// A tile of a transpose that is too long for the partitions of what is read is cut, in the layout and in the loops.
// RUN: nkx opt --infer-layout %s 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARN < %t.err

// CHECK: linalg.transpose
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 4, 128>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 4, 128>}
// WARN: warning: tile size 500 along dimension 1 is cut to 128: what this transposes lies across the partitions there [knob-ignored]
func.func @f(%x: tensor<517x4xf32>) -> tensor<4x517xf32> {
  %e = tensor.empty() : tensor<4x517xf32>
  %t = linalg.transpose ins(%x : tensor<517x4xf32>) outs(%e : tensor<4x517xf32>) permutation = [1, 0]
  "nkipy.layout"(%t) {tile_size = array<i64: 4, 500>} : (tensor<4x517xf32>) -> ()
  "nkipy.tile_op"(%t) {loop_tile_size = array<i64: 4, 500>} : (tensor<4x517xf32>) -> ()
  return %t : tensor<4x517xf32>
}
