// nisa text 1
// RUN: nkx opt --engine-programs --nisa-verify --print-nisa %s | FileCheck %s
// The index of a transfer is the sum of twenty registers, which are more than an instruction has operands.  Its queue loads each
// after the instruction that writes it.

!cell = memref<1x1xi32, #nisa.mem<sbuf>>
!tile = memref<128x128xf32, #nisa.mem<sbuf>>
!hbm = memref<128x4096xf32, #nisa.mem<shared_hbm>>
module attributes {nisa.target = #nisa.target<trn2>} {
// CHECK-LABEL: func.func @indices
// CHECK:         nisa.queue
// CHECK:         nisa.wait gpsimd >= 2
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 3
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 4
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 5
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 6
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 7
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 8
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 9
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 10
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 11
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 12
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 13
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 14
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 15
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 16
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 17
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 18
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 19
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait gpsimd >= 20
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.wait vector >= 1
// CHECK-NEXT:    nisa.register_load
// CHECK:         nisa.dma_copy
func.func @indices(%x: !hbm) {
  %c1 = arith.constant 1 : i32
  %f = arith.constant 0.0 : f32
  %a = nisa.alloc at=[0, 4096] : memref<128x128xf32, #nisa.mem<sbuf>>
  nisa.memset(dst<128| 128>=!tile %a[d0, d1], value=f32 %f) engine=gpsimd
  %n0 = nisa.alloc at=[0, 0] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n0[d0, d1], value=i32 %c1) engine=gpsimd
  %n1 = nisa.alloc at=[0, 64] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n1[d0, d1], value=i32 %c1) engine=gpsimd
  %n2 = nisa.alloc at=[0, 128] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n2[d0, d1], value=i32 %c1) engine=gpsimd
  %n3 = nisa.alloc at=[0, 192] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n3[d0, d1], value=i32 %c1) engine=gpsimd
  %n4 = nisa.alloc at=[0, 256] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n4[d0, d1], value=i32 %c1) engine=gpsimd
  %n5 = nisa.alloc at=[0, 320] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n5[d0, d1], value=i32 %c1) engine=gpsimd
  %n6 = nisa.alloc at=[0, 384] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n6[d0, d1], value=i32 %c1) engine=gpsimd
  %n7 = nisa.alloc at=[0, 448] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n7[d0, d1], value=i32 %c1) engine=gpsimd
  %n8 = nisa.alloc at=[0, 512] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n8[d0, d1], value=i32 %c1) engine=gpsimd
  %n9 = nisa.alloc at=[0, 576] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n9[d0, d1], value=i32 %c1) engine=gpsimd
  %n10 = nisa.alloc at=[0, 640] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n10[d0, d1], value=i32 %c1) engine=gpsimd
  %n11 = nisa.alloc at=[0, 704] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n11[d0, d1], value=i32 %c1) engine=gpsimd
  %n12 = nisa.alloc at=[0, 768] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n12[d0, d1], value=i32 %c1) engine=gpsimd
  %n13 = nisa.alloc at=[0, 832] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n13[d0, d1], value=i32 %c1) engine=gpsimd
  %n14 = nisa.alloc at=[0, 896] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n14[d0, d1], value=i32 %c1) engine=gpsimd
  %n15 = nisa.alloc at=[0, 960] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n15[d0, d1], value=i32 %c1) engine=gpsimd
  %n16 = nisa.alloc at=[0, 1024] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n16[d0, d1], value=i32 %c1) engine=gpsimd
  %n17 = nisa.alloc at=[0, 1088] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n17[d0, d1], value=i32 %c1) engine=gpsimd
  %n18 = nisa.alloc at=[0, 1152] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n18[d0, d1], value=i32 %c1) engine=gpsimd
  %n19 = nisa.alloc at=[0, 1216] : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!cell %n19[d0, d1], value=i32 %c1) engine=vector
  %v0 = nisa.register_load(src<1| 1>=!cell %n0[d0, d1]) engine=sync : i32
  %s0 = arith.addi %c1, %v0 : i32
  %v1 = nisa.register_load(src<1| 1>=!cell %n1[d0, d1]) engine=sync : i32
  %s1 = arith.addi %s0, %v1 : i32
  %v2 = nisa.register_load(src<1| 1>=!cell %n2[d0, d1]) engine=sync : i32
  %s2 = arith.addi %s1, %v2 : i32
  %v3 = nisa.register_load(src<1| 1>=!cell %n3[d0, d1]) engine=sync : i32
  %s3 = arith.addi %s2, %v3 : i32
  %v4 = nisa.register_load(src<1| 1>=!cell %n4[d0, d1]) engine=sync : i32
  %s4 = arith.addi %s3, %v4 : i32
  %v5 = nisa.register_load(src<1| 1>=!cell %n5[d0, d1]) engine=sync : i32
  %s5 = arith.addi %s4, %v5 : i32
  %v6 = nisa.register_load(src<1| 1>=!cell %n6[d0, d1]) engine=sync : i32
  %s6 = arith.addi %s5, %v6 : i32
  %v7 = nisa.register_load(src<1| 1>=!cell %n7[d0, d1]) engine=sync : i32
  %s7 = arith.addi %s6, %v7 : i32
  %v8 = nisa.register_load(src<1| 1>=!cell %n8[d0, d1]) engine=sync : i32
  %s8 = arith.addi %s7, %v8 : i32
  %v9 = nisa.register_load(src<1| 1>=!cell %n9[d0, d1]) engine=sync : i32
  %s9 = arith.addi %s8, %v9 : i32
  %v10 = nisa.register_load(src<1| 1>=!cell %n10[d0, d1]) engine=sync : i32
  %s10 = arith.addi %s9, %v10 : i32
  %v11 = nisa.register_load(src<1| 1>=!cell %n11[d0, d1]) engine=sync : i32
  %s11 = arith.addi %s10, %v11 : i32
  %v12 = nisa.register_load(src<1| 1>=!cell %n12[d0, d1]) engine=sync : i32
  %s12 = arith.addi %s11, %v12 : i32
  %v13 = nisa.register_load(src<1| 1>=!cell %n13[d0, d1]) engine=sync : i32
  %s13 = arith.addi %s12, %v13 : i32
  %v14 = nisa.register_load(src<1| 1>=!cell %n14[d0, d1]) engine=sync : i32
  %s14 = arith.addi %s13, %v14 : i32
  %v15 = nisa.register_load(src<1| 1>=!cell %n15[d0, d1]) engine=sync : i32
  %s15 = arith.addi %s14, %v15 : i32
  %v16 = nisa.register_load(src<1| 1>=!cell %n16[d0, d1]) engine=sync : i32
  %s16 = arith.addi %s15, %v16 : i32
  %v17 = nisa.register_load(src<1| 1>=!cell %n17[d0, d1]) engine=sync : i32
  %s17 = arith.addi %s16, %v17 : i32
  %v18 = nisa.register_load(src<1| 1>=!cell %n18[d0, d1]) engine=sync : i32
  %s18 = arith.addi %s17, %v18 : i32
  %v19 = nisa.register_load(src<1| 1>=!cell %n19[d0, d1]) engine=sync : i32
  %s19 = arith.addi %s18, %v19 : i32
  %i = arith.index_cast %s19 : i32 to index
  nisa.dma_copy(dst<128| 4>=!hbm %x[d0, %i + d1], src<128| 4>=!tile %a[d0, d1]) engine=dma
  nisa.release %n0 : !cell
  nisa.release %n1 : !cell
  nisa.release %n2 : !cell
  nisa.release %n3 : !cell
  nisa.release %n4 : !cell
  nisa.release %n5 : !cell
  nisa.release %n6 : !cell
  nisa.release %n7 : !cell
  nisa.release %n8 : !cell
  nisa.release %n9 : !cell
  nisa.release %n10 : !cell
  nisa.release %n11 : !cell
  nisa.release %n12 : !cell
  nisa.release %n13 : !cell
  nisa.release %n14 : !cell
  nisa.release %n15 : !cell
  nisa.release %n16 : !cell
  nisa.release %n17 : !cell
  nisa.release %n18 : !cell
  nisa.release %n19 : !cell
  nisa.release %a : memref<128x128xf32, #nisa.mem<sbuf>>
  return
}
}
