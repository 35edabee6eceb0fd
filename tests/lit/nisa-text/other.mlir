// nisa text 1
// The form in which another compiler prints NISA is read, and means the same.
// RUN: nkx opt --nisa-verify --print-nisa %s | FileCheck %s
// RUN: nkx opt --nisa-verify --print-nisa %s > %t.nisa
// RUN: nkx opt --nisa-verify --print-nisa %t.nisa | diff %t.nisa -
module attributes {nisa.target = #nisa.target<trn2>} {
  func.func @other(%arg0: memref<512x64xf32, strided<[?, ?], offset: ?>, #nisa.mem<shared_hbm>>, %arg1: memref<128x1xi32, strided<[?, ?], offset: ?>, #nisa.mem<shared_hbm>>) -> memref<128x64xf32, #nisa.mem<shared_hbm>> attributes {nki.output_names = ["output"]} {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    %result = nisa.alloc alignment=64 : memref<128x64xf32, #nisa.mem<shared_hbm>>
    // CHECK: %sbuf = nisa.alloc alignment=64 : memref<128x1xi32, #nisa.mem<sbuf>>
    %rows = nisa.alloc alignment=64 : memref<128x1xindex, #nisa.mem<sbuf>>
    %found = nisa.alloc alignment=64 : memref<128x1x1x64xf32, strided<[1, 8192, 8192, 128]>, #nisa.mem<sbuf>>
    %sums = nisa.alloc : memref<128x1xf32, #nisa.mem<sbuf>>
    nisa.dma_copy(dst<128| 1>=memref<128x1xindex, #nisa.mem<sbuf>> %rows[d0, d1], src<128| 1>=memref<128x1xi32, strided<[?, ?], offset: ?>, #nisa.mem<shared_hbm>> %arg1[%c0 + d0, %c0 + d1], dge_mode=no_dge, oob_is_err=true) engine=dma
    // CHECK: nisa.dma_copy_indirect({{.*}}, oob_is_err=true, src_index_dim=0, src_indirect_max_index=512, unique_indices=true) engine=dma
    nisa.dma_copy_indirect(dst<128| 64>=memref<128x1x1x64xf32, strided<[1, 8192, 8192, 128]>, #nisa.mem<sbuf>> %found[d0, 0, 0, d1], src<128| 64>=memref<512x64xf32, strided<[?, ?], offset: ?>, #nisa.mem<shared_hbm>> %arg0[%c0 + 0, %c0 + d1], src_index<128| 1>=memref<128x1xindex, #nisa.mem<sbuf>> %rows[d0, d1], src_indirect_max_index=512, unique_indices=true, oob_is_err=true) engine=dma
    nisa.tensor_reduce_arith(dst<128| 1>=memref<128x1xf32, #nisa.mem<sbuf>> %sums[d0, d1], src<128| 64>=memref<128x1x1x64xf32, strided<[1, 8192, 8192, 128]>, #nisa.mem<sbuf>> %found[d0, %c0 + 0, 0, d1], op=add, negated=false, num_r_dim=1) engine=vector
    // CHECK: nisa.tensor_scalar_arith({{.*}}op0=subtract, reverse_operands=none) engine=vector
    nisa.tensor_scalar_arith(dst<128| 64>=memref<128x1x1x64xf32, strided<[1, 8192, 8192, 128]>, #nisa.mem<sbuf>> %found[d0, 0, 0, d1], src<128| 64>=memref<128x1x1x64xf32, strided<[1, 8192, 8192, 128]>, #nisa.mem<sbuf>> %found[d0, 0, 0, d1], operand0<128| 1>=memref<128x1xf32, #nisa.mem<sbuf>> %sums[d0, d1], op0=subtract, reverse_operands=none_) engine=vector
    // CHECK: nisa.tensor_scalar_arith({{.*}}op0=divide, reverse_operands=first) engine=vector
    nisa.tensor_scalar_arith(dst<128| 64>=memref<128x1x1x64xf32, strided<[1, 8192, 8192, 128]>, #nisa.mem<sbuf>> %found[d0, 0, 0, d1], src<128| 64>=memref<128x1x1x64xf32, strided<[1, 8192, 8192, 128]>, #nisa.mem<sbuf>> %found[d0, 0, 0, d1], operand0=f32 %one, op0=divide, reverse_operands=first) engine=vector
    nisa.dma_copy(dst<128| 64>=memref<128x64xf32, #nisa.mem<shared_hbm>> %result[d0, d1], src<128| 64>=memref<128x1x1x64xf32, strided<[1, 8192, 8192, 128]>, #nisa.mem<sbuf>> %found[d0, 0, 0, d1], dge_mode=no_dge, oob_is_err=true) engine=dma
    nisa.release %rows : memref<128x1xindex, #nisa.mem<sbuf>>
    nisa.release %found : memref<128x1x1x64xf32, strided<[1, 8192, 8192, 128]>, #nisa.mem<sbuf>>
    nisa.release %sums : memref<128x1xf32, #nisa.mem<sbuf>>
    return %result : memref<128x64xf32, #nisa.mem<shared_hbm>>
  }
}
