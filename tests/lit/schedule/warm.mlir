// nisa text 1
// RUN: nkx opt --schedule=parts=0 --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: sed -e 's/target<trn2>/target<trn1>/' %s | nkx opt --schedule=parts=0 --nisa-verify --print-nisa - | FileCheck %s --check-prefix=CONSTANT
// Products of zeros bring the Tensor engine to its full clock while the first loads are on their way.

!x = memref<128x512xf32, #nisa.mem<shared_hbm>>
!s = memref<128x512xf32, #nisa.mem<sbuf>>
!p = memref<128x512xf32, #nisa.mem<psum>>

module attributes {nisa.target = #nisa.target<trn2>} {

// The zeros are an eighth of what the products read: their columns are read four times.
// CHECK-LABEL: func.func @products
// CHECK:         %[[ZEROS:.*]] = nisa.alloc alignment=64 : memref<128x128xf32, #nisa.mem<sbuf>>
// CHECK:         %[[SUMS:.*]] = nisa.alloc alignment=64 : memref<128x400xf32, #nisa.mem<psum>>
// CHECK:         nisa.memset(dst{{.*}} %[[ZEROS]][d0, d1], value=f32 {{.*}}) engine=vector
// CHECK-COUNT-2: nisa.matmul(dst{{.*}} %[[SUMS]][d0, d1], stationary{{.*}} %[[ZEROS]][d0, d1], moving<128| 4, 100>={{.*}} %[[ZEROS]][d0, d2],
// CHECK-DAG:     nisa.release %[[SUMS]]
// CHECK-DAG:     nisa.release %[[ZEROS]]
// CHECK:         nisa.dma_copy
// REMARK:      2 products of zeros with 400 columns while the first loads are on their way: the program takes {{[0-9.]+}} us instead of {{[0-9.]+}}
// REMARK:      "rule":"warm-clock"
// CONSTANT-LABEL: func.func @products
// CONSTANT-NOT:   nisa.memset
func.func @products(%a: !x, %b: !x) -> !x {
  %c0 = arith.constant 0 : index
  %y = nisa.alloc : !x
  %ta = nisa.alloc : !s
  nisa.dma_copy(dst<128| 512>=!s %ta[d0, d1], src<128| 512>=!x %a[d0, d1]) engine=dma
  %tb = nisa.alloc : !s
  nisa.dma_copy(dst<128| 512>=!s %tb[d0, d1], src<128| 512>=!x %b[d0, d1]) engine=dma
  %p = nisa.alloc : !p
  nisa.matmul(dst<128| 512>=!p %p[d0, d1], stationary<128| 128>=!s %ta[d0, d1], moving<128| 512>=!s %tb[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
  nisa.matmul(dst<128| 512>=!p %p[d0, d1], stationary<128| 128>=!s %ta[d0, d1 + 128], moving<128| 512>=!s %tb[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
  nisa.matmul(dst<128| 512>=!p %p[d0, d1], stationary<128| 128>=!s %ta[d0, d1 + 256], moving<128| 512>=!s %tb[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
  %r = nisa.alloc : !s
  nisa.tensor_copy(dst<128| 512>=!s %r[d0, d1], src<128| 512>=!p %p[d0, d1]) engine=vector
  nisa.dma_copy(dst<128| 512>=!x %y[d0, d1], src<128| 512>=!s %r[d0, d1]) engine=dma
  nisa.release %ta : !s
  nisa.release %tb : !s
  nisa.release %p : !p
  nisa.release %r : !s
  return %y : !x
}
}
