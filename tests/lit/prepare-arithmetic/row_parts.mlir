// Few long rows are cut, and the parts of all of them lie across the partitions together.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

#whole = affine_map<(d0, d1) -> (d0, d1)>
#numbers = affine_map<(d0, d1) -> (d0)>
#row = affine_map<(d0, d1) -> (d0, 0)>
#bias = affine_map<(d0, d1) -> (d1)>

// What the parts of a row have is turned, and each part combines what it has of its row.
// REMARK: 16 parts of 2000 elements of each of 8 rows lie across the partitions
// CHECK-LABEL: func.func @largest
// CHECK: %[[P:.*]] = linalg.generic {{.*}}"reduction"]} ins(%{{.*}} : tensor<128x2000xf32>) outs(%{{.*}} : tensor<128x1xf32>)
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<128x1xf32>) outs(%{{.*}} : tensor<128x128xf32>)
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[W]] : tensor<128x128xf32>)
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[T]] : tensor<128x128xi1>, tensor<128x128xf32>)
// CHECK: %[[M:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[S]] : tensor<128x128xf32>) outs(%{{.*}} : tensor<128x1xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[M]] : tensor<128x2000xf32>, tensor<128x1xf32>)
func.func @largest(%x: tensor<8x32000xf32>) -> tensor<8x32000xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<8xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#whole, #numbers], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x32000xf32>) outs(%i : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.maximumf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %f = tensor.empty() : tensor<8x32000xf32>
  %y = linalg.generic {indexing_maps = [#whole, #numbers, #whole], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<8x32000xf32>, tensor<8xf32>) outs(%f : tensor<8x32000xf32>) {
  ^bb0(%in: f32, %max: f32, %out: f32):
    %0 = arith.subf %in, %max : f32
    linalg.yield %0 : f32
  } -> tensor<8x32000xf32>
  return %y : tensor<8x32000xf32>
}

// A prime length: each part of a row computes with the tail of the row, too.  The sum starts from its own number once.
// REMARK: 32 parts of 625 elements of each of 4 rows lie across the partitions; 11 more of each row are computed beside them
// CHECK-LABEL: func.func @tail
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}} : tensor<128x625xf32>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}} : tensor<128x128xf32>)
// CHECK: linalg.fill ins(%[[ONE]] : f32)
// CHECK: linalg.broadcast ins(%{{.*}} : tensor<4x11xf32>) outs(%{{.*}} : tensor<4x32x11xf32>) dimensions = [1]
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}} : tensor<128x11xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<128x1xf32>, tensor<128x1xf32>)
func.func @tail(%x: tensor<4x20011xf32>) -> tensor<4xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %i = linalg.fill ins(%one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#whole, #numbers], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x20011xf32>) outs(%i : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// Something else than the return reads the rows.
// CHECK-LABEL: func.func @read_elsewhere
// CHECK-NOT: tensor<128x128xi1>
// CHECK: linalg.matmul
func.func @read_elsewhere(%x: tensor<8x32000xf32>, %w: tensor<32000x64xf32>) -> (tensor<8xf32>, tensor<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %f = tensor.empty() : tensor<8x32000xf32>
  %y = linalg.exp ins(%x : tensor<8x32000xf32>) outs(%f : tensor<8x32000xf32>) -> tensor<8x32000xf32>
  %s = linalg.generic {indexing_maps = [#whole, #numbers], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<8x32000xf32>) outs(%i : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %out, %in : f32
    linalg.yield %0 : f32
  } -> tensor<8xf32>
  %g = tensor.empty() : tensor<8x64xf32>
  %j = linalg.fill ins(%zero : f32) outs(%g : tensor<8x64xf32>) -> tensor<8x64xf32>
  %p = linalg.matmul ins(%y, %w : tensor<8x32000xf32>, tensor<32000x64xf32>) outs(%j : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %s, %p : tensor<8xf32>, tensor<8x64xf32>
}
