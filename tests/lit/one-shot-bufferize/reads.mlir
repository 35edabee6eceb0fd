// Many slices of an argument that is only read are views of it, also through slices of slices.  An argument that is written keeps
// upstream's analysis, which copies what is read later.
// RUN: nkx opt --one-shot-bufferize %s | FileCheck %s
func.func @read(%x: tensor<32x8xf32>) -> tensor<32x8xf32> {
  %e = tensor.empty() : tensor<32x8xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%o = %e) -> (tensor<32x8xf32>) {
    %a0 = tensor.extract_slice %x[%i, 0] [8, 8] [1, 1] : tensor<32x8xf32> to tensor<8x8xf32>
    %b0 = tensor.extract_slice %a0[1, 0] [1, 8] [1, 1] : tensor<8x8xf32> to tensor<1x8xf32>
    %s = bufferization.alloc_tensor() {memory_space = 3 : i32} : tensor<1x8xf32>
    %m = bufferization.materialize_in_destination %b0 in %s : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
    %o0 = tensor.insert_slice %m into %o[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
    %a1 = tensor.extract_slice %x[1, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
    %o1 = tensor.insert_slice %a1 into %o0[1, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
    %a2 = tensor.extract_slice %x[2, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
    %o2 = tensor.insert_slice %a2 into %o1[2, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
    %a3 = tensor.extract_slice %x[3, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
    %o3 = tensor.insert_slice %a3 into %o2[3, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
    %a4 = tensor.extract_slice %x[4, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
    %o4 = tensor.insert_slice %a4 into %o3[4, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
    %a5 = tensor.extract_slice %x[5, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
    %o5 = tensor.insert_slice %a5 into %o4[5, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
    %a6 = tensor.extract_slice %x[6, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
    %o6 = tensor.insert_slice %a6 into %o5[6, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
    scf.yield %o6 : tensor<32x8xf32>
  }
  %a7 = tensor.extract_slice %x[7, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
  %r7 = tensor.insert_slice %a7 into %r[7, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
  %a8 = tensor.extract_slice %x[8, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
  %r8 = tensor.insert_slice %a8 into %r7[8, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
  %a9 = tensor.extract_slice %x[9, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
  %r9 = tensor.insert_slice %a9 into %r8[9, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
  %a10 = tensor.extract_slice %x[10, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
  %r10 = tensor.insert_slice %a10 into %r9[10, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
  %a11 = tensor.extract_slice %x[11, 0] [1, 8] [1, 1] : tensor<32x8xf32> to tensor<1x8xf32>
  %r11 = tensor.insert_slice %a11 into %r10[11, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<32x8xf32>
  return %r11 : tensor<32x8xf32>
}
// CHECK-LABEL: @read(
// CHECK-SAME:    %[[X:.*]]: memref<32x8xf32, strided<[?, ?], offset: ?>>
// CHECK-NOT:     memref.cast
// CHECK:         %[[O:.*]] = memref.alloc() {{.*}} : memref<32x8xf32>
// CHECK-NOT:     memref.alloc() {{.*}} : memref<32x8xf32>
// CHECK:         scf.for
// CHECK:         %[[A:.*]] = memref.subview %[[X]][%{{.*}}, 0] [8, 8]
// CHECK:         %[[B:.*]] = memref.subview %[[A]][1, 0] [1, 8]
// CHECK:         memref.copy %[[B]], %{{.*}} to memref<1x8xf32, 3 : i32>
// CHECK:         %[[C:.*]] = memref.subview %[[X]][1, 0] [1, 8]
// CHECK:         memref.copy %[[C]], %{{.*}}
// CHECK:         %[[D:.*]] = memref.subview %[[X]][11, 0] [1, 8]
// CHECK:         memref.copy %[[D]], %{{.*}}
// CHECK-NOT:     bufferization.
