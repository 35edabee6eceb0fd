// nisa text 1
// RUN: nkx opt --allocate-memory --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// Buffers of loops have as many copies as let engines work side by side.

!tile = memref<128x512xf32, #nisa.mem<sbuf>>
!bank = memref<128x512xf32, #nisa.mem<psum>>
!square = memref<128x128xf32, #nisa.mem<sbuf>>
!one = memref<1x1xi1, #nisa.mem<sbuf>>
!hbm = memref<4096x512xf32, #nisa.mem<shared_hbm>>
!row = memref<128x512xf32, #nisa.mem<hbm>>

module attributes {nisa.target = #nisa.target<trn2>} {

// A result has no place.  In SBUF nothing is reused, because there is room.
// CHECK-LABEL: func.func @streams
// CHECK:         nisa.alloc : memref<4096x512xf32, #nisa.mem<shared_hbm>>
// CHECK:         nisa.alloc alignment=64 at=[0, 0] copies=8 stride=2048
// CHECK:         nisa.alloc at=[0, 32768] :
// CHECK:         nisa.alloc at=[0, 16384] copies=8 stride=2048
// REMARK-DAG:  8 copies of 2048 bytes: filled by dma, read by scalar
// REMARK-DAG:  1 copy of 2048 bytes: only the scalar engine uses it, in order
// REMARK-DAG:  8 copies of 2048 bytes: filled by scalar, read by dma
// REMARK-DAG:  uses 34816 of 212984 bytes of every SBUF partition, 0 of 8 banks of PSUM, 0 bytes of HBM between its steps
func.func @streams(%x: !hbm) -> !hbm {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %r = nisa.alloc : !hbm
  scf.for %i = %c0 to %c32 step %c1 {
    %o = arith.muli %i, %c128 : index
    %a = nisa.alloc alignment=64 : !tile
    nisa.dma_copy(dst<128| 512>=!tile %a[d0, d1], src<128| 512>=!hbm %x[%o + d0, d1]) engine=dma
    %b = nisa.alloc : !tile
    nisa.activation(dst<128| 512>=!tile %b[d0, d1], src<128| 512>=!tile %a[d0, d1], bias=f32 %f0, scale=f32 %f1, op=exp) engine=scalar
    %c = nisa.alloc : !tile
    nisa.activation(dst<128| 512>=!tile %c[d0, d1], src<128| 512>=!tile %b[d0, d1], bias=f32 %f0, scale=f32 %f1, op=tanh) engine=scalar
    nisa.dma_copy(dst<128| 512>=!hbm %r[%o + d0, d1], src<128| 512>=!tile %c[d0, d1]) engine=dma
    nisa.release %a : !tile
    nisa.release %b : !tile
    nisa.release %c : !tile
  }
  return %r : !hbm
}

// Not more copies than the loop has iterations.  HBM of a loop has copies, too.
// CHECK-LABEL: func.func @sums
// CHECK:         nisa.alloc at=[0] copies=2 stride=262144 : memref<128x512xf32, #nisa.mem<hbm>>
// CHECK:         nisa.alloc at=[0, 0] copies=2 stride=2048 : memref<128x512xf32, #nisa.mem<sbuf>>
// CHECK:         nisa.alloc at=[0, 0] copies=2 stride=2048 : memref<128x512xf32, #nisa.mem<psum>>
// REMARK-DAG:  2 copies of 2048 bytes: its loop runs 2 times
func.func @sums(%x: !hbm) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %c2 step %c1 {
    %h = nisa.alloc : !row
    nisa.dma_copy(dst<128| 512>=!row %h[d0, d1], src<128| 512>=!hbm %x[d0, d1]) engine=dma
    %a = nisa.alloc : !tile
    nisa.dma_copy(dst<128| 512>=!tile %a[d0, d1], src<128| 512>=!row %h[d0, d1]) engine=dma
    %p = nisa.alloc : !bank
    nisa.matmul(dst<128| 512>=!bank %p[d0, d1], stationary<128| 128>=!tile %a[d0, d1], moving<128| 512>=!tile %a[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.tensor_copy(dst<128| 512>=!tile %a[d0, d1], src<128| 512>=!bank %p[d0, d1]) engine=vector
    nisa.release %p : !bank
    nisa.dma_copy(dst<128| 512>=!hbm %x[d0, d1], src<128| 512>=!tile %a[d0, d1]) engine=dma
    nisa.release %a : !tile
  }
  return
}

// Tiles of PSUM have four copies: the signals take as long as a product.
// CHECK-LABEL: func.func @products
// CHECK:         nisa.alloc at=[0, 0] copies=4 stride=2048 : memref<128x128xf32, #nisa.mem<psum>>
// REMARK-DAG:  4 copies of 2048 bytes: filled by tensor, read by vector
func.func @products(%a: !square, %b: !square) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %p = nisa.alloc : memref<128x128xf32, #nisa.mem<psum>>
    nisa.matmul(dst<128| 128>=memref<128x128xf32, #nisa.mem<psum>> %p[d0, d1], stationary<128| 128>=!square %a[d0, d1], moving<128| 128>=!square %a[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    nisa.tensor_copy(dst<128| 128>=!square %b[d0, d1], src<128| 128>=memref<128x128xf32, #nisa.mem<psum>> %p[d0, d1]) engine=vector
    nisa.release %p : memref<128x128xf32, #nisa.mem<psum>>
  }
  return
}

// The iterations count through the loops around: two times three are six.
// CHECK-LABEL: func.func @nest
// CHECK:         nisa.alloc at=[0, 0] copies=6 stride=2048 : memref<128x512xf32, #nisa.mem<sbuf>>
// REMARK-DAG:  6 copies of 2048 bytes: its loop runs 6 times
func.func @nest(%x: !hbm) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %a = nisa.alloc : !tile
      nisa.dma_copy(dst<128| 512>=!tile %a[d0, d1], src<128| 512>=!hbm %x[d0, d1]) engine=dma
      nisa.reciprocal(dst<128| 512>=!tile %a[d0, d1], src<128| 512>=!tile %a[d0, d1]) engine=vector
      nisa.release %a : !tile
    }
  }
  return
}

// What data decide is decided before the next iteration begins.
// CHECK-LABEL: func.func @decided
// CHECK:         scf.for
// CHECK:         nisa.alloc at=[0, {{[0-9]+}}] : memref<128x512xf32
// REMARK-DAG:  1 copy of 2048 bytes: data decide what its loop runs, so that each iteration waits for the last one
func.func @decided(%x: !hbm) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %f0 = arith.constant 0.0 : f32
  %s = nisa.alloc : !one
  nisa.memset(dst<1| 1>=!one %s[d0, d1], value=f32 %f0) engine=vector
  scf.for %i = %c0 to %c8 step %c1 {
    %a = nisa.alloc : !tile
    %go = nisa.register_load(src<1| 1>=!one %s[d0, d1]) engine=sync : i1
    scf.if %go {
      nisa.dma_copy(dst<128| 512>=!tile %a[d0, d1], src<128| 512>=!hbm %x[d0, d1]) engine=dma
      nisa.memset(dst<128| 512>=!tile %a[d0, d1], value=f32 %f0) engine=vector
      nisa.dma_copy(dst<128| 512>=!hbm %x[d0, d1], src<128| 512>=!tile %a[d0, d1]) engine=dma
    }
    nisa.release %a : !tile
  }
  nisa.release %s : !one
  return
}
}
