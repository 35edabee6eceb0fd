// nisa text 1
// Two cores, as one sequence each and with engine programs, and allocations that ask for an address.
// RUN: nkx opt --nisa-verify --print-nisa %s > %t.nisa
// RUN: FileCheck %s < %t.nisa
// Reading it back gives the same operations; so does printing them again.
// RUN: nkx opt %s > %t.mlir
// RUN: nkx opt %t.nisa | diff %t.mlir -
// RUN: nkx opt --print-nisa %t.nisa | diff %t.nisa -
module attributes {nisa.target = #nisa.target<trn2>} {
  // CHECK-LABEL: @sequences
  func.func @sequences(%a: memref<256x64xf32, #nisa.mem<shared_hbm>>) -> memref<256x64xf32, #nisa.mem<shared_hbm>> {
    %r = nisa.alloc : memref<256x64xf32, #nisa.mem<shared_hbm>>
    // CHECK: nisa.core 0 {
    nisa.core 0 {
      // CHECK-NEXT: nisa.alloc address=[0, 4096] : memref<128x64xf32
      %s = nisa.alloc address=[0, 4096] : memref<128x64xf32, #nisa.mem<sbuf>>
      // CHECK-NEXT: nisa.alloc address=[3, 0] : memref<128x64xf32, #nisa.mem<psum>>
      %p = nisa.alloc address=[3, 0] : memref<128x64xf32, #nisa.mem<psum>>
      nisa.dma_copy(dst<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1], src<128| 64>=memref<256x64xf32, #nisa.mem<shared_hbm>> %a[d0, d1]) engine=dma
      // CHECK: nisa.sendrecv(dst<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %sbuf[d0, d1], src<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %sbuf[d0 + 64, d1]) engine=dma
      nisa.sendrecv(dst<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1], src<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0 + 64, d1]) engine=dma
      // CHECK-NEXT: nisa.core_barrier
      nisa.core_barrier
      nisa.dma_copy(dst<128| 64>=memref<256x64xf32, #nisa.mem<shared_hbm>> %r[d0, d1], src<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1]) engine=dma
      nisa.release %p : memref<128x64xf32, #nisa.mem<psum>>
      nisa.release %s : memref<128x64xf32, #nisa.mem<sbuf>>
    // CHECK: {{^}}    }
    // CHECK-NEXT: nisa.core 1 {
    }
    nisa.core 1 {
      %s = nisa.alloc : memref<128x64xf32, #nisa.mem<sbuf>>
      nisa.dma_copy(dst<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1], src<128| 64>=memref<256x64xf32, #nisa.mem<shared_hbm>> %a[d0 + 128, d1]) engine=dma
      nisa.sendrecv(dst<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0 + 64, d1], src<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1]) engine=dma
      nisa.core_barrier
      nisa.dma_copy(dst<128| 64>=memref<256x64xf32, #nisa.mem<shared_hbm>> %r[d0 + 128, d1], src<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1]) engine=dma
      nisa.release %s : memref<128x64xf32, #nisa.mem<sbuf>>
    }
    return %r : memref<256x64xf32, #nisa.mem<shared_hbm>>
  }
  // CHECK-LABEL: @programs
  func.func @programs(%a: memref<128x64xf32, #nisa.mem<shared_hbm>>) -> memref<128x64xf32, #nisa.mem<shared_hbm>> {
    %r = nisa.alloc : memref<128x64xf32, #nisa.mem<shared_hbm>>
    // CHECK: nisa.core 0 {
    nisa.core 0 {
      // CHECK-NEXT: nisa.alloc address=[0, 0] at=[0, 0]
      %s = nisa.alloc address=[0, 0] at=[0, 0] : memref<128x64xf32, #nisa.mem<sbuf>>
      // CHECK-NEXT: nisa.program sync {
      nisa.program sync {
        nisa.dma_trigger qSyncIn
        // CHECK: nisa.core_barrier
        nisa.core_barrier
      }
      // CHECK: nisa.queue qSyncIn on sync {
      nisa.queue qSyncIn on sync {
        nisa.dma_copy(dst<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1], src<128| 64>=memref<128x64xf32, #nisa.mem<shared_hbm>> %a[d0, d1]) engine=dma signal
        nisa.core_barrier
      // CHECK: {{^}}      }
      // CHECK-NEXT: {{^}}    }
      }
    }
    nisa.core 1 {
      nisa.program sync {
        nisa.core_barrier
        nisa.dma_trigger qSyncIn
      }
      nisa.queue qSyncIn on sync {
        nisa.core_barrier
        nisa.dma_copy(dst<128| 64>=memref<128x64xf32, #nisa.mem<shared_hbm>> %r[d0, d1], src<128| 64>=memref<128x64xf32, #nisa.mem<shared_hbm>> %a[d0, d1]) engine=dma signal
      }
    }
    return %r : memref<128x64xf32, #nisa.mem<shared_hbm>>
  }
}
