// Of what a slice is put into, only the border is filled or copied, where that takes less time.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// Padding on one side.
// REMARK: only the border of what it is put into is filled: 1 part
// CHECK-LABEL: func.func @pad
// CHECK: %[[ALL:.*]] = tensor.empty() : tensor<8x515x256xf32>
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<8x3x256xf32>
// CHECK: %[[B:.*]] = tensor.insert_slice %[[ZEROS]] into %[[ALL]][0, 0, 0] [8, 3, 256]
// CHECK: tensor.insert_slice %arg0 into %[[B]][0, 3, 0] [8, 512, 256]
func.func @pad(%x: tensor<8x512x256xf32>) -> tensor<8x515x256xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x515x256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x515x256xf32>) -> tensor<8x515x256xf32>
  %y = tensor.insert_slice %x into %f[0, 3, 0] [8, 512, 256] [1, 1, 1] : tensor<8x512x256xf32> into tensor<8x515x256xf32>
  return %y : tensor<8x515x256xf32>
}

// The interior of a copy: the edges are slices of what was copied, and do not overlap.
// REMARK: only the border of what it is put into is copied: 4 parts
// CHECK-LABEL: func.func @interior
// CHECK-NOT: linalg.copy
// CHECK: tensor.extract_slice %arg0[0, 0] [1, 1024]
// CHECK: tensor.extract_slice %arg0[1023, 0] [1, 1024]
// CHECK: tensor.extract_slice %arg0[1, 0] [1022, 1]
// CHECK: %[[RIGHT:.*]] = tensor.extract_slice %arg0[1, 1023] [1022, 1]
// CHECK: %[[B:.*]] = tensor.insert_slice %[[RIGHT]] into %{{.*}}[1, 1023] [1022, 1]
// CHECK: tensor.insert_slice %arg1 into %[[B]][1, 1] [1022, 1022]
func.func @interior(%x: tensor<1024x1024xf32>, %u: tensor<1022x1022xf32>) -> tensor<1024x1024xf32> {
  %e = tensor.empty() : tensor<1024x1024xf32>
  %c = linalg.copy ins(%x : tensor<1024x1024xf32>) outs(%e : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %y = tensor.insert_slice %u into %c[1, 1] [1022, 1022] [1, 1] : tensor<1022x1022xf32> into tensor<1024x1024xf32>
  return %y : tensor<1024x1024xf32>
}

// A small tensor, contents that something else reads, and an interior that the run decides.
// CHECK-LABEL: func.func @stay
// CHECK: linalg.fill {{.*}} -> tensor<66x66xf32>
// CHECK: %[[C:.*]] = linalg.copy
// CHECK: tensor.insert_slice %arg1 into %[[C]][1, 1]
// CHECK: %[[D:.*]] = linalg.fill {{.*}} -> tensor<2048x1024xf32>
// CHECK: tensor.insert_slice %{{.*}} into %[[D]]
func.func @stay(%x: tensor<64x64xf32>, %u: tensor<1022x1022xf32>, %w: tensor<1024x1024xf32>, %at: index)
    -> (tensor<66x66xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<2048x1024xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<66x66xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<66x66xf32>) -> tensor<66x66xf32>
  %y = tensor.insert_slice %x into %f[1, 1] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<66x66xf32>
  %g = tensor.empty() : tensor<1024x1024xf32>
  %c = linalg.copy ins(%w : tensor<1024x1024xf32>) outs(%g : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %z = tensor.insert_slice %u into %c[1, 1] [1022, 1022] [1, 1] : tensor<1022x1022xf32> into tensor<1024x1024xf32>
  %h = tensor.empty() : tensor<2048x1024xf32>
  %i = linalg.fill ins(%zero : f32) outs(%h : tensor<2048x1024xf32>) -> tensor<2048x1024xf32>
  %v = tensor.insert_slice %w into %i[%at, 0] [1024, 1024] [1, 1] : tensor<1024x1024xf32> into tensor<2048x1024xf32>
  return %y, %z, %c, %v : tensor<66x66xf32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<2048x1024xf32>
}
