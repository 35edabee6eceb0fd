// nisa text 1
// What engine programs may be: streams, waits, triggers, copies, and barriers that are the same everywhere.
// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s
module attributes {nisa.target = #nisa.target<trn2>} {
  // A right one first: it is not mentioned.
  func.func @good(%a: memref<2x128x64xf32, #nisa.mem<shared_hbm>>) -> memref<2x128x64xf32, #nisa.mem<shared_hbm>> {
    %r = nisa.alloc : memref<2x128x64xf32, #nisa.mem<shared_hbm>>
    %s = "nisa.alloc"() {copies = 2 : i64} : () -> memref<128x64xf32, #nisa.mem<sbuf>>
    %p = "nisa.alloc"() {copies = 1 : i64} : () -> memref<128x64xf32, #nisa.mem<psum>>
    %f = nisa.alloc : memref<1x1xi32, #nisa.mem<sbuf>>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    nisa.program tensor {
      scf.for %i = %c0 to %c2 step %c1 {
        nisa.barrier
        %t = nisa.rotate %s[%i] : memref<128x64xf32, #nisa.mem<sbuf>>
        %q = nisa.rotate %p[%i] : memref<128x64xf32, #nisa.mem<psum>>
        %reg = nisa.register_load(src<1| 1>=memref<1x1xi32, #nisa.mem<sbuf>> %f[d0, d1]) engine=tensor : i32
      }
    }
    nisa.program sync {
      scf.for %i = %c0 to %c2 step %c1 {
        nisa.barrier
        nisa.wait qSyncIn >= %i
        nisa.dma_trigger qSyncIn
      }
    }
    nisa.queue qSyncIn on sync {
      scf.for %i = %c0 to %c2 step %c1 {
        nisa.barrier
        %t = nisa.rotate %s[%i] : memref<128x64xf32, #nisa.mem<sbuf>>
        %reg = nisa.register_load(src<1| 1>=memref<1x1xi32, #nisa.mem<sbuf>> %f[d0, d1]) engine=sync : i32
        nisa.dma_copy(dst<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %t[d0, d1], src<128| 64>=memref<2x128x64xf32, #nisa.mem<shared_hbm>> %a[%i, d0, d1]) engine=dma signal
      }
    }
    return %r : memref<2x128x64xf32, #nisa.mem<shared_hbm>>
  }
  func.func @bad(%m: memref<128x64xf32, #nisa.mem<sbuf>>, %i: index, %one: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %s = nisa.alloc : memref<128x64xf32, #nisa.mem<sbuf>>
    // CHECK-DAG: nisa.barrier: it stands outside the streams
    nisa.barrier
    // CHECK-DAG: nisa.memset: only streams have semaphores to raise
    // CHECK-DAG: nisa.memset: it stands outside the streams
    nisa.memset(dst<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %m[d0, d1], value=f32 %one) engine=vector signal
    // CHECK-DAG: scf.for: it stands outside the streams
    // CHECK-DAG: scf.execute_region: a stream stands directly in a function
    scf.for %j = %c0 to %c1 step %c1 {
      nisa.program tensor {
      }
    }
    nisa.program vector {
      // CHECK-DAG: nisa.memset: it stands in the program of vector, but runs on the gpsimd engine
      nisa.memset(dst<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %m[d0, d1], value=f32 %one) engine=gpsimd
      // CHECK-DAG: nisa.dma_copy: it stands in the program of vector, but runs on the dma engine
      nisa.dma_copy(dst<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %m[d0, d1], src<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %s[d0, d1]) engine=dma
      // CHECK-DAG: nisa.wait: no stream has the semaphore qNone
      nisa.wait qNone >= 1
      // CHECK-DAG: nisa.wait: its count is no sum of multiples of indices and a constant
      nisa.wait scalar >= affine_map<()[s0] -> (s0 floordiv 2)>[%i]
      // CHECK-DAG: nisa.wait: its count is no affine map with one result, and one symbol for each index
      "nisa.wait"() {semaphore = "scalar", count = affine_map<()[s0] -> (s0)>} : () -> ()
      // CHECK-DAG: nisa.dma_trigger: there is no queue scalar
      nisa.dma_trigger scalar
      // CHECK-DAG: nisa.dma_trigger: the transfers of qIn are started by scalar
      nisa.dma_trigger qIn
      // CHECK-DAG: nisa.rotate: it selects a copy of what is no allocation
      %t = nisa.rotate %m[%i] : memref<128x64xf32, #nisa.mem<sbuf>>
      // CHECK-DAG: nisa.alloc: engine programs have their allocations before the streams, and release nothing
      %u = nisa.alloc : memref<128x64xf32, #nisa.mem<hbm>>
    }
    nisa.queue qIn on scalar {
      // CHECK-DAG: nisa.register_load: it stands in the program of qIn, but runs on the sync engine
      %reg = nisa.register_load(src<1| 1>=memref<128x64xf32, #nisa.mem<sbuf>> %m[d0, d1]) engine=sync : f32
      // CHECK-DAG: nisa.register_load: only transfers raise the semaphore of a queue
      %reg2 = nisa.register_load(src<1| 1>=memref<128x64xf32, #nisa.mem<sbuf>> %m[d0, d1]) engine=scalar signal : f32
      // CHECK-DAG: nisa.memset: it stands in the program of qIn, but runs on the vector engine
      nisa.memset(dst<128| 64>=memref<128x64xf32, #nisa.mem<sbuf>> %m[d0, d1], value=f32 %one) engine=vector
      // CHECK-DAG: scf.execute_region: it stands inside another stream
      nisa.program sync {
      }
    }
    nisa.program scalar {
    }
    // CHECK-DAG: scf.execute_region: there are two streams scalar
    nisa.program scalar {
    }
    // CHECK-DAG: scf.execute_region: there is no engine dma
    nisa.program dma {
    }
    // CHECK-DAG: scf.execute_region: no engine pool starts its transfers
    nisa.queue q1 on pool {
    }
    // CHECK-DAG: scf.execute_region: tensor has no program that starts its transfers
    nisa.queue q2 on tensor {
    }
    // CHECK-DAG: scf.execute_region: a queue may not have the name of an engine
    nisa.queue gpsimd on vector {
    }
    // CHECK-DAG: scf.execute_region: it is not a NISA operation, and it may not stand beside them
    scf.execute_region {
      scf.yield
    }
    return
  }
  // CHECK-DAG: func.func: its allocations without a place need 327680 bytes of each partition of SBUF and 32 of PSUM
  func.func @large() {
    %s = "nisa.alloc"() {copies = 5 : i64} : () -> memref<128x16384xf32, #nisa.mem<sbuf>>
    %p = nisa.alloc : memref<128x8xf32, #nisa.mem<psum>>
    // CHECK-DAG: nisa.alloc: it has 1025 copies; there may be 1 to 1024
    %h = "nisa.alloc"() {copies = 1025 : i64} : () -> memref<1xf32, #nisa.mem<hbm>>
    nisa.program vector {
    }
    return
  }
  func.func @plain(%m: memref<128x64xf32, #nisa.mem<sbuf>>) {
    // CHECK-DAG: nisa.register_load: only the program of an engine loads a register of that engine
    %reg = nisa.register_load(src<1| 1>=memref<128x64xf32, #nisa.mem<sbuf>> %m[d0, d1]) engine=vector : f32
    return
  }
  func.func @barriers(%c: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    nisa.program vector {
      scf.for %i = %c0 to %c2 step %c1 {
        nisa.barrier
      }
    }
    nisa.program gpsimd {
      %n = arith.constant 2 : index
      scf.for %i = %c0 to %n step %c1 {
        scf.for %j = %c0 to %n step %c1 {
        }
        nisa.barrier
      }
    }
    // CHECK-DAG: scf.execute_region: the barriers of scalar are not those of vector
    nisa.program scalar {
      scf.for %i = %c0 to %c1 step %c1 {
        nisa.barrier
      }
    }
    // CHECK-DAG: scf.execute_region: the barriers of sync are not those of vector
    nisa.program sync {
      scf.if %c {
        nisa.barrier
      }
    }
    return
  }
}
