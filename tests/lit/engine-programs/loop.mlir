// nisa text 1
// RUN: nkx opt --allocate-memory --engine-programs --nisa-verify --print-nisa --remarks=%t %s | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// A loop that loads, computes on two engines and stores: every stream has its own loop, and waits that are sums of
// multiples of its counter.

!tile = memref<128x512xf32, #nisa.mem<sbuf>>
!hbm = memref<4096x512xf32, #nisa.mem<shared_hbm>>

module attributes {nisa.target = #nisa.target<trn2>} {

// The allocations come first, then the constants.
// CHECK-LABEL: func.func @streams
// CHECK-NEXT:    %hbm = nisa.alloc : memref<4096x512xf32
// CHECK-NEXT:    %[[A:.*]] = nisa.alloc alignment=64 at=[0, 0] copies=8
// CHECK-NEXT:    %[[B:.*]] = nisa.alloc at=[0, {{[0-9]+}}] copies=2
// CHECK-NEXT:    %[[C:.*]] = nisa.alloc at=[0, {{[0-9]+}}] copies=8
// CHECK-NEXT:    arith.constant
// The scalar engine waits for the load.  It fills a copy of %b after vector has read what it held two iterations ago.
// CHECK:         nisa.program vector {
// CHECK-NEXT:      scf.for %i =
// CHECK-NEXT:        %[[B1:.*]] = nisa.rotate %[[B]][%i]
// CHECK-NEXT:        %[[C1:.*]] = nisa.rotate %[[C]][%i]
// CHECK-NEXT:        nisa.wait scalar >= %i + 1
// CHECK-NEXT:        nisa.wait qGpsimdOut >= %i - 7
// CHECK-NEXT:        nisa.reciprocal(dst<128| 512>={{.*}} %[[C1]][d0, d1], src<128| 512>={{.*}} %[[B1]][d0, d1]) engine=vector signal
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    nisa.program scalar {
// CHECK-NEXT:      scf.for %i =
// CHECK-NEXT:        nisa.rotate %[[A]][%i]
// CHECK-NEXT:        nisa.rotate %[[B]][%i]
// CHECK-NEXT:        nisa.wait qSyncIn >= %i + 1
// CHECK-NEXT:        nisa.wait vector >= %i - 1
// CHECK-NEXT:        nisa.activation({{.*}}) engine=scalar signal
// The engine that stores has nothing else to do.  It waits for what it stores, and for nothing before it.
// CHECK:         nisa.program gpsimd {
// CHECK-NEXT:      scf.for %i =
// CHECK-NEXT:        nisa.wait vector >= %i + 1
// CHECK-NEXT:        nisa.dma_trigger qGpsimdOut
// CHECK:         nisa.program sync {
// CHECK-NEXT:      scf.for %i =
// CHECK-NEXT:        nisa.wait scalar >= %i - 7
// CHECK-NEXT:        nisa.dma_trigger qSyncIn
// The index arithmetic is where the index is needed.
// CHECK:         nisa.queue qSyncIn on sync {
// CHECK-NEXT:      scf.for %i =
// CHECK-NEXT:        %[[O:.*]] = arith.muli %i, %c128
// CHECK-NEXT:        %[[A1:.*]] = nisa.rotate %[[A]][%i]
// CHECK-NEXT:        nisa.dma_copy(dst<128| 512>={{.*}} %[[A1]][d0, d1], src<128| 512>={{.*}} %{{.*}}[%[[O]] + d0, d1]) engine=dma signal
// CHECK:         nisa.queue qGpsimdOut on gpsimd {
// CHECK:           nisa.dma_copy({{.*}}) engine=dma signal
// CHECK:         return %hbm
// REMARK-DAG: instructions, loops counted once: 1 vector, 1 scalar, 1 qSyncIn, 1 qGpsimdOut
// REMARK-DAG: 6 waits; {{[0-9]+}} dropped, because program order or other waits imply them
// REMARK-DAG: qSyncIn: loads, which never wait for a store, started by sync
// REMARK-DAG: qGpsimdOut: what engines computed; it computes nothing itself, started by gpsimd
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
    nisa.reciprocal(dst<128| 512>=!tile %c[d0, d1], src<128| 512>=!tile %b[d0, d1]) engine=vector
    nisa.dma_copy(dst<128| 512>=!hbm %r[%o + d0, d1], src<128| 512>=!tile %c[d0, d1]) engine=dma
    nisa.release %a : !tile
    nisa.release %b : !tile
    nisa.release %c : !tile
  }
  return %r : !hbm
}
// Two loops: the copies take turns through both, so that the first loads of an iteration of the outer loop do not wait for the last
// tiles of the one before, but for those of eight tiles ago.
// CHECK-LABEL: func.func @nest
// CHECK:         nisa.program vector {
// CHECK:             %[[AT:.*]] = arith.muli %i, %{{.*}}
// CHECK-NEXT:        %[[N:.*]] = arith.addi %[[AT]], %j
// CHECK-NEXT:        nisa.rotate %{{.*}}[%[[N]]]
// CHECK-NEXT:        nisa.wait qSyncIn >= %i*3 + %j + 1
// CHECK:         nisa.program sync {
// CHECK:             nisa.wait vector >= %i*3 + %j - 7
// CHECK-NEXT:        nisa.dma_trigger qSyncIn
func.func @nest(%x: !hbm) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %s = nisa.alloc : !tile
  scf.for %i = %c0 to %c32 step %c1 {
    scf.for %j = %c0 to %c3 step %c1 {
      %a = nisa.alloc : !tile
      nisa.dma_copy(dst<128| 512>=!tile %a[d0, d1], src<128| 512>=!hbm %x[d0, d1]) engine=dma
      nisa.reciprocal(dst<128| 512>=!tile %s[d0, d1], src<128| 512>=!tile %a[d0, d1]) engine=vector
      nisa.release %a : !tile
    }
  }
  nisa.release %s : !tile
  return
}
}
