// nisa text 1
// What programs of two cores may not be: tests/lit/nisa-text/cores.mlir has right ones.
// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s
module attributes {nisa.target = #nisa.target<trn2>} {
  func.func @address() {
    // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}its place is not the address that it asks for
    %s = nisa.alloc address=[0, 64] at=[0, 128] : memref<128x64xf32, #nisa.mem<sbuf>>
    nisa.release %s : memref<128x64xf32, #nisa.mem<sbuf>>
    return
  }
  func.func @none() {
    // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}nisa.core_barrier: only a program of two cores has it
    nisa.core_barrier
    return
  }
  func.func @entry(%a: memref<128x64xf32, #nisa.mem<shared_hbm>>) {
    // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}both cores use it, but only shared_hbm is common to them
    %h = nisa.alloc : memref<128x64xf32, #nisa.mem<hbm>>
    // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}nisa.dma_copy: it stands outside of the cores
    nisa.dma_copy(dst<128| 64>=memref<128x64xf32, #nisa.mem<hbm>> %h[d0, d1], src<128| 64>=memref<128x64xf32, #nisa.mem<shared_hbm>> %a[d0, d1]) engine=dma
    nisa.core 0 {
      // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}it is in shared_hbm, which is allocated before the cores
      %s = nisa.alloc : memref<128x64xf32, #nisa.mem<shared_hbm>>
    }
    nisa.core 1 {
    }
    return
  }
  func.func @order() {
    // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}it is core 1; the cores of a function are 0 and 1, in this order
    nisa.core 1 {
    }
    // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}it is core 0; the cores of a function are 0 and 1, in this order
    nisa.core 0 {
    }
    return
  }
  func.func @alone() {
    // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}there is no other core
    nisa.core 0 {
    }
    return
  }
  func.func @barriers(%flag: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    nisa.core 0 {
      scf.for %i = %c0 to %c4 step %c1 {
        // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}the barriers of the two cores differ
        nisa.core_barrier
      }
    }
    nisa.core 1 {
      nisa.core_barrier
    }
    return
  }
  func.func @branch(%flag: i1) {
    nisa.core 0 {
      // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}the cores meet in it, but it depends on data
      scf.if %flag {
        nisa.core_barrier
      }
    }
    nisa.core 1 {
      // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}the cores meet in it, but it depends on data
      scf.if %flag {
        nisa.core_barrier
      }
    }
    return
  }
  func.func @sizes() {
    nisa.core 0 {
      %s = nisa.alloc : memref<128x64xf32, #nisa.mem<sbuf>>
      // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}the exchanges of the two cores differ
      nisa.sendrecv(dst<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1], src<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0 + 64, d1]) engine=dma
      nisa.release %s : memref<128x64xf32, #nisa.mem<sbuf>>
    }
    nisa.core 1 {
      %s = nisa.alloc : memref<128x64xf32, #nisa.mem<sbuf>>
      nisa.sendrecv(dst<64| 32>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1], src<64| 32>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0 + 64, d1]) engine=dma
      nisa.release %s : memref<128x64xf32, #nisa.mem<sbuf>>
    }
    return
  }
  func.func @queues(%a: memref<128x64xf32, #nisa.mem<shared_hbm>>) {
    nisa.core 0 {
      %s = nisa.alloc : memref<128x64xf32, #nisa.mem<sbuf>>
      nisa.program sync {
        nisa.dma_trigger qPeer
        nisa.dma_trigger qPeer
      }
      nisa.queue qPeer on sync {
        // CHECK: cores.mlir:[[#@LINE+1]]:{{.*}}it stands in the queue that exchanges data with the other core
        nisa.dma_copy(dst<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1], src<128| 64>=memref<128x64xf32, #nisa.mem<shared_hbm>> %a[d0, d1]) engine=dma
        nisa.sendrecv(dst<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1], src<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0 + 64, d1]) engine=dma
      }
    }
    nisa.core 1 {
      %s = nisa.alloc : memref<128x64xf32, #nisa.mem<sbuf>>
      nisa.program sync {
        nisa.dma_trigger qPeer
      }
      nisa.queue qPeer on sync {
        nisa.sendrecv(dst<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1], src<64| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0 + 64, d1]) engine=dma
      }
    }
    return
  }
}
