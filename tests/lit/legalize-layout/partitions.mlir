// RUN: nkx opt --legalize-layout --linalg-to-nisa %s | FileCheck %s
// Partitions along the last dimension of an operand, where no buffer has them: the instruction gets a copy by DMA.
// CHECK: "nisa.dma_copy"(%[[T:.*]], %{{.*}}) {{.*}}src_ap = #[[M:map1]]
// CHECK: "nisa.tensor_tensor_arith"(%{{.*}}, %[[T]], %[[T]])
func.func @f() {
  %a = memref.alloc() : memref<64x2x32xf32, 3 : i32>
  %c = memref.alloc() : memref<32x64x2xf32, 3 : i32>
  linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, k, i)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : memref<64x2x32xf32, 3 : i32>) outs(%c : memref<32x64x2xf32, 3 : i32>) {
  ^bb0(%x: f32, %z: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  }
  return
}
