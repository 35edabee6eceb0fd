// Matmuls fill 128 partitions and a PSUM bank; what they read and write is in the same tiles.
// RUN: nkx opt --infer-layout %s | FileCheck %s

// CHECK-LABEL: @default
// CHECK: linalg.matmul
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 512>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 512, 128>}
func.func @default(%a: tensor<1024x256xf32>, %b: tensor<256x2048xf32>) -> tensor<1024x2048xf32> {
  %e = tensor.empty() : tensor<1024x2048xf32>
  %r = linalg.matmul ins(%a, %b : tensor<1024x256xf32>, tensor<256x2048xf32>) outs(%e : tensor<1024x2048xf32>) -> tensor<1024x2048xf32>
  return %r : tensor<1024x2048xf32>
}

// CHECK-LABEL: @clipped
// CHECK: loop_tile_size = array<i64: 7, 1, 5>
func.func @clipped(%a: tensor<7x5xf32>, %b: tensor<5x1xf32>) -> tensor<7x1xf32> {
  %e = tensor.empty() : tensor<7x1xf32>
  %r = linalg.matmul ins(%a, %b : tensor<7x5xf32>, tensor<5x1xf32>) outs(%e : tensor<7x1xf32>) -> tensor<7x1xf32>
  return %r : tensor<7x1xf32>
}

// CHECK-LABEL: @odd
// CHECK: loop_tile_size = array<i64: 128, 512, 128>
func.func @odd(%a: tensor<130x517xf32>, %b: tensor<517x1000xf32>) -> tensor<130x1000xf32> {
  %e = tensor.empty() : tensor<130x1000xf32>
  %r = linalg.matmul ins(%a, %b : tensor<130x517xf32>, tensor<517x1000xf32>) outs(%e : tensor<130x1000xf32>) -> tensor<130x1000xf32>
  return %r : tensor<130x1000xf32>
}

// The first operand is produced in the tiles that the matmul reads, its partition dimension stays the first: the matmul's
// lowering transposes it.
// CHECK-LABEL: @operands
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>}
// CHECK: linalg.square
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>}
// CHECK: linalg.matmul
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 128, 128>}
func.func @operands(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %x = linalg.exp ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %f = tensor.empty() : tensor<256x256xf32>
  %y = linalg.square ins(%x : tensor<256x256xf32>) outs(%f : tensor<256x256xf32>) -> tensor<256x256xf32>
  %g = tensor.empty() : tensor<256x256xf32>
  %r = linalg.matmul ins(%y, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%g : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}

// (a b) c without any knob: no conflict; the inner product's columns are the outer one's contraction.
// CHECK-LABEL: @chained
// CHECK: linalg.matmul
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 128, 128>}
// CHECK: linalg.matmul
// CHECK-NEXT: "nkipy.layout"({{.*}}) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 512>}
// CHECK-NEXT: "nkipy.tile_op"({{.*}}) {loop_tile_size = array<i64: 128, 512, 128>}
func.func @chained(%a: tensor<256x256xf32>, %b: tensor<256x512xf32>, %c: tensor<512x1024xf32>) -> tensor<256x1024xf32> {
  %e = tensor.empty() : tensor<256x512xf32>
  %x = linalg.matmul ins(%a, %b : tensor<256x256xf32>, tensor<256x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  %f = tensor.empty() : tensor<256x1024xf32>
  %r = linalg.matmul ins(%x, %c : tensor<256x512xf32>, tensor<512x1024xf32>) outs(%f : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  return %r : tensor<256x1024xf32>
}

// Matmul, element-wise, matmul, as in a feed-forward layer.
// CHECK-LABEL: @mlp
// CHECK-NOT: partition_dim = 1
// CHECK: return
func.func @mlp(%a: tensor<256x256xf32>, %b: tensor<256x512xf32>, %c: tensor<512x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x512xf32>
  %x = linalg.matmul ins(%a, %b : tensor<256x256xf32>, tensor<256x512xf32>) outs(%e : tensor<256x512xf32>) -> tensor<256x512xf32>
  %f = tensor.empty() : tensor<256x512xf32>
  %y = linalg.tanh ins(%x : tensor<256x512xf32>) outs(%f : tensor<256x512xf32>) -> tensor<256x512xf32>
  %g = tensor.empty() : tensor<256x256xf32>
  %r = linalg.matmul ins(%y, %c : tensor<256x512xf32>, tensor<512x256xf32>) outs(%g : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %r : tensor<256x256xf32>
}

// Knobs on both, with the layout's partition_dim given: no conflict either.
// CHECK-LABEL: @given_operand
// CHECK: linalg.exp
// CHECK-NEXT: "nkipy.layout"({{.*}}) {given, mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>}
// CHECK: linalg.matmul
func.func @given_operand(%a: tensor<256x256xf32>, %b: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %x = linalg.exp ins(%a : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.layout"(%x) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()
  %g = tensor.empty() : tensor<256x256xf32>
  %r = linalg.matmul ins(%x, %b : tensor<256x256xf32>, tensor<256x256xf32>) outs(%g : tensor<256x256xf32>) -> tensor<256x256xf32>
  "nkipy.tile_op"(%r) {loop_tile_size = array<i64: 128, 128, 128>} : (tensor<256x256xf32>) -> ()
  return %r : tensor<256x256xf32>
}

// A value that takes more than half of SBUF is read from HBM: its tiles are as long as its own operations allow, although the
// product that reads it takes 128 of its columns at a time.
// CHECK-LABEL: func.func @large
// CHECK:         linalg.exp
// CHECK:         "nkipy.layout"{{.*}}mem_space = 1 : i32{{.*}}tile_size = array<i64: 128, 2048>
// CHECK:         linalg.matmul
// CHECK:         loop_tile_size = array<i64: 128, 512, 128>
// CHECK:         return
func.func @large(%a: tensor<2048x8192xf32>, %b: tensor<8192x512xf32>) -> tensor<2048x512xf32> {
  %e = tensor.empty() : tensor<2048x8192xf32>
  %x = linalg.exp ins(%a : tensor<2048x8192xf32>) outs(%e : tensor<2048x8192xf32>) -> tensor<2048x8192xf32>
  %f = tensor.empty() : tensor<2048x512xf32>
  %p = linalg.matmul ins(%x, %b : tensor<2048x8192xf32>, tensor<8192x512xf32>) outs(%f : tensor<2048x512xf32>) -> tensor<2048x512xf32>
  return %p : tensor<2048x512xf32>
}

// One that fits is read tile by tile from SBUF.
// CHECK-LABEL: func.func @small
// CHECK:         linalg.exp
// CHECK:         "nkipy.layout"{{.*}}mem_space = 3 : i32{{.*}}tile_size = array<i64: 128, 128>
// CHECK:         return
func.func @small(%a: tensor<512x1024xf32>, %b: tensor<1024x512xf32>) -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512x1024xf32>
  %x = linalg.exp ins(%a : tensor<512x1024xf32>) outs(%e : tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %f = tensor.empty() : tensor<512x512xf32>
  %p = linalg.matmul ins(%x, %b : tensor<512x1024xf32>, tensor<1024x512xf32>) outs(%f : tensor<512x512xf32>) -> tensor<512x512xf32>
  return %p : tensor<512x512xf32>
}
