// nisa text 1
// Engine programs: what is read is printed, and reads back.
// RUN: nkx opt --print-nisa %s > %t.nisa
// RUN: FileCheck %s < %t.nisa
// RUN: nkx opt %s > %t.mlir
// RUN: FileCheck --check-prefix=GENERIC %s < %t.mlir
// RUN: nkx opt %t.nisa | diff %t.mlir -
// RUN: nkx opt --print-nisa %t.nisa | diff %t.nisa -
// RUN: nkx opt --print-nisa %t.mlir | diff %t.nisa -
module attributes {nisa.target = #nisa.target<trn2>} {
  func.func @k(%a: memref<2x128x64xf32, #nisa.mem<shared_hbm>>) -> memref<2x128x64xf32, #nisa.mem<shared_hbm>> {
    %r = nisa.alloc : memref<2x128x64xf32, #nisa.mem<shared_hbm>>
    %in = "nisa.alloc"() {copies = 2 : i64} : () -> memref<128x64xf32, #nisa.mem<sbuf>>
    %out = "nisa.alloc"() {copies = 2 : i64} : () -> memref<128x64xf32, #nisa.mem<sbuf>>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    // CHECK:      nisa.program vector {
    // CHECK-NEXT:   scf.for %i = %c0 to %c2 step %c1 {
    // CHECK-NEXT:     nisa.wait qSyncIn >= %i + 1
    // CHECK-NEXT:     nisa.wait qGpsimdOut >= %i - 1
    // CHECK-NEXT:     %[[IN:.*]] = nisa.rotate %[[INS:.*]][%i] : memref<128x64xf32, #nisa.mem<sbuf>>
    // CHECK-NEXT:     %[[OUT:.*]] = nisa.rotate %[[OUTS:.*]][%i] : memref<128x64xf32, #nisa.mem<sbuf>>
    // CHECK-NEXT:     nisa.reciprocal(dst<128| 64>={{.*}} %[[OUT]][d0, d1], src<128| 64>={{.*}} %[[IN]][d0, d1]) engine=vector signal
    // CHECK-NEXT:   }
    // CHECK-NEXT: }
    // GENERIC:      scf.execute_region {
    // GENERIC-NEXT:   scf.for
    // GENERIC-NEXT:     "nisa.wait"(%[[I:.*]]) {count = #[[ONE:.*]], semaphore = "qSyncIn"} : (index) -> ()
    // GENERIC:          "nisa.rotate"(%{{.*}}, %[[I]]) : (memref<128x64xf32, #nisa.mem<"sbuf">>, index) -> memref<128x64xf32, #nisa.mem<"sbuf">>
    // GENERIC:          "nisa.reciprocal"{{.*}} engine = "vector", {{.*}} signal,
    // GENERIC:        scf.yield
    // GENERIC-NEXT: } {nisa.stream = "vector"}
    nisa.program vector {
      scf.for %i = %c0 to %c2 step %c1 {
        nisa.wait qSyncIn >= %i + 1
        nisa.wait qGpsimdOut >= %i - 1 // a comment, which ends at the line
        %s = nisa.rotate %in[%i] : memref<128x64xf32, #nisa.mem<sbuf>>
        %d = nisa.rotate %out [ %i ] : memref<128x64xf32, #nisa.mem<sbuf>>
        nisa.reciprocal(dst<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %d[d0, d1], src<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1]) engine=vector signal
      }
    }
    // CHECK-NEXT: nisa.program gpsimd {
    // CHECK-NEXT:   scf.for %i = %c0 to %c2 step %c1 {
    // CHECK-NEXT:     nisa.wait vector >= %i + 1
    // CHECK-NEXT:     nisa.dma_trigger qGpsimdOut
    // CHECK-NEXT:   }
    // CHECK-NEXT: }
    nisa.program gpsimd { scf.for %i = %c0 to %c2 step %c1 {
        nisa.wait vector >= 1 + %i*1
        nisa.dma_trigger qGpsimdOut
    } }
    // Several indices, none, and a count that is no sum.
    // CHECK-NEXT: nisa.program sync {
    // CHECK-NEXT:   nisa.dma_trigger qSyncIn
    // CHECK-NEXT:   nisa.dma_trigger qSyncIn
    // CHECK-NEXT:   scf.for %i = %c0 to %c2 step %c1 {
    // CHECK-NEXT:     scf.for %j = %c0 to %c2 step %c1 {
    // CHECK-NEXT:       nisa.wait vector >= %i*3 - %j*2 - 4
    // CHECK-NEXT:       nisa.wait vector >= 0
    // CHECK-NEXT:       nisa.wait vector >= -7
    // CHECK-NEXT:       nisa.wait vector >= affine_map<()[s0] -> (s0 floordiv 2)>[%i]
    // CHECK-NEXT:       nisa.barrier
    nisa.program sync {
      nisa.dma_trigger qSyncIn nisa.dma_trigger qSyncIn
      scf.for %i = %c0 to %c2 step %c1 {
        scf.for %j = %c0 to %c2 step %c1 {
          nisa.wait vector >= 3 * %i - %j*2 - 4
          nisa.wait vector >= 0
          nisa.wait vector >= -7
          nisa.wait vector >= affine_map<()[s0] -> (s0 floordiv 2)>[%i]
          nisa.barrier
        }
      }
    }
    // CHECK:      nisa.queue qGpsimdOut on gpsimd {
    // CHECK-NEXT:   scf.for %i = %c0 to %c2 step %c1 {
    // CHECK-NEXT:     %[[OUT:.*]] = nisa.rotate %[[OUTS]][%i]
    // CHECK-NEXT:     nisa.dma_copy({{.*}}) engine=dma signal
    // CHECK-NEXT:   }
    // CHECK-NEXT: }
    // GENERIC: {nisa.on = "gpsimd", nisa.stream = "qGpsimdOut"}
    nisa.queue qGpsimdOut on gpsimd {
      scf.for %i = %c0 to %c2 step %c1 {
        %d = nisa.rotate %out[%i] : memref<128x64xf32, #nisa.mem<sbuf>>
        nisa.dma_copy(dst<128| 64>=memref<2x128x64xf32, #nisa.mem<shared_hbm>> %r[%i, d0, d1], src<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %d[d0, d1]) engine=dma signal
      }
    }
    // CHECK-NEXT: nisa.queue qSyncIn on sync {
    // CHECK-NEXT: }
    nisa.queue qSyncIn on sync {
    }
    // What the form cannot express stays as MLIR prints it.
    // CHECK-NEXT: scf.execute_region {
    // CHECK-NEXT:   scf.yield
    // CHECK-NEXT: } {nisa.stream = "two words"}
    // CHECK-NEXT: scf.execute_region {
    // CHECK-NEXT:   "nisa.wait"() {count = affine_map<()[s0] -> (s0)>, semaphore = "vector"} : () -> ()
    // CHECK-NEXT:   "nisa.barrier"() {why = 1 : i64} : () -> ()
    // CHECK-NEXT:   "nisa.dma_trigger"() {queue = "not a word"} : () -> ()
    // CHECK-NEXT:   scf.yield
    // CHECK-NEXT: } {nisa.stream = "scalar", other}
    scf.execute_region {
      scf.yield
    } {nisa.stream = "two words"}
    scf.execute_region {
      "nisa.wait"() {count = affine_map<()[s0] -> (s0)>, semaphore = "vector"} : () -> ()
      "nisa.barrier"() {why = 1 : i64} : () -> ()
      "nisa.dma_trigger"() {queue = "not a word"} : () -> ()
      scf.yield
    } {nisa.stream = "scalar", other}
    return %r : memref<2x128x64xf32, #nisa.mem<shared_hbm>>
  }
}
