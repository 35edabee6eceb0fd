// nisa text 1
// Shuffles, gathers, scatters and random numbers: what the verifier demands of their operands.
// RUN: not nkx opt --nisa-verify %s 2>&1 | FileCheck %s

!s = memref<64x64xf32, #nisa.mem<sbuf>>
!b = memref<64x64xbf16, #nisa.mem<sbuf>>
!w = memref<64x24xi32, #nisa.mem<sbuf>>
!h = memref<64x24xi16, #nisa.mem<sbuf>>
!m = memref<100x64xf32, #nisa.mem<hbm>>
module attributes {nisa.target = #nisa.target<trn2>} {
  func.func @k(%m: !m) {
    %one = arith.constant 1.0 : f32
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c96 = arith.constant 96 : index
    %s = nisa.alloc : !s
    %b = nisa.alloc : !b
    %w = nisa.alloc : !w
    %h = nisa.alloc : !h
    %p = nisa.alloc : memref<64x64xf32, #nisa.mem<psum>>
    // CHECK: nisa.stream_shuffle: shuffle_mask must have 32 entries
    nisa.stream_shuffle(dst<64| 8>=!s %s[d0, d1], src<64| 8>=!s %s[d0, d1], shuffle_mask=[0, 1]) engine=vector
    // CHECK: nisa.stream_shuffle: shuffle_mask has 40 for partition 1, which src does not have
    nisa.stream_shuffle(dst<64| 8>=!s %s[d0, d1], src<64| 8>=!s %s[d0, d1], shuffle_mask=[0, 40, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 255]) engine=vector
    // CHECK: nisa.stream_shuffle: dst and src must have the same type
    nisa.stream_shuffle(dst<64| 8>=!s %s[d0, d1], src<64| 8>=!b %b[d0, d1], shuffle_mask=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]) engine=vector
    // CHECK: nisa.transpose: Vector transposes at most 32 by 32 elements
    nisa.transpose(dst<33| 8>=!s %s[d0, d1], src<8| 33>=!s %s[d0, d1]) engine=vector
    // CHECK: nisa.gather: src_index must be an integer of 32 bits
    nisa.gather(dst<64| 8>=!s %s[d0, d1], src<64| 64>=!s %s[d0, d1], src_index<64| 8>=!h %h[d0, d1]) engine=gpsimd
    // CHECK: nisa.local_gather: elements_per_index must be 1, 2, 4, 8, 16 or 32
    nisa.local_gather(dst<64| 48>=!s %s[d0, d1], src<64| 48>=!s %s[d0, d1], src_index<64| 1>=!h %h[d0, d1], elements_per_index=3, n_indices=16) engine=gpsimd
    // CHECK: nisa.local_gather: n_indices and elements_per_index do not fit the operands
    nisa.local_gather(dst<64| 17>=!s %s[d0, d1], src<64| 48>=!s %s[d0, d1], src_index<64| 1>=!h %h[d0, d1], elements_per_index=1, n_indices=17) engine=gpsimd
    // CHECK: nisa.local_gather: its partitions must be groups of 16
    nisa.local_gather(dst<8| 16>=!s %s[d0, d1], src<8| 48>=!s %s[d0, d1], src_index<8| 1>=!h %h[d0, d1], elements_per_index=1, n_indices=16) engine=gpsimd
    // CHECK: nisa.sequence_bounds: dst has 9 elements in each partition, but it must have 10
    nisa.sequence_bounds(dst<1| 9>=!s %s[d0, d1], src<1| 5>=!s %s[d0, d1]) engine=gpsimd
    // CHECK: nisa.nonzero_with_count: dst must be an integer
    nisa.nonzero_with_count(dst<64| 9>=!s %s[d0, d1], src<64| 8>=!s %s[d0, d1], index_offset=0, padding=0) engine=gpsimd
    // CHECK: nisa.random: low and high go together
    nisa.random(dst<64| 8>=!s %s[d0, d1], low=f32 %one) engine=vector
    // CHECK: nisa.random: random numbers between two bounds are of trn3
    nisa.random(dst<64| 8>=!s %s[d0, d1], low=f32 %one, high=f32 %one) engine=vector
    // CHECK: nisa.random_seed: a seed is one element of 32 bits
    nisa.random_seed(src<1| 2>=!w %w[d0, d1]) engine=vector
    // CHECK: nisa.random_set_state: the state of a lane is 6 words of 32 bits
    nisa.random_set_state(src<64| 24>=!w %w[d0, d1]) engine=gpsimd
    // CHECK: nisa.random_get_state: the state of generators is accessible on GpSimd from trn2 on, on Vector from trn3 on
    nisa.random_get_state(dst<64| 24>=!w %w[d0, d1]) engine=vector
    // CHECK: nisa.dma_scatter: dst must be in HBM
    nisa.dma_scatter(dst<64| 64>=!s %s[d0, d1], src<64| 64>=!s %s[d0, d1], dst_index<64| 1>=!w %w[d0, d1], dst_index_dim=0, dst_indirect_max_index=64) engine=dma
    // CHECK: nisa.dma_scatter: dst_indirect_max_index is not within the dimension
    nisa.dma_scatter(dst<64| 64>=!m %m[0, d1], src<64| 64>=!s %s[d0, d1], dst_index<64| 1>=!w %w[d0, d1], dst_index_dim=0, dst_indirect_max_index=101) engine=dma
    // CHECK: nisa.dma_compute: other has 64 partitions of 63 elements, dst has 64 of 64
    nisa.dma_compute(dst<64| 64>=!s %s[d0, d1], src<64| 64>=!s %s[d0, d1], other<64| 63>=!s %s[d0, d1], op=add) engine=dma
    // CHECK: nisa.tensor_tensor_arith: abs_max is an operator of trn3
    nisa.tensor_tensor_arith(dst<64| 64>=!s %s[d0, d1], lhs<64| 64>=!s %s[d0, d1], rhs<64| 64>=!s %s[d0, d1], op=abs_max) engine=vector
    // CHECK: nisa.tensor_scalar_arith: rsqrt is an operator of GpSimd
    nisa.tensor_scalar_arith(dst<64| 64>=!s %s[d0, d1], src<64| 64>=!s %s[d0, d1], operand0=f32 %one, op0=rsqrt, reverse_operands=none) engine=vector
    // CHECK: nisa.matmul: row_pos must be 0, 32, 64 or 96, with the product inside the array
    nisa.matmul(dst<64| 64>=memref<64x64xf32, #nisa.mem<psum>> %p[d0, d1], stationary<32| 64>=!s %s[d0, d1], moving<32| 64>=!s %s[d0, d1], row_pos=index %c16, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    // CHECK: nisa.matmul: col_pos must be 0, 32, 64 or 96, with the product inside the array
    nisa.matmul(dst<64| 64>=memref<64x64xf32, #nisa.mem<psum>> %p[d0, d1], stationary<32| 64>=!s %s[d0, d1], moving<32| 64>=!s %s[d0, d1], row_pos=index %c96, col_pos=index %c96, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    // CHECK: nisa.matmul: double rows are products of 8-bit floats, from trn2 on
    nisa.matmul(dst<64| 64>=memref<64x64xf32, #nisa.mem<psum>> %p[d0, d1], stationary<32| 64>=!s %s[d0, d1], moving<32| 64>=!s %s[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=double_row, psum_zero_region=size2048) engine=tensor
    nisa.release %p : memref<64x64xf32, #nisa.mem<psum>>
    nisa.release %h : !h
    nisa.release %w : !w
    nisa.release %b : !b
    nisa.release %s : !s
    return
  }
}
