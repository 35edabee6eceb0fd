// nisa text 1
// RUN: nkx opt --coalesce-transfers --nisa-verify --print-nisa %s | FileCheck %s
// Loads come in the order of reading: the products of the first %n read all places of dimension 1, so the loads of the first
// place of dimension 2 come first.  The Tensor engine has worked before, or else the loads would stay apart (parts.mlir).

!b = memref<128x8x2x512xbf16, #nisa.mem<sbuf>>
!x = memref<1024x1024xbf16, #nisa.mem<shared_hbm>>

module attributes {nisa.target = #nisa.target<trn2>} {

// CHECK-LABEL: func.func @reordered
// CHECK:       scf.for %[[N:[^ ]*]] = %c0 to %c2 step %c1
// CHECK:         scf.for %[[K:[^ ]*]] =
// CHECK:           nisa.dma_copy(dst<128| 4, 512>={{.*}}[d0, %[[K]]*4 + d1, %[[N]], d2], src<128| 4, 512>={{.*}}
func.func @reordered(%x: !x, %y: memref<128x8x128xbf16, #nisa.mem<sbuf>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %b = nisa.alloc : memref<128x8x2x512xbf16, #nisa.mem<sbuf>>
  %p = nisa.alloc : memref<128x512xf32, #nisa.mem<psum>>
  nisa.matmul(dst<128| 128>=memref<128x512xf32, #nisa.mem<psum>> %p[d0, d1], stationary<128| 128>=memref<128x8x128xbf16, #nisa.mem<sbuf>> %y[d0, 0, d1], moving<128| 128>=memref<128x8x128xbf16, #nisa.mem<sbuf>> %y[d0, 0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
  scf.for %k = %c0 to %c8 step %c1 {
    scf.for %n = %c0 to %c2 step %c1 {
      %0 = arith.muli %k, %c128 : index
      %1 = arith.muli %n, %c512 : index
      nisa.dma_copy(dst<128| 512>=!b %b[d0, %k, %n, d1], src<128| 512>=!x %x[%0 + d0, %1 + d1]) engine=dma
    }
  }
  scf.for %n = %c0 to %c2 step %c1 {
    scf.for %k = %c0 to %c8 step %c1 {
      nisa.matmul(dst<128| 512>=memref<128x512xf32, #nisa.mem<psum>> %p[d0, d1], stationary<128| 128>=memref<128x8x128xbf16, #nisa.mem<sbuf>> %y[d0, %k, d1], moving<128| 512>=!b %b[d0, %k, %n, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    }
  }
  nisa.release %p : memref<128x512xf32, #nisa.mem<psum>>
  nisa.release %b : !b
  return
}

// Read in the order in which it is loaded, it stays.
// CHECK-LABEL: func.func @as_read
// CHECK:       nisa.dma_copy(dst<128| 2, 2, 512>=
func.func @as_read(%x: !x, %y: memref<128x8x128xbf16, #nisa.mem<sbuf>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %b = nisa.alloc : memref<128x8x2x512xbf16, #nisa.mem<sbuf>>
  %p = nisa.alloc : memref<128x2x512xf32, #nisa.mem<psum>>
  nisa.matmul(dst<128| 128>=memref<128x2x512xf32, #nisa.mem<psum>> %p[d0, 0, d1], stationary<128| 128>=memref<128x8x128xbf16, #nisa.mem<sbuf>> %y[d0, 0, d1], moving<128| 128>=memref<128x8x128xbf16, #nisa.mem<sbuf>> %y[d0, 0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
  scf.for %k = %c0 to %c8 step %c1 {
    scf.for %n = %c0 to %c2 step %c1 {
      %0 = arith.muli %k, %c128 : index
      %1 = arith.muli %n, %c512 : index
      nisa.dma_copy(dst<128| 512>=!b %b[d0, %k, %n, d1], src<128| 512>=!x %x[%0 + d0, %1 + d1]) engine=dma
    }
  }
  scf.for %k = %c0 to %c8 step %c1 {
    scf.for %n = %c0 to %c2 step %c1 {
      nisa.matmul(dst<128| 512>=memref<128x2x512xf32, #nisa.mem<psum>> %p[d0, %n, d1], stationary<128| 128>=memref<128x8x128xbf16, #nisa.mem<sbuf>> %y[d0, %k, d1], moving<128| 512>=!b %b[d0, %k, %n, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    }
  }
  nisa.release %p : memref<128x2x512xf32, #nisa.mem<psum>>
  nisa.release %b : !b
  return
}

// Runs of 512 bytes would cost what the order gains; parts of what one transfer loads have no order.
// CHECK-LABEL: func.func @short_runs
// CHECK-NOT:   src<128| 4, 256>
// CHECK:       return
func.func @short_runs(%x: !x, %y: memref<128x8x128xbf16, #nisa.mem<sbuf>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %b = nisa.alloc : memref<128x8x4x256xbf16, #nisa.mem<sbuf>>
  %p = nisa.alloc : memref<128x256xf32, #nisa.mem<psum>>
  nisa.matmul(dst<128| 128>=memref<128x256xf32, #nisa.mem<psum>> %p[d0, d1], stationary<128| 128>=memref<128x8x128xbf16, #nisa.mem<sbuf>> %y[d0, 0, d1], moving<128| 128>=memref<128x8x128xbf16, #nisa.mem<sbuf>> %y[d0, 0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
  scf.for %k = %c0 to %c8 step %c1 {
    scf.for %n = %c0 to %c4 step %c1 {
      %0 = arith.muli %k, %c128 : index
      %1 = arith.muli %n, %c256 : index
      nisa.dma_copy(dst<128| 256>=memref<128x8x4x256xbf16, #nisa.mem<sbuf>> %b[d0, %k, %n, d1], src<128| 256>=!x %x[%0 + d0, %1 + d1]) engine=dma
    }
  }
  scf.for %n = %c0 to %c4 step %c1 {
    scf.for %k = %c0 to %c8 step %c1 {
      nisa.matmul(dst<128| 256>=memref<128x256xf32, #nisa.mem<psum>> %p[d0, d1], stationary<128| 128>=memref<128x8x128xbf16, #nisa.mem<sbuf>> %y[d0, %k, d1], moving<128| 256>=memref<128x8x4x256xbf16, #nisa.mem<sbuf>> %b[d0, %k, %n, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    }
  }
  nisa.release %p : memref<128x256xf32, #nisa.mem<psum>>
  nisa.release %b : memref<128x8x4x256xbf16, #nisa.mem<sbuf>>
  return
}
}
