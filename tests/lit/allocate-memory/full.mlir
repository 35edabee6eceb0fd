// nisa text 1
// RUN: nkx opt --allocate-memory=target=trn3 --print-nisa %s | FileCheck %s --check-prefix=TRN3
// RUN: nkx opt --allocate-memory=target=trn2 --nisa-verify=target=trn2 --print-nisa --remarks=%t %s | FileCheck %s --check-prefix=TRN2
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: not nkx opt --allocate-memory=target=trn1 %s 2>&1 | FileCheck %s
// When memory is short, copies give way; when one copy does not fit, the error names what is alive.
// CHECK: full.mlir:36:10: error: 200000 bytes of every SBUF partition are in use here, and there are 180224; alive are 100000 bytes of full.mlir:23:8, 64000 bytes of full.mlir:34:10, 36000 bytes of full.mlir:36:10; use smaller tiles

!large = memref<128x25000xf32, #nisa.mem<sbuf>>
!tile = memref<128x16000xf32, #nisa.mem<sbuf>>
!small = memref<128x9000xf32, #nisa.mem<sbuf>>
!hbm = memref<128x16000xf32, #nisa.mem<shared_hbm>>

func.func @f(%x: !hbm) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %f0 = arith.constant 0.0 : f32
  %f1 = arith.constant 1.0 : f32
  // TRN3: nisa.alloc at=[0, 0] : memref<128x25000xf32
  // TRN3: nisa.alloc at=[0, 172000] : memref<128x16000xf32
  // TRN3: nisa.alloc at=[0, 100000] copies=2 stride=36000 : memref<128x9000xf32
  %l = nisa.alloc : !large
  // TRN2: nisa.alloc at=[0, 0] : memref<128x25000xf32
  // TRN2: nisa.alloc at=[0, 100000] : memref<128x16000xf32
  // TRN2: nisa.alloc at=[0, 164000] : memref<128x9000xf32
  // REMARK: 1 copy of 64000 bytes, not 8: there is no room for more in SBUF
  // REMARK: 1 copy of 36000 bytes, not 2: there is no room for more in SBUF
  nisa.memset(dst<128| 1>=!large %l[d0, d1], value=f32 %f0) engine=vector

  scf.for %i = %c0 to %c8 step %c1 {
    // each of the two could have copies

    %a = nisa.alloc : !tile
    nisa.dma_copy(dst<128| 9000>=!tile %a[d0, d1], src<128| 9000>=!hbm %x[d0, d1]) engine=dma
    %b = nisa.alloc : !small
    nisa.activation(dst<128| 9000>=!small %b[d0, d1], src<128| 9000>=!tile %a[d0, d1], bias=f32 %f0, scale=f32 %f1, op=exp) engine=scalar
    nisa.tensor_copy(dst<128| 9000>=!tile %a[d0, d1], src<128| 9000>=!small %b[d0, d1]) engine=vector
    nisa.release %b : !small
    nisa.dma_copy(dst<128| 9000>=!hbm %x[d0, d1], src<128| 9000>=!tile %a[d0, d1]) engine=dma
    nisa.release %a : !tile
  }
  nisa.release %l : !large
  return
}
