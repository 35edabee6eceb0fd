// nisa text 1
// RUN: nkx opt --engine-programs --nisa-verify --print-nisa %s | FileCheck %s
// The first rounds of a loop of loads wait for nothing; loads of what an earlier loop stored are started by Sync.

!tile = memref<128x128xf32, #nisa.mem<sbuf>>
!rows = memref<8x128x128xf32, #nisa.mem<shared_hbm>>
!kept = memref<8x128x128xf32, #nisa.mem<hbm>>

module attributes {nisa.target = #nisa.target<trn2>} {

// Two copies: round i of the second loop waits for the reader of round i - 2, and rounds 0 and 1 for nothing, though the first
// loop has readers before.  The first loop needs no second copy of its trigger: its first two counts are not above 0.
// CHECK-LABEL: func.func @first_rounds
// CHECK:       nisa.program sync {
// CHECK-NEXT:    scf.for %[[I:.*]] = %c0 to %c8
// CHECK-NEXT:      nisa.wait scalar >= %[[I]] - 1
// CHECK-NEXT:      nisa.dma_trigger qSyncIn
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[TWO:.*]] = arith.constant 2 : index
// CHECK-NEXT:    scf.for %{{.*}} = %c0 to %[[TWO]]
// CHECK-NEXT:      nisa.dma_trigger qSyncIn
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.for %[[J:.*]] = %[[TWO]] to %c8
// CHECK-NEXT:      nisa.wait scalar >= %[[J]] + 7
// CHECK-NEXT:      nisa.dma_trigger qSyncIn
func.func @first_rounds(%x: !rows, %y: !rows) {
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %s = nisa.alloc at=[0, 4096] : memref<128x128xf32, #nisa.mem<sbuf>>
  scf.for %i = %c0 to %c8 step %c1 {
    %a = nisa.alloc at=[0, 0] copies=2 stride=512 : memref<128x128xf32, #nisa.mem<sbuf>>
    nisa.dma_copy(dst<128| 128>=!tile %a[d0, d1], src<128| 128>=!rows %x[%i, d0, d1]) engine=dma
    nisa.activation(dst<128| 128>=!tile %s[d0, d1], src<128| 128>=!tile %a[d0, d1], bias=f32 %f0, scale=f32 %f1, op=exp) engine=scalar
    nisa.release %a : !tile
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %b = nisa.alloc at=[0, 1024] copies=2 stride=512 : memref<128x128xf32, #nisa.mem<sbuf>>
    nisa.dma_copy(dst<128| 128>=!tile %b[d0, d1], src<128| 128>=!rows %y[%i, d0, d1]) engine=dma
    nisa.activation(dst<128| 128>=!tile %s[d0, d1], src<128| 128>=!tile %b[d0, d1], bias=f32 %f0, scale=f32 %f1, op=exp) engine=scalar
    nisa.release %b : !tile
  }
  nisa.release %s : !tile
  return
}

// The second loop loads what the first one stored, and stores: its loads are in a queue of Sync's, so that the store of one
// round does not hold up the load of the next.  The load of %y, which waits for nothing, goes before them.
// CHECK-LABEL: func.func @loads_beside_stores
// CHECK:       nisa.program sync {
// CHECK:         nisa.dma_trigger qSyncIn
// CHECK:         nisa.dma_trigger qSyncIn
// CHECK:         nisa.dma_trigger qSyncBack
// CHECK:       nisa.queue qSyncBack on sync {
// CHECK-NEXT:    scf.for
// CHECK:           nisa.dma_copy({{.*}}src{{.*}} %hbm
func.func @loads_beside_stores(%x: !rows, %y: !rows) -> (!rows, !rows) {
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = nisa.alloc : !rows
  %u = nisa.alloc : !rows
  %k = nisa.alloc at=[0] : memref<8x128x128xf32, #nisa.mem<hbm>>
  scf.for %i = %c0 to %c8 step %c1 {
    %a = nisa.alloc at=[0, 0] copies=8 stride=512 : memref<128x128xf32, #nisa.mem<sbuf>>
    nisa.dma_copy(dst<128| 128>=!tile %a[d0, d1], src<128| 128>=!rows %x[%i, d0, d1]) engine=dma
    %b = nisa.alloc at=[0, 4096] copies=8 stride=512 : memref<128x128xf32, #nisa.mem<sbuf>>
    nisa.activation(dst<128| 128>=!tile %b[d0, d1], src<128| 128>=!tile %a[d0, d1], bias=f32 %f0, scale=f32 %f1, op=exp) engine=scalar
    nisa.release %a : !tile
    nisa.dma_copy(dst<128| 128>=!kept %k[%i, d0, d1], src<128| 128>=!tile %b[d0, d1]) engine=dma
    nisa.release %b : !tile
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %a = nisa.alloc at=[0, 8192] copies=8 stride=512 : memref<128x128xf32, #nisa.mem<sbuf>>
    nisa.dma_copy(dst<128| 128>=!tile %a[d0, d1], src<128| 128>=!kept %k[%i, d1, d0]) engine=dma
    %b = nisa.alloc at=[0, 12288] copies=8 stride=512 : memref<128x128xf32, #nisa.mem<sbuf>>
    nisa.activation(dst<128| 128>=!tile %b[d0, d1], src<128| 128>=!tile %a[d0, d1], bias=f32 %f0, scale=f32 %f1, op=exp) engine=scalar
    nisa.release %a : !tile
    nisa.dma_copy(dst<128| 128>=!rows %r[%i, d0, d1], src<128| 128>=!tile %b[d0, d1]) engine=dma
    nisa.release %b : !tile
  }
  %c = nisa.alloc at=[0, 16384] : memref<128x128xf32, #nisa.mem<sbuf>>
  nisa.dma_copy(dst<128| 128>=!tile %c[d0, d1], src<128| 128>=!rows %y[0, d0, d1]) engine=dma
  nisa.dma_copy(dst<128| 128>=!rows %u[0, d0, d1], src<128| 128>=!tile %c[d0, d1]) engine=dma
  nisa.release %c : !tile
  return %r, %u : !rows, !rows
}

// What a scatter has stored is loaded by the queue of the stores: only plain transfers have loads in a queue of Sync's.
// CHECK-LABEL: func.func @load_of_a_scatter
// CHECK-NOT:   qSyncBack
// CHECK:       nisa.dma_scatter
// CHECK-NOT:   qSyncBack
// CHECK:       return
func.func @load_of_a_scatter(%x: !rows, %y: memref<128x1xi32, #nisa.mem<shared_hbm>>) -> !rows {
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = nisa.alloc : !rows
  %k = nisa.alloc at=[0] : memref<1024x128xf32, #nisa.mem<hbm>>
  %n = nisa.alloc at=[0, 0] : memref<128x1xi32, #nisa.mem<sbuf>>
  %t = nisa.alloc at=[0, 512] : memref<128x128xf32, #nisa.mem<sbuf>>
  nisa.dma_copy(dst<128| 1>=memref<128x1xi32, #nisa.mem<sbuf>> %n[d0, d1], src<128| 1>=memref<128x1xi32, #nisa.mem<shared_hbm>> %y[d0, d1]) engine=dma
  nisa.dma_copy(dst<128| 128>=!tile %t[d0, d1], src<128| 128>=!rows %x[0, d0, d1]) engine=dma
  nisa.dma_scatter(dst<128| 128>=memref<1024x128xf32, #nisa.mem<hbm>> %k[0, d1], src<128| 128>=!tile %t[d0, d1], dst_index<128| 1>=memref<128x1xi32, #nisa.mem<sbuf>> %n[d0, d1], dst_index_dim=0, dst_indirect_max_index=1024) engine=dma
  nisa.release %n : memref<128x1xi32, #nisa.mem<sbuf>>
  nisa.release %t : !tile
  scf.for %i = %c0 to %c8 step %c1 {
    %a = nisa.alloc at=[0, 8192] copies=8 stride=512 : memref<128x128xf32, #nisa.mem<sbuf>>
    nisa.dma_copy(dst<128| 128>=!tile %a[d0, d1], src<128| 128>=memref<1024x128xf32, #nisa.mem<hbm>> %k[%i*128 + d0, d1]) engine=dma
    %b = nisa.alloc at=[0, 12288] copies=8 stride=512 : memref<128x128xf32, #nisa.mem<sbuf>>
    nisa.activation(dst<128| 128>=!tile %b[d0, d1], src<128| 128>=!tile %a[d0, d1], bias=f32 %f0, scale=f32 %f1, op=exp) engine=scalar
    nisa.release %a : !tile
    nisa.dma_copy(dst<128| 128>=!rows %r[%i, d0, d1], src<128| 128>=!tile %b[d0, d1]) engine=dma
    nisa.release %b : !tile
  }
  return %r : !rows
}
}
