// RUN: nkx opt --fuse-row-tiles %s | FileCheck %s
// Values of a loop that are only parts of another one are written there, tile by tile.

// Side by side: the loop carries what they are joined to, and inserts both tiles.
// CHECK-LABEL: func.func @columns
// CHECK:         %[[E:.*]] = tensor.empty() : tensor<512x160xf32>
// CHECK:         %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[K:.*]] = %{{.*}}, %[[C:.*]] = %[[E]]) -> (tensor<512x64xf32>, tensor<512x160xf32>)
// CHECK:           %[[A:.*]] = linalg.exp
// CHECK:           %[[S:.*]] = tensor.insert_slice %[[A]] into %[[C]][%{{.*}}, 0] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<512x160xf32>
// CHECK:           %[[T:.*]] = tensor.insert_slice %{{.*}} into %[[S]][%{{.*}}, 64] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<512x160xf32>
// CHECK:           scf.yield %{{.*}}, %[[T]]
// CHECK:         %[[W:.*]] = tensor.insert_slice %arg1 into %[[R]]#1[0, 128] [512, 32]
// CHECK-NEXT:    "nkipy.layout"(%[[W]])
// CHECK-NEXT:    return %[[W]], %[[R]]#0
func.func @columns(%x: tensor<512x64xf32>, %y: tensor<512x32xf32>) -> (tensor<512x160xf32>, tensor<512x64xf32>) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %e = tensor.empty() : tensor<512x64xf32>
  %t = tensor.empty() : tensor<128x64xf32>
  %r:3 = scf.for %i = %c0 to %c512 step %c128 iter_args(%p = %e, %k = %e, %q = %e) -> (tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [128, 64] [1, 1] : tensor<512x64xf32> to tensor<128x64xf32>
    %a = linalg.exp ins(%s : tensor<128x64xf32>) outs(%t : tensor<128x64xf32>) -> tensor<128x64xf32>
    %p1 = tensor.insert_slice %a into %p[%i, 0] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<512x64xf32>
    %b = linalg.tanh ins(%a : tensor<128x64xf32>) outs(%t : tensor<128x64xf32>) -> tensor<128x64xf32>
    %k1 = tensor.insert_slice %b into %k[%i, 0] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<512x64xf32>
    %q1 = tensor.insert_slice %b into %q[%i, 0] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<512x64xf32>
    scf.yield %p1, %k1, %q1 : tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>
  }
  "nkipy.layout"(%r#0) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 64>} : (tensor<512x64xf32>) -> ()
  %d = tensor.empty() : tensor<512x160xf32>
  %u = tensor.insert_slice %r#0 into %d[0, 0] [512, 64] [1, 1] : tensor<512x64xf32> into tensor<512x160xf32>
  %v = tensor.insert_slice %r#2 into %u[0, 64] [512, 64] [1, 1] : tensor<512x64xf32> into tensor<512x160xf32>
  %w = tensor.insert_slice %y into %v[0, 128] [512, 32] [1, 1] : tensor<512x32xf32> into tensor<512x160xf32>
  "nkipy.layout"(%w) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 64>} : (tensor<512x160xf32>) -> ()
  return %w, %r#1 : tensor<512x160xf32>, tensor<512x64xf32>
}

// One below the other: the rows of the second part begin later.
// CHECK-LABEL: func.func @rows
// CHECK:         scf.for %[[I:.*]] = {{.*}} iter_args(%[[C:.*]] = %{{.*}}) -> (tensor<1024x64xf32>)
// CHECK:           %[[S:.*]] = tensor.insert_slice %{{.*}} into %[[C]][%[[I]], 0] [128, 64]
// CHECK:           %[[J:.*]] = arith.addi %[[I]], %{{.*}} : index
// CHECK-NEXT:      tensor.insert_slice %{{.*}} into %[[S]][%[[J]], 0] [128, 64]
// CHECK-NOT:     tensor.insert_slice
// CHECK:         return
func.func @rows(%x: tensor<512x64xf32>) -> tensor<1024x64xf32> {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %e = tensor.empty() : tensor<512x64xf32>
  %t = tensor.empty() : tensor<128x64xf32>
  %r:2 = scf.for %i = %c0 to %c512 step %c128 iter_args(%p = %e, %q = %e) -> (tensor<512x64xf32>, tensor<512x64xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [128, 64] [1, 1] : tensor<512x64xf32> to tensor<128x64xf32>
    %a = linalg.exp ins(%s : tensor<128x64xf32>) outs(%t : tensor<128x64xf32>) -> tensor<128x64xf32>
    %p1 = tensor.insert_slice %a into %p[%i, 0] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<512x64xf32>
    %q1 = tensor.insert_slice %s into %q[%i, 0] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<512x64xf32>
    scf.yield %p1, %q1 : tensor<512x64xf32>, tensor<512x64xf32>
  }
  %d = tensor.empty() : tensor<1024x64xf32>
  %u = tensor.insert_slice %r#0 into %d[0, 0] [512, 64] [1, 1] : tensor<512x64xf32> into tensor<1024x64xf32>
  %v = tensor.insert_slice %r#1 into %u[512, 0] [512, 64] [1, 1] : tensor<512x64xf32> into tensor<1024x64xf32>
  "nkipy.layout"(%v) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 64>} : (tensor<1024x64xf32>) -> ()
  return %v : tensor<1024x64xf32>
}

// The second part covers columns of the first: it is a value of its own, and inserted afterwards.
// CHECK-LABEL: func.func @overlapping
// CHECK:         scf.for {{.*}} -> (tensor<512x64xf32>, tensor<512x128xf32>)
// CHECK-DAG:     into tensor<512x64xf32>
// CHECK-DAG:     into tensor<512x128xf32>
// CHECK:         tensor.insert_slice {{.*}}[0, 32] [512, 64]
// CHECK:         return
func.func @overlapping(%x: tensor<512x64xf32>) -> tensor<512x128xf32> {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %e = tensor.empty() : tensor<512x64xf32>
  %t = tensor.empty() : tensor<128x64xf32>
  %r:2 = scf.for %i = %c0 to %c512 step %c128 iter_args(%p = %e, %q = %e) -> (tensor<512x64xf32>, tensor<512x64xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [128, 64] [1, 1] : tensor<512x64xf32> to tensor<128x64xf32>
    %a = linalg.exp ins(%s : tensor<128x64xf32>) outs(%t : tensor<128x64xf32>) -> tensor<128x64xf32>
    %p1 = tensor.insert_slice %a into %p[%i, 0] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<512x64xf32>
    %q1 = tensor.insert_slice %s into %q[%i, 0] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<512x64xf32>
    scf.yield %p1, %q1 : tensor<512x64xf32>, tensor<512x64xf32>
  }
  %d = tensor.empty() : tensor<512x128xf32>
  %u = tensor.insert_slice %r#0 into %d[0, 0] [512, 64] [1, 1] : tensor<512x64xf32> into tensor<512x128xf32>
  %v = tensor.insert_slice %r#1 into %u[0, 32] [512, 64] [1, 1] : tensor<512x64xf32> into tensor<512x128xf32>
  "nkipy.layout"(%v) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 64>} : (tensor<512x128xf32>) -> ()
  return %v : tensor<512x128xf32>
}

// The first part is read besides: both are whole values.
// CHECK-LABEL: func.func @read
// CHECK:         scf.for {{.*}} -> (tensor<512x64xf32>, tensor<512x64xf32>)
// CHECK-COUNT-2: into tensor<512x64xf32>
// CHECK:         tensor.insert_slice {{.*}}[0, 0] [512, 64]
// CHECK:         tensor.insert_slice {{.*}}[0, 64] [512, 64]
// CHECK:         return
func.func @read(%x: tensor<512x64xf32>) -> (tensor<512x128xf32>, tensor<512x64xf32>) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %e = tensor.empty() : tensor<512x64xf32>
  %t = tensor.empty() : tensor<128x64xf32>
  %r:2 = scf.for %i = %c0 to %c512 step %c128 iter_args(%p = %e, %q = %e) -> (tensor<512x64xf32>, tensor<512x64xf32>) {
    %s = tensor.extract_slice %x[%i, 0] [128, 64] [1, 1] : tensor<512x64xf32> to tensor<128x64xf32>
    %a = linalg.exp ins(%s : tensor<128x64xf32>) outs(%t : tensor<128x64xf32>) -> tensor<128x64xf32>
    %p1 = tensor.insert_slice %a into %p[%i, 0] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<512x64xf32>
    %q1 = tensor.insert_slice %s into %q[%i, 0] [128, 64] [1, 1] : tensor<128x64xf32> into tensor<512x64xf32>
    scf.yield %p1, %q1 : tensor<512x64xf32>, tensor<512x64xf32>
  }
  %d = tensor.empty() : tensor<512x128xf32>
  %u = tensor.insert_slice %r#0 into %d[0, 0] [512, 64] [1, 1] : tensor<512x64xf32> into tensor<512x128xf32>
  %v = tensor.insert_slice %r#1 into %u[0, 64] [512, 64] [1, 1] : tensor<512x64xf32> into tensor<512x128xf32>
  "nkipy.layout"(%v) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 64>} : (tensor<512x128xf32>) -> ()
  return %v, %r#0 : tensor<512x128xf32>, tensor<512x64xf32>
}
