// A long chain of insertions is written into one buffer, as a short one is.  A value of the chain that something else reads
// ends it.
// RUN: nkx opt --one-shot-bufferize %s | FileCheck %s
func.func @long(%x: tensor<4xf32>) -> tensor<25x4xf32> {
  %cst = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<25x4xf32>
  %t0 = linalg.fill ins(%cst : f32) outs(%e : tensor<25x4xf32>) -> tensor<25x4xf32>
  %t1 = tensor.insert_slice %x into %t0[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t2 = tensor.insert_slice %x into %t1[1, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t3 = tensor.insert_slice %x into %t2[2, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t4 = tensor.insert_slice %x into %t3[3, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t5 = tensor.insert_slice %x into %t4[4, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t6 = tensor.insert_slice %x into %t5[5, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t7 = tensor.insert_slice %x into %t6[6, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t8 = tensor.insert_slice %x into %t7[7, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t9 = tensor.insert_slice %x into %t8[8, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t10 = tensor.insert_slice %x into %t9[9, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t11 = tensor.insert_slice %x into %t10[10, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t12 = tensor.insert_slice %x into %t11[11, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t13 = tensor.insert_slice %x into %t12[12, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t14 = tensor.insert_slice %x into %t13[13, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t15 = tensor.insert_slice %x into %t14[14, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t16 = tensor.insert_slice %x into %t15[15, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t17 = tensor.insert_slice %x into %t16[16, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t18 = tensor.insert_slice %x into %t17[17, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t19 = tensor.insert_slice %x into %t18[18, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t20 = tensor.insert_slice %x into %t19[19, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t21 = tensor.insert_slice %x into %t20[20, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t22 = tensor.insert_slice %x into %t21[21, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t23 = tensor.insert_slice %x into %t22[22, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t24 = tensor.insert_slice %x into %t23[23, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  return %t24 : tensor<25x4xf32>
}
// CHECK-LABEL: @long
// CHECK:         %[[M:.*]] = memref.alloc
// CHECK-NOT:     memref.alloc
// CHECK:         linalg.fill {{.*}} outs(%[[M]]
// CHECK-NEXT:    %[[A:.*]] = memref.subview %[[M]][0, 0] [1, 4] [1, 1] : memref<25x4xf32> to memref<4xf32, strided<[1]>>
// CHECK-NEXT:    memref.copy %arg0, %[[A]]
// CHECK-NEXT:    %[[B:.*]] = memref.subview %[[M]][1, 0]
// CHECK-NEXT:    memref.copy %arg0, %[[B]]
// CHECK:         %[[Z:.*]] = memref.subview %[[M]][23, 0] [1, 4] [1, 1] : memref<25x4xf32> to memref<4xf32, strided<[1], offset: 92>>
// CHECK-NEXT:    memref.copy %arg0, %[[Z]]
// CHECK:         return %[[M]]

func.func @read(%x: tensor<4xf32>) -> (tensor<25x4xf32>, tensor<25x4xf32>) {
  %e = tensor.empty() : tensor<25x4xf32>
  %t0 = tensor.insert_slice %x into %e[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t1 = tensor.insert_slice %x into %t0[1, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t2 = tensor.insert_slice %x into %t1[2, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t3 = tensor.insert_slice %x into %t2[3, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t4 = tensor.insert_slice %x into %t3[4, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t5 = tensor.insert_slice %x into %t4[5, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t6 = tensor.insert_slice %x into %t5[6, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t7 = tensor.insert_slice %x into %t6[7, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t8 = tensor.insert_slice %x into %t7[8, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t9 = tensor.insert_slice %x into %t8[9, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t10 = tensor.insert_slice %x into %t9[10, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t11 = tensor.insert_slice %x into %t10[11, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t12 = tensor.insert_slice %x into %t11[12, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t13 = tensor.insert_slice %x into %t12[13, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t14 = tensor.insert_slice %x into %t13[14, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t15 = tensor.insert_slice %x into %t14[15, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t16 = tensor.insert_slice %x into %t15[16, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t17 = tensor.insert_slice %x into %t16[17, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t18 = tensor.insert_slice %x into %t17[18, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t19 = tensor.insert_slice %x into %t18[19, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t20 = tensor.insert_slice %x into %t19[20, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t21 = tensor.insert_slice %x into %t20[21, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t22 = tensor.insert_slice %x into %t21[22, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t23 = tensor.insert_slice %x into %t22[23, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  %t24 = tensor.insert_slice %x into %t23[24, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<25x4xf32>
  return %t23, %t24 : tensor<25x4xf32>, tensor<25x4xf32>
}
// CHECK-LABEL: @read
// CHECK-COUNT-24: memref.copy %arg0
// CHECK:         %[[NEW:.*]] = memref.alloc
// CHECK:         memref.copy %{{.*}}, %[[NEW]]
// CHECK:         return %{{.*}}, %[[NEW]]
