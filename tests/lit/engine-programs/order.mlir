// nisa text 1
// RUN: nkx opt --engine-programs --nisa-verify --print-nisa %s | FileCheck %s
// Places that overlap, waits that move out of loops, accumulation groups, and barriers.

!tile = memref<128x128xf32, #nisa.mem<sbuf>>
!two = memref<128x2x128xf32, #nisa.mem<sbuf>>
!bank = memref<128x128xf32, #nisa.mem<psum>>
!one = memref<1x1xi1, #nisa.mem<sbuf>>
!hbm = memref<128x128xf32, #nisa.mem<shared_hbm>>

module attributes {nisa.target = #nisa.target<trn2>} {

// %b takes the bytes of %a: it is filled after the last reader of %a.  Nobody waits for the store.  GpSimd builds the descriptors of
// the second load while that waits.
// CHECK-LABEL: func.func @places
// CHECK:       nisa.program scalar {
// CHECK-NEXT:    nisa.dma_trigger qScalarIn
// CHECK-NEXT:    nisa.wait qScalarIn >= 1
// CHECK-NEXT:    nisa.activation({{.*}}) engine=scalar signal
// CHECK-NEXT:    nisa.wait qGpsimdIn >= 1
// CHECK-NEXT:    nisa.activation({{.*}}) engine=scalar signal
// CHECK-NEXT:  }
// CHECK:       nisa.program gpsimd {
// CHECK-NEXT:    nisa.wait scalar >= 1
// CHECK-NEXT:    nisa.dma_trigger qGpsimdIn
func.func @places(%x: !hbm) -> !hbm {
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %r = nisa.alloc : !hbm
  %s = nisa.alloc at=[0, 1024] : memref<128x128xf32, #nisa.mem<sbuf>>
  %a = nisa.alloc at=[0, 0] : memref<128x128xf32, #nisa.mem<sbuf>>
  nisa.dma_copy(dst<128| 128>=!tile %a[d0, d1], src<128| 128>=!hbm %x[d0, d1]) engine=dma
  nisa.activation(dst<128| 128>=!tile %s[d0, d1], src<128| 128>=!tile %a[d0, d1], bias=f32 %f0, scale=f32 %f1, op=exp) engine=scalar
  nisa.release %a : !tile
  %b = nisa.alloc at=[0, 0] : memref<128x128xf32, #nisa.mem<sbuf>>
  nisa.dma_copy(dst<128| 128>=!tile %b[d0, d1], src<128| 128>=!hbm %x[d0, d1]) engine=dma
  nisa.activation(dst<128| 128>=!tile %s[d0, d1], src<128| 128>=!tile %b[d0, d1], bias=f32 %f0, scale=f32 %f1, op=exp) engine=scalar
  nisa.release %b : !tile
  nisa.dma_copy(dst<128| 128>=!hbm %r[d0, d1], src<128| 128>=!tile %s[d0, d1]) engine=dma
  nisa.release %s : !tile
  return %r : !hbm
}

// The sum over %j waits for one part of %s at a time.  Each round of %i begins a group, though there is one place: the
// group of the next round begins after vector has read that of the last one.
// CHECK-LABEL: func.func @groups
// CHECK:       %[[P:.*]] = nisa.alloc at=[0, 0] copies=1 stride=0 : memref<128x128xf32, #nisa.mem<psum>>
// CHECK:       nisa.program tensor {
// CHECK-NEXT:    scf.for %i =
// CHECK-NEXT:      %[[Q:.*]] = nisa.rotate %[[P]][%i]
// CHECK-NEXT:      nisa.wait vector >= %i
// CHECK-NEXT:      scf.for %j =
// CHECK-NEXT:        nisa.wait qSyncIn >= %j + 1
// CHECK-NEXT:        nisa.matmul(dst<128| 128>={{.*}} %[[Q]][d0, d1],{{.*}}engine=tensor signal
// CHECK:       nisa.program vector {
// CHECK-NEXT:    scf.for %i =
// CHECK-NEXT:      nisa.rotate %[[P]][%i]
// CHECK-NEXT:      nisa.wait tensor >= %i*2 + 2
// CHECK-NEXT:      nisa.tensor_copy({{.*}}) engine=vector signal
// CHECK:       nisa.program gpsimd {
// CHECK-NEXT:    nisa.wait vector >= 4
// CHECK-NEXT:    nisa.dma_trigger qGpsimdOut
func.func @groups(%x: !hbm) -> !hbm {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %r = nisa.alloc : !hbm
  %s = nisa.alloc at=[0, 0] : memref<128x2x128xf32, #nisa.mem<sbuf>>
  %t = nisa.alloc at=[0, 1024] : memref<128x128xf32, #nisa.mem<sbuf>>
  scf.for %j = %c0 to %c2 step %c1 {
    nisa.dma_copy(dst<128| 128>=!two %s[d0, %j, d1], src<128| 128>=!hbm %x[d0, d1]) engine=dma
  }
  scf.for %i = %c0 to %c4 step %c1 {
    %p = nisa.alloc at=[0, 0] : memref<128x128xf32, #nisa.mem<psum>>
    scf.for %j = %c0 to %c2 step %c1 {
      nisa.matmul(dst<128| 128>=!bank %p[d0, d1], stationary<128| 128>=!two %s[d0, %j, d1], moving<128| 128>=!two %s[d0, %j, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    }
    nisa.tensor_copy(dst<128| 128>=!tile %t[d0, d1], src<128| 128>=!bank %p[d0, d1]) engine=vector
    nisa.release %p : !bank
  }
  nisa.dma_copy(dst<128| 128>=!hbm %r[d0, d1], src<128| 128>=!tile %t[d0, d1]) engine=dma
  nisa.release %s : !two
  nisa.release %t : !tile
  return %r : !hbm
}

// A cell that Sync writes: another engine loads it after that.
// CHECK-LABEL: func.func @cell
// CHECK:       nisa.program vector {
// CHECK:         nisa.wait sync >= 1
// CHECK-NEXT:    %[[V:.*]] = nisa.register_load({{.*}}) engine=vector : i32
// CHECK:         nisa.tensor_copy({{.*}}) engine=vector
// CHECK:       nisa.program sync {
// CHECK:         %[[V:.*]] = nisa.register_load({{.*}}) engine=sync : i32
// CHECK-NEXT:    %[[W:.*]] = arith.addi %[[V]], %{{.*}} : i32
// CHECK-NEXT:    nisa.register_store(dst<1| 1>={{.*}}, value=i32 %[[W]]) engine=sync signal
func.func @cell() {
  %c1 = arith.constant 1 : i32
  %n = nisa.alloc at=[0, 0] : memref<1x1xi32, #nisa.mem<sbuf>>
  %m = nisa.alloc at=[0, 64] : memref<1x1xi32, #nisa.mem<sbuf>>
  %a = nisa.alloc at=[0, 128] : memref<128x128xf32, #nisa.mem<sbuf>>
  %b = nisa.alloc at=[0, 640] : memref<128x128xf32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=memref<1x1xi32, #nisa.mem<sbuf>> %n[d0, d1], value=i32 %c1) engine=gpsimd
  %v = nisa.register_load(src<1| 1>=memref<1x1xi32, #nisa.mem<sbuf>> %n[d0, d1]) engine=sync : i32
  %w = arith.addi %v, %c1 : i32
  nisa.register_store(dst<1| 1>=memref<1x1xi32, #nisa.mem<sbuf>> %m[d0, d1], value=i32 %w) engine=sync
  %u = nisa.register_load(src<1| 1>=memref<1x1xi32, #nisa.mem<sbuf>> %m[d0, d1]) engine=sync : i32
  %i = arith.index_cast %u : i32 to index
  %f = arith.constant 0.0 : f32
  nisa.memset(dst<128| 128>=!tile %a[d0, d1], value=f32 %f) engine=gpsimd
  nisa.tensor_copy(dst<128| 4>=!tile %b[d0, d1], src<128| 4>=!tile %a[d0, %i + d1]) engine=vector
  nisa.release %n : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.release %m : memref<1x1xi32, #nisa.mem<sbuf>>
  nisa.release %a : !tile
  nisa.release %b : !tile
  return
}

// A branch on data: all streams load the register between two barriers, and meet again after it.
// CHECK-LABEL: func.func @branch
// CHECK:       nisa.program vector {
// CHECK-NEXT:    nisa.memset({{.*}}%[[F:[a-z0-9_]+]][d0, d1]{{.*}}) engine=vector
// CHECK-NEXT:    nisa.barrier
// CHECK-NEXT:    %[[V:.*]] = nisa.register_load(src<1| 1>={{.*}} %[[F]][d0, d1]) engine=vector : i1
// CHECK-NEXT:    nisa.barrier
// CHECK-NEXT:    scf.if %[[V]] {
// CHECK-NEXT:    }
// CHECK-NEXT:    nisa.barrier
// CHECK-NEXT:  }
// CHECK:       nisa.program sync {
// CHECK-NEXT:    nisa.barrier
// CHECK-NEXT:    %[[V:.*]] = nisa.register_load({{.*}}) engine=sync : i1
// CHECK-NEXT:    nisa.barrier
// CHECK-NEXT:    scf.if %[[V]] {
// CHECK-NEXT:      nisa.dma_trigger qSyncIn
// CHECK:       nisa.queue qSyncIn on sync {
// CHECK-NEXT:    nisa.barrier
// CHECK-NEXT:    %[[V:.*]] = nisa.register_load({{.*}}) engine=sync : i1
// CHECK-NEXT:    nisa.barrier
// CHECK-NEXT:    scf.if %[[V]] {
// CHECK-NEXT:      nisa.dma_copy({{.*}}) engine=dma
// CHECK-NEXT:    }
// CHECK-NEXT:    nisa.barrier
func.func @branch(%x: !hbm) {
  %yes = arith.constant true
  %f = nisa.alloc at=[0, 0] : memref<1x1xi1, #nisa.mem<sbuf>>
  %a = nisa.alloc at=[0, 64] : memref<128x128xf32, #nisa.mem<sbuf>>
  nisa.memset(dst<1| 1>=!one %f[d0, d1], value=i1 %yes) engine=vector
  %v = nisa.register_load(src<1| 1>=!one %f[d0, d1]) engine=sync : i1
  scf.if %v {
    nisa.dma_copy(dst<128| 128>=!tile %a[d0, d1], src<128| 128>=!hbm %x[d0, d1]) engine=dma
  }
  nisa.release %f : !one
  nisa.release %a : !tile
  return
}
}
