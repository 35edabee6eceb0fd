// nisa text 1
// RUN: nkx opt --coalesce-transfers --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// Transposes fill a bank of PSUM before one instruction reads it.

!rows = memref<128x2048xf32, #nisa.mem<sbuf>>
!blocks = memref<128x16x128xf32, #nisa.mem<sbuf>>
!odds = memref<128x4x4x44xf32, #nisa.mem<sbuf>>
!square = memref<128x128xf32, #nisa.mem<sbuf>>
!small = memref<44x44xf32, #nisa.mem<sbuf>>
!tail = memref<44x512xf32, #nisa.mem<sbuf>>
!psum = memref<128x128xf32, #nisa.mem<psum>>
!psum44 = memref<128x44xf32, #nisa.mem<psum>>

module attributes {nisa.target = #nisa.target<trn2>} {

// Sixteen rounds are four banks.
// CHECK-LABEL: func.func @four_banks
// CHECK:       scf.for %i = %{{[a-z0-9_]+}} to %c4
// CHECK:         %psum = nisa.alloc alignment=64 : memref<128x4x128xf32, #nisa.mem<psum>>
// CHECK:         scf.for %j = %{{[a-z0-9_]+}} to %c4
// CHECK:           nisa.matmul(dst<128| 128>={{.*}} %psum[d0, %j, d1], stationary<128| 128>={{.*}} is_transpose=true
// CHECK:         }
// CHECK-NEXT:    nisa.tensor_scalar_arith(dst<128| 4, 128>={{.*}} %arg1[d0, %i*4 + d1, d2], src<128| 4, 128>={{.*}} %psum[d0, d1, d2], operand0=f32
// CHECK-NEXT:    nisa.release %psum
// CHECK-NEXT:  }
// REMARK:      4 transposes fill a bank of PSUM before one instruction reads it; the loop around it stays
func.func @four_banks(%x: !rows, %y: !blocks, %e: !square) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %one = arith.constant 1.0 : f32
  scf.for %i = %c0 to %c16 step %c1 {
    %at = arith.muli %i, %c128 : index
    %t = nisa.alloc alignment=64 : !psum
    nisa.matmul(dst<128| 128>=!psum %t[d0, d1], stationary<128| 128>=!rows %x[d0, %at + d1], moving<128| 128>=!square %e[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=true, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.tensor_scalar_arith(dst<128| 128>=!blocks %y[d0, %i, d1], src<128| 128>=!psum %t[d0, d1], operand0=f32 %one, op0=add, reverse_operands=none) engine=vector
    nisa.release %t : !psum
  }
  return
}

// Results of 44 elements lie 64 apart, so that none crosses the border of a bank.  The loop around this one fills four banks.
// CHECK-LABEL: func.func @padded
// CHECK:       nisa.alloc alignment=64 : memref<128x4x64xf32, #nisa.mem<psum>>
// CHECK:       nisa.tensor_copy(dst<128| 4, 44>={{.*}} %arg1[d0, %i, d1, d2], src<128| 4, 44>={{.*}} %psum[d0, d1, d2]) engine=vector
func.func @padded(%x: !tail, %y: !odds, %e: !small) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  scf.for %o = %c0 to %c4 step %c1 {
  scf.for %i = %c0 to %c4 step %c1 {
    %at = arith.muli %i, %c128 : index
    %t = nisa.alloc alignment=64 : !psum44
    nisa.matmul(dst<128| 44>=!psum44 %t[d0, d1], stationary<44| 128>=!tail %x[d0, %at + d1], moving<44| 44>=!small %e[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=true, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.tensor_copy(dst<128| 44>=!odds %y[d0, %o, %i, d1], src<128| 44>=!psum44 %t[d0, d1]) engine=vector
    nisa.release %t : !psum44
  }
  }
  return
}

// These loops stay: products that are no transposes, a result in the buffer that is transposed, a place that is the same in all
// rounds, and one bank, which nothing fills again while it is read.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-4: nisa.alloc alignment=64 : memref<128x128xf32, #nisa.mem<psum>>
// CHECK:       return
func.func @stay(%x: !rows, %y: !blocks, %e: !square) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %at = arith.muli %i, %c128 : index
    %t = nisa.alloc alignment=64 : !psum
    nisa.matmul(dst<128| 128>=!psum %t[d0, d1], stationary<128| 128>=!rows %x[d0, %at + d1], moving<128| 128>=!square %e[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.tensor_copy(dst<128| 128>=!blocks %y[d0, %i, d1], src<128| 128>=!psum %t[d0, d1]) engine=vector
    nisa.release %t : !psum
  }
  scf.for %i = %c0 to %c16 step %c1 {
    %at = arith.muli %i, %c128 : index
    %t = nisa.alloc alignment=64 : !psum
    nisa.matmul(dst<128| 128>=!psum %t[d0, d1], stationary<128| 128>=!rows %x[d0, %at + d1], moving<128| 128>=!square %e[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=true, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.tensor_copy(dst<128| 128>=!rows %x[d0, %at + d1], src<128| 128>=!psum %t[d0, d1]) engine=vector
    nisa.release %t : !psum
  }
  scf.for %i = %c0 to %c16 step %c1 {
    %at = arith.muli %i, %c128 : index
    %t = nisa.alloc alignment=64 : !psum
    nisa.matmul(dst<128| 128>=!psum %t[d0, d1], stationary<128| 128>=!rows %x[d0, %at + d1], moving<128| 128>=!square %e[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=true, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.tensor_copy(dst<128| 128>=!blocks %y[d0, 0, d1], src<128| 128>=!psum %t[d0, d1]) engine=vector
    nisa.release %t : !psum
  }
  scf.for %i = %c0 to %c4 step %c1 {
    %at = arith.muli %i, %c128 : index
    %t = nisa.alloc alignment=64 : !psum
    nisa.matmul(dst<128| 128>=!psum %t[d0, d1], stationary<128| 128>=!rows %x[d0, %at + d1], moving<128| 128>=!square %e[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=true, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.tensor_copy(dst<128| 128>=!blocks %y[d0, %i, d1], src<128| 128>=!psum %t[d0, d1]) engine=vector
    nisa.release %t : !psum
  }
  return
}
}
