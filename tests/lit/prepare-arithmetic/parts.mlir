// What is computed of a value joined of equal parts is computed part by part, and joined then.
// RUN: nkx opt --prepare-arithmetic %s --remarks=%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// REMARK: each of 2 parts of 64 elements of a row is computed by itself, and joined then
// CHECK-LABEL: func.func @rotated
// CHECK:     %[[NEG:.*]] = linalg.negf
// CHECK:     %[[S0:.*]] = tensor.extract_slice %arg1[0, 0] [512, 64]
// CHECK:     %[[P:.*]] = linalg.mul ins(%[[NEG]], %[[S0]]
// CHECK:     %[[S1:.*]] = tensor.extract_slice %arg1[0, 64] [512, 64]
// CHECK:     %[[Q:.*]] = linalg.mul ins(%{{.*}}, %[[S1]]
// CHECK:     %[[E0:.*]] = linalg.exp ins(%{{.*}} : tensor<512x64xf32>)
// CHECK:     %[[Y0:.*]] = linalg.add ins(%[[E0]], %[[P]]
// CHECK:     %[[E1:.*]] = linalg.exp ins(%{{.*}} : tensor<512x64xf32>)
// CHECK:     %[[Y1:.*]] = linalg.add ins(%[[E1]], %[[Q]]
// CHECK:     tensor.insert_slice %[[Y0]] into %{{.*}}[0, 0] [512, 64]
// CHECK:     tensor.insert_slice %[[Y1]] into %{{.*}}[0, 64] [512, 64]
// CHECK-NOT: tensor<512x128xf32>, tensor<512x128xf32>
// CHECK:     return
func.func @rotated(%x: tensor<512x128xf32>, %s: tensor<512x128xf32>) -> tensor<512x128xf32> {
  %b = tensor.extract_slice %x[0, 64] [512, 64] [1, 1] : tensor<512x128xf32> to tensor<512x64xf32>
  %h = tensor.empty() : tensor<512x64xf32>
  %n = linalg.negf ins(%b : tensor<512x64xf32>) outs(%h : tensor<512x64xf32>) -> tensor<512x64xf32>
  %a = tensor.extract_slice %x[0, 0] [512, 64] [1, 1] : tensor<512x128xf32> to tensor<512x64xf32>
  %e = tensor.empty() : tensor<512x128xf32>
  %i = tensor.insert_slice %n into %e[0, 0] [512, 64] [1, 1] : tensor<512x64xf32> into tensor<512x128xf32>
  %j = tensor.insert_slice %a into %i[0, 64] [512, 64] [1, 1] : tensor<512x64xf32> into tensor<512x128xf32>
  %m = linalg.mul ins(%j, %s : tensor<512x128xf32>, tensor<512x128xf32>) outs(%e : tensor<512x128xf32>) -> tensor<512x128xf32>
  %c = linalg.exp ins(%x : tensor<512x128xf32>) outs(%e : tensor<512x128xf32>) -> tensor<512x128xf32>
  %y = linalg.add ins(%c, %m : tensor<512x128xf32>, tensor<512x128xf32>) outs(%e : tensor<512x128xf32>) -> tensor<512x128xf32>
  return %y : tensor<512x128xf32>
}

// Parts that differ, a joined value that is read twice, and another operand that is read elsewhere stay as they are.
// CHECK-LABEL: func.func @stay
// CHECK: linalg.exp ins(%{{.*}} : tensor<256x192xf32>)
// CHECK: linalg.mul ins(%[[TWICE:.*]], %[[TWICE]] : tensor<256x128xf32>, tensor<256x128xf32>)
// CHECK: linalg.add ins(%{{.*}}, %{{.*}} : tensor<256x128xf32>, tensor<256x128xf32>)
func.func @stay(%a: tensor<256x64xf32>, %b: tensor<256x128xf32>)
    -> (tensor<256x192xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>) {
  %e = tensor.empty() : tensor<256x192xf32>
  %i = tensor.insert_slice %a into %e[0, 0] [256, 64] [1, 1] : tensor<256x64xf32> into tensor<256x192xf32>
  %j = tensor.insert_slice %b into %i[0, 64] [256, 128] [1, 1] : tensor<256x128xf32> into tensor<256x192xf32>
  %x = linalg.exp ins(%j : tensor<256x192xf32>) outs(%e : tensor<256x192xf32>) -> tensor<256x192xf32>
  %f = tensor.empty() : tensor<256x128xf32>
  %k = tensor.insert_slice %a into %f[0, 0] [256, 64] [1, 1] : tensor<256x64xf32> into tensor<256x128xf32>
  %l = tensor.insert_slice %a into %k[0, 64] [256, 64] [1, 1] : tensor<256x64xf32> into tensor<256x128xf32>
  %y = linalg.mul ins(%l, %l : tensor<256x128xf32>, tensor<256x128xf32>) outs(%f : tensor<256x128xf32>) -> tensor<256x128xf32>
  %m = tensor.insert_slice %a into %f[0, 64] [256, 64] [1, 1] : tensor<256x64xf32> into tensor<256x128xf32>
  %n = tensor.insert_slice %a into %m[0, 0] [256, 64] [1, 1] : tensor<256x64xf32> into tensor<256x128xf32>
  %p = linalg.sqrt ins(%b : tensor<256x128xf32>) outs(%f : tensor<256x128xf32>) -> tensor<256x128xf32>
  %z = linalg.add ins(%n, %p : tensor<256x128xf32>, tensor<256x128xf32>) outs(%f : tensor<256x128xf32>) -> tensor<256x128xf32>
  return %x, %y, %z, %p : tensor<256x192xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>
}
