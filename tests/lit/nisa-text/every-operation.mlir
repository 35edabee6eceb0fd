// Every operation once, and what an operand and an attribute can be.
// RUN: nkx opt --print-nisa %s | FileCheck %s
// Reading it back gives the same operations; so does printing them again.
// RUN: nkx opt %s > %t.mlir
// RUN: nkx opt --print-nisa %s > %t.nisa
// RUN: nkx opt %t.nisa | diff %t.mlir -
// RUN: nkx opt --print-nisa %t.nisa | diff %t.nisa -
#id = affine_map<(d0, d1) -> (d0, d1)>
#right = affine_map<(d0, d1) -> (d0, d1 + 128)>
#inner = affine_map<(d0, d1) -> (d0, d1 + 64)>
#at = affine_map<(d0, d1)[s0, s1] -> (d0 + s0, d1 + s1)>
#block = affine_map<(d0, d1)[s0] -> (d0, s0, 1, d1)>
#blocks = affine_map<(d0, d1)[s0] -> (d0, d1 + s0 * 128 + 64)>
#sum = affine_map<(d0, d1, d2)[s0, s1] -> (d0, d1 * 64 + d2 + s0 * 2 + s1 + 7)>
#row = affine_map<(d0, d1) -> (0, d1)>
#part = affine_map<(d0, d1) -> (d0, 0)>
#third = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// CHECK: {{^}}// nisa text 1
// CHECK-NEXT: module attributes {nisa.target = #nisa.target<trn2>} {
module attributes {nisa.target = #nisa.target<"trn2">} {
  // CHECK-NEXT: func.func @k(%arg0: memref<256x256xf32, strided<[?, ?], offset: ?>, #nisa.mem<shared_hbm>>, %arg1: index, %arg2: memref<64x128xi32, #nisa.mem<hbm>>) -> memref<256x256xf32, #nisa.mem<shared_hbm>> {
  func.func @k(%x: memref<256x256xf32, strided<[?, ?], offset: ?>, #nisa.mem<"shared_hbm">>, %n: index, %table: memref<64x128xi32, #nisa.mem<"hbm">>) -> memref<256x256xf32, #nisa.mem<"shared_hbm">> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %f = arith.constant 1.000000e+00 : f32
    // CHECK:      %sbuf = nisa.alloc alignment=64 : memref<128x256xf32, #nisa.mem<sbuf>>
    // CHECK-NEXT: %sbuf_0 = nisa.alloc : memref<128x2x2x128xf32, strided<[512, 256, 128, 1]>, #nisa.mem<sbuf>>
    // CHECK-NEXT: %psum = nisa.alloc : memref<128x128xf32, #nisa.mem<psum>>
    // CHECK-NEXT: %hbm = nisa.alloc : memref<256x256xf32, #nisa.mem<shared_hbm>>
    // CHECK-NEXT: %sbuf_1 = nisa.alloc : memref<128x1xi32, #nisa.mem<sbuf>>
    // CHECK-NEXT: %sbuf_2 = nisa.alloc : memref<64x128xi32, #nisa.mem<sbuf>>
    // CHECK-NEXT: %sbuf_3 = nisa.alloc : memref<128x4x8xbf16, #nisa.mem<sbuf>>
    %s = "nisa.alloc"() {alignment = 64 : i64} : () -> memref<128x256xf32, #nisa.mem<"sbuf">>
    %b = "nisa.alloc"() : () -> memref<128x2x2x128xf32, strided<[512, 256, 128, 1]>, #nisa.mem<"sbuf">>
    %p = "nisa.alloc"() : () -> memref<128x128xf32, #nisa.mem<"psum">>
    %r = "nisa.alloc"() : () -> memref<256x256xf32, #nisa.mem<"shared_hbm">>
    %i = "nisa.alloc"() : () -> memref<128x1xi32, #nisa.mem<"sbuf">>
    %g = "nisa.alloc"() : () -> memref<64x128xi32, #nisa.mem<"sbuf">>
    %q = "nisa.alloc"() : () -> memref<128x4x8xbf16, #nisa.mem<"sbuf">>
    // CHECK-NEXT: scf.for %i = %c0 to %c2 step %c1 {
    // CHECK-NEXT:   scf.for %j = %c0 to %c2 step %c1 {
    // CHECK-NEXT:     %[[SUM:.*]] = arith.addi %i, %j : index
    scf.for %u = %c0 to %c2 step %c1 {
      scf.for %v = %c0 to %c2 step %c1 {
        %0 = arith.addi %u, %v : index
        // CHECK-NEXT: {{^}}        nisa.dma_copy(dst<128| 128>=memref<128x256xf32, #nisa.mem<sbuf>> %sbuf[d0, %i*128 + d1 + 64], src<128| 128>=memref<256x256xf32, strided<[?, ?], offset: ?>, #nisa.mem<shared_hbm>> %arg0[%[[SUM]] + d0, %arg1 + d1]) engine=dma{{$}}
        "nisa.dma_copy"(%s, %u, %x, %0, %n) {dst_ap = #blocks, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "dma", operandSegmentSizes = array<i32: 1, 1, 1, 2>, src_ap = #at, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, index, memref<256x256xf32, strided<[?, ?], offset: ?>, #nisa.mem<"shared_hbm">>, index, index) -> ()
        // CHECK-NEXT: nisa.dma_transpose(dst<128| 128>=memref<128x2x2x128xf32, strided<[512, 256, 128, 1]>, #nisa.mem<sbuf>> %sbuf_0[d0, %j, 1, d1], src<128| 128>={{.*}} %arg0[%c0 + d0, %c1 + d1], permutation=[1, 0]) engine=dma
        "nisa.dma_transpose"(%b, %v, %x, %c0, %c1) {dst_ap = #block, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "dma", operandSegmentSizes = array<i32: 1, 1, 1, 2>, permutation = array<i64: 1, 0>, src_ap = #at, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x2x2x128xf32, strided<[512, 256, 128, 1]>, #nisa.mem<"sbuf">>, index, memref<256x256xf32, strided<[?, ?], offset: ?>, #nisa.mem<"shared_hbm">>, index, index) -> ()
        // Several tile coordinates and values in one index.
        // CHECK-NEXT: nisa.memset(dst<128| 2, 64>=memref<128x256xf32, #nisa.mem<sbuf>> %sbuf[d0, %i*2 + %j + d1*64 + d2 + 7], value=f32 %cst) engine=vector
        "nisa.memset"(%s, %u, %v, %f) {dst_ap = #sum, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 2, 64>, engine = "vector", operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, index, index, f32) -> ()
      }
    }
    // CHECK: nisa.dma_copy_indirect(dst<64| 128>=memref<64x128xi32, #nisa.mem<sbuf>> %sbuf_2[d0, d1], src<64| 128>=memref<64x128xi32, #nisa.mem<hbm>> %arg2[0, d1], src_index<64| 1>=memref<128x1xi32, #nisa.mem<sbuf>> %sbuf_1[d0, d1], src_index_dim=0, src_indirect_max_index=64) engine=dma
    "nisa.dma_copy_indirect"(%g, %table, %i) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 128>, engine = "dma", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, src_ap = #row, src_index_ap = #id, src_index_dim = 0 : i64, src_index_par_dims = 1 : i32, src_index_tile = array<i64: 64, 1>, src_indirect_max_index = 64 : i64, src_par_dims = 1 : i32, src_tile = array<i64: 64, 128>} : (memref<64x128xi32, #nisa.mem<"sbuf">>, memref<64x128xi32, #nisa.mem<"hbm">>, memref<128x1xi32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: %[[H:.*]] = nisa.alloc : memref<64x128xi32, #nisa.mem<hbm>>
    %h = "nisa.alloc"() : () -> memref<64x128xi32, #nisa.mem<"hbm">>
    // CHECK: %[[W:.*]] = nisa.alloc : memref<128x128xi32, #nisa.mem<hbm>>
    %w = "nisa.alloc"() : () -> memref<128x128xi32, #nisa.mem<"hbm">>
    // CHECK: %[[N:.*]] = nisa.alloc : memref<64x64xi32, #nisa.mem<hbm>>
    %z = "nisa.alloc"() : () -> memref<64x64xi32, #nisa.mem<"hbm">>
    // CHECK-NEXT: nisa.all_gather(dst<128| 128>=memref<128x128xi32, #nisa.mem<hbm>> %[[W]][d0, d1], src<64| 128>=memref<64x128xi32, #nisa.mem<hbm>> %arg2[d0, d1], dim=0) engine=dma
    "nisa.all_gather"(%w, %table) {dim = 0 : i64, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "dma", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 64, 128>} : (memref<128x128xi32, #nisa.mem<"hbm">>, memref<64x128xi32, #nisa.mem<"hbm">>) -> ()
    // CHECK-NEXT: nisa.all_reduce(dst<64| 128>={{.*}} %[[H]][d0, d1], src<64| 128>={{.*}} %arg2[d0, d1], op=max, replica_groups=dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, unsigned) engine=dma
    "nisa.all_reduce"(%h, %table) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 128>, engine = "dma", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 64, 128>, op = "max", replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, unsigned} : (memref<64x128xi32, #nisa.mem<"hbm">>, memref<64x128xi32, #nisa.mem<"hbm">>) -> ()
    // CHECK-NEXT: nisa.reduce_scatter(dst<64| 64>={{.*}} %[[N]][d0, d1], src<64| 128>={{.*}} %arg2[d0, d1], op=bitwise_or, channel_id=3, dim=1) engine=dma
    "nisa.reduce_scatter"(%z, %table) {channel_id = 3 : i64, dim = 1 : i64, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 64>, engine = "dma", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 64, 128>, op = "bitwise_or"} : (memref<64x64xi32, #nisa.mem<"hbm">>, memref<64x128xi32, #nisa.mem<"hbm">>) -> ()
    // CHECK-NEXT: nisa.all_to_all(dst<64| 128>={{.*}} %[[H]][d0, d1], src<64| 128>={{.*}} %arg2[d0, d1], dim=1, replica_groups=dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>) engine=dma
    "nisa.all_to_all"(%h, %table) {dim = 1 : i64, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 128>, engine = "dma", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 64, 128>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (memref<64x128xi32, #nisa.mem<"hbm">>, memref<64x128xi32, #nisa.mem<"hbm">>) -> ()
    // CHECK-NEXT: nisa.collective_permute(dst<64| 128>={{.*}} %[[H]][d0, d1], src<64| 128>={{.*}} %arg2[d0, d1], source_target_pairs=dense<{{\[\[}}0, 1], [1, 0]]> : tensor<2x2xi64>) engine=dma
    "nisa.collective_permute"(%h, %table) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 128>, engine = "dma", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 64, 128>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (memref<64x128xi32, #nisa.mem<"hbm">>, memref<64x128xi32, #nisa.mem<"hbm">>) -> ()
    // CHECK-NEXT: nisa.matmul(dst<128| 128>=memref<128x128xf32, #nisa.mem<psum>> %psum[d0, d1], stationary<128| 128>={{.*}} %sbuf[d0, d1], moving<128| 128>={{.*}} %sbuf[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    "nisa.matmul"(%p, %s, %s, %c0, %c0) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "tensor", is_transpose = false, moving_ap = #id, moving_par_dims = 1 : i32, moving_tile = array<i64: 128, 128>, operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>, perf_opt = "none_", psum_zero_region = "size2048", stationary_ap = #id, stationary_par_dims = 1 : i32, stationary_tile = array<i64: 128, 128>} : (memref<128x128xf32, #nisa.mem<"psum">>, memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, index, index) -> ()
    // CHECK-NEXT: nisa.matmul(dst<128| 128>={{.*}} %psum[d0, d1], stationary<128| 128>={{.*}} %sbuf[d0, d1 + 128], moving<128| 128>={{.*}} %sbuf[d0, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=true, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    "nisa.matmul"(%p, %s, %s, %c0, %c0) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "tensor", is_transpose = true, moving_ap = #id, moving_par_dims = 1 : i32, moving_tile = array<i64: 128, 128>, operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>, perf_opt = "none_", psum_zero_region = "size2048", stationary_ap = #right, stationary_par_dims = 1 : i32, stationary_tile = array<i64: 128, 128>} : (memref<128x128xf32, #nisa.mem<"psum">>, memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, index, index) -> ()
    // CHECK-NEXT: nisa.tensor_copy(dst<128| 128>={{.*}} %sbuf[d0, d1], src<128| 128>={{.*}} %psum[d0, d1]) engine=scalar
    "nisa.tensor_copy"(%s, %p) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "scalar", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x128xf32, #nisa.mem<"psum">>) -> ()
    // CHECK-NEXT: nisa.tensor_copy(dst<128| 128>={{.*}} %sbuf[d0, d1 + 64], src<128| 128>={{.*}} %psum[d0, d1]) engine=scalar
    "nisa.tensor_copy"(%s, %p) {dst_ap = #inner, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "scalar", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x128xf32, #nisa.mem<"psum">>) -> ()
    // CHECK-NEXT: nisa.tensor_copy_predicated(dst<128| 128>={{.*}}, src=f32 %cst, predicate<128| 128>={{.*}}, reverse_pred=true) engine=vector
    "nisa.tensor_copy_predicated"(%s, %f, %s) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, predicate_ap = #id, predicate_par_dims = 1 : i32, predicate_tile = array<i64: 128, 128>, reverse_pred = true} : (memref<128x256xf32, #nisa.mem<"sbuf">>, f32, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // What is computed comes before other attributes.
    // CHECK-NEXT: nisa.tensor_tensor_arith(dst<128| 128>={{.*}}, lhs<128| 128>={{.*}}, rhs<128| 128>={{.*}} %sbuf[0, d1], op=max, note="two words", unsigned) engine=gpsimd
    "nisa.tensor_tensor_arith"(%s, %s, %s) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "gpsimd", lhs_ap = #id, lhs_par_dims = 1 : i32, lhs_tile = array<i64: 128, 128>, note = "two words", op = "max", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, rhs_ap = #row, rhs_par_dims = 1 : i32, rhs_tile = array<i64: 128, 128>, unsigned} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK-NEXT: nisa.tensor_tensor_power(dst<128| 4, 8>=memref<128x4x8xbf16, #nisa.mem<sbuf>> %sbuf_3[d0, d1, d2], lhs<128| 4, 8>={{.*}}, rhs<128| 4, 8>={{.*}}) engine=gpsimd
    "nisa.tensor_tensor_power"(%q, %q, %q) {dst_ap = #third, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 4, 8>, engine = "gpsimd", lhs_ap = #third, lhs_par_dims = 1 : i32, lhs_tile = array<i64: 128, 4, 8>, operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, rhs_ap = #third, rhs_par_dims = 1 : i32, rhs_tile = array<i64: 128, 4, 8>} : (memref<128x4x8xbf16, #nisa.mem<"sbuf">>, memref<128x4x8xbf16, #nisa.mem<"sbuf">>, memref<128x4x8xbf16, #nisa.mem<"sbuf">>) -> ()
    // The elements of an operand may have another type than the memref.
    // CHECK: nisa.tensor_copy(dst<128| 128>=memref<128x256xf32, #nisa.mem<sbuf>> %sbuf as bf16[d0, d1], src<128| 128>=memref<128x2x2x128xf32, strided<[512, 256, 128, 1]>, #nisa.mem<sbuf>> %sbuf_0 as bf16[d0, %c2, 1, d1]) engine=vector
    "nisa.tensor_copy"(%s, %b, %c2) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, dst_type = bf16, engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 1>, src_ap = #block, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>, src_type = bf16} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x2x2x128xf32, strided<[512, 256, 128, 1]>, #nisa.mem<"sbuf">>, index) -> ()
    // CHECK: nisa.alloc : memref<128x8xi32
    %w8 = "nisa.alloc"() : () -> memref<128x8xi32, #nisa.mem<"sbuf">>
    // CHECK: nisa.tensor_tensor_scan(dst<128| 128>={{.*}}, lhs<128| 128>={{.*}}, rhs<128| 128>={{.*}}, initial=f32 %cst, op0=multiply, op1=add, reverse_operands=second) engine=vector
    "nisa.tensor_tensor_scan"(%s, %s, %s, %f) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0>, op0 = "multiply", op1 = "add", reverse_operands = "second", dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, lhs_ap = #id, lhs_par_dims = 1 : i32, lhs_tile = array<i64: 128, 128>, rhs_ap = #id, rhs_par_dims = 1 : i32, rhs_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, f32) -> ()
    // CHECK: nisa.scalar_tensor_tensor(dst<128| 128>={{.*}}, src<128| 128>={{.*}}, operand0=f32 %cst, operand1<128| 128>={{.*}}, op0=subtract, op1=multiply, reverse_operands=first) engine=vector
    "nisa.scalar_tensor_tensor"(%s, %s, %f, %s) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0>, op0 = "subtract", op1 = "multiply", reverse_operands = "first", dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>, operand1_ap = #id, operand1_par_dims = 1 : i32, operand1_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, f32, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.tensor_scalar_cumulative(dst<128| 128>={{.*}}, src<128| 128>={{.*}}, operand0=f32 %cst, initial=f32 %cst, op0=add, op1=max) engine=vector
    "nisa.tensor_scalar_cumulative"(%s, %s, %f, %f) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0>, op0 = "add", op1 = "max", dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, f32, f32) -> ()
    // CHECK: nisa.bn_stats(dst<128| 6>={{.*}}, src<128| 128>={{.*}}) engine=vector
    "nisa.bn_stats"(%s, %s) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 6>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.bn_aggr(dst<128| 2>={{.*}}, src<128| 12>={{.*}}) engine=vector
    "nisa.bn_aggr"(%s, %s) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 2>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 12>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.max8(dst<128| 8>={{.*}}, src<128| 128>={{.*}}) engine=vector
    "nisa.max8"(%s, %s) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 8>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.find_index8(dst<128| 8>={{.*}}, src<128| 128>={{.*}}, values<128| 8>={{.*}}) engine=vector
    "nisa.find_index8"(%w8, %s, %s) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 8>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>, values_ap = #id, values_par_dims = 1 : i32, values_tile = array<i64: 128, 8>} : (memref<128x8xi32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.match_replace8(dst<128| 128>={{.*}}, src<128| 128>={{.*}}, values<128| 8>={{.*}}, replacement=f32 %cst) engine=vector
    "nisa.match_replace8"(%s, %s, %s, %f) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 0, 1, 0, 1, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>, values_ap = #id, values_par_dims = 1 : i32, values_tile = array<i64: 128, 8>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, f32) -> ()
    %w16 = "nisa.alloc"() : () -> memref<128x4xi16, #nisa.mem<"sbuf">>
    %sc = "nisa.alloc"() : () -> memref<64x128xi32, #nisa.mem<"sbuf">>
    // CHECK: nisa.stream_shuffle(dst<128| 128>={{.*}}, src<128| 128>={{.*}}, shuffle_mask=[1, 2, {{.*}}, 0]) engine=vector
    "nisa.stream_shuffle"(%s, %s) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, shuffle_mask = array<i64: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.transpose(dst<32| 16>={{.*}}, src<16| 32>={{.*}}) engine=vector
    "nisa.transpose"(%s, %s) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 32, 16>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 16, 32>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.gather(dst<128| 8>={{.*}}, src<128| 128>={{.*}}, src_index<128| 8>={{.*}}) engine=gpsimd
    "nisa.gather"(%s, %s, %w8) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 8>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>, src_index_ap = #id, src_index_par_dims = 1 : i32, src_index_tile = array<i64: 128, 8>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x8xi32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.local_gather(dst<128| 64>={{.*}}, src<128| 128>={{.*}}, src_index<128| 4>={{.*}}, elements_per_index=2, n_indices=32) engine=gpsimd
    "nisa.local_gather"(%s, %s, %w16) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, elements_per_index = 2 : i64, n_indices = 32 : i64, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 64>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>, src_index_ap = #id, src_index_par_dims = 1 : i32, src_index_tile = array<i64: 128, 4>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x4xi16, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.sequence_bounds(dst<1| 16>={{.*}}, src<1| 8>={{.*}}) engine=gpsimd
    "nisa.sequence_bounds"(%s, %s) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 16>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 1, 8>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.nonzero_with_count(dst<128| 8>={{.*}}, src<128| 7>={{.*}}, index_offset=3, padding=-1) engine=gpsimd
    "nisa.nonzero_with_count"(%w8, %s) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 1, 0>, index_offset = 3 : i64, padding = -1 : i64, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 8>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 7>} : (memref<128x8xi32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.topk(dst<128| 1>={{.*}} as bf16[d0, d1], dst_index<128| 1>={{.*}}, src<128| 128>={{.*}} as bf16[d0, d1], n_elements=100) engine=gpsimd
    "nisa.topk"(%s, %w8, %s) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, n_elements = 100 : i64, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 1>, dst_type = bf16, dst_index_ap = #id, dst_index_par_dims = 1 : i32, dst_index_tile = array<i64: 128, 1>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>, src_type = bf16} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x8xi32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.random(dst<128| 8>={{.*}}) engine=gpsimd
    "nisa.random"(%w8) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 8>} : (memref<128x8xi32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.random(dst<128| 128>={{.*}}, low=f32 %cst, high=f32 %cst) engine=vector
    "nisa.random"(%s, %f, %f) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, f32, f32) -> ()
    // CHECK: nisa.random_seed(src<1| 1>={{.*}}) engine=vector
    "nisa.random_seed"(%i) {engine = "vector", operandSegmentSizes = array<i32: 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (memref<128x1xi32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.random_set_state(src<128| 6>={{.*}}) engine=gpsimd
    "nisa.random_set_state"(%w8) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 6>} : (memref<128x8xi32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.random_get_state(dst<128| 6>={{.*}}) engine=gpsimd
    "nisa.random_get_state"(%w8) {engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 6>} : (memref<128x8xi32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.dma_scatter(dst<64| 128>={{.*}} %arg2[0, d1], src<64| 128>={{.*}}, dst_index<64| 1>={{.*}}, op=add, dst_index_dim=0, dst_indirect_max_index=64, skips_out_of_range) engine=dma
    "nisa.dma_scatter"(%table, %sc, %i) {engine = "dma", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, dst_index_dim = 0 : i64, dst_indirect_max_index = 64 : i64, op = "add", skips_out_of_range, dst_ap = #row, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 128>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 64, 128>, dst_index_ap = #id, dst_index_par_dims = 1 : i32, dst_index_tile = array<i64: 64, 1>} : (memref<64x128xi32, #nisa.mem<"hbm">>, memref<64x128xi32, #nisa.mem<"sbuf">>, memref<128x1xi32, #nisa.mem<"sbuf">>) -> ()
    // CHECK: nisa.dma_compute(dst<128| 128>={{.*}}, src<128| 128>={{.*}}, other<128| 128>={{.*}}, op=add) engine=dma
    "nisa.dma_compute"(%s, %s, %s) {engine = "dma", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, op = "add", dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>, other_ap = #id, other_par_dims = 1 : i32, other_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    %x4 = "nisa.alloc"() : () -> memref<64x64xi32, #nisa.mem<"sbuf">>
    %e8 = "nisa.alloc"() : () -> memref<64x64xi8, #nisa.mem<"sbuf">>
    %half = "nisa.alloc"() : () -> memref<64x64xbf16, #nisa.mem<"sbuf">>
    %pm = "nisa.alloc"() : () -> memref<128x128xf32, #nisa.mem<"psum">>
    // CHECK: nisa.matmul_mx(dst<16| 32>={{.*}}, stationary<64| 16>={{.*}}, moving<64| 32>={{.*}}, stationary_scale<64| 16>={{.*}}, moving_scale<36| 32>={{.*}}, row_pos=index %c0, moving_format=f8E5M2, stationary_format=f8E4M3FN) engine=tensor
    "nisa.matmul_mx"(%pm, %x4, %x4, %e8, %e8, %c0) {engine = "tensor", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0>, stationary_format = "f8E4M3FN", moving_format = "f8E5M2", dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 16, 32>, stationary_ap = #id, stationary_par_dims = 1 : i32, stationary_tile = array<i64: 64, 16>, moving_ap = #id, moving_par_dims = 1 : i32, moving_tile = array<i64: 64, 32>, stationary_scale_ap = #id, stationary_scale_par_dims = 1 : i32, stationary_scale_tile = array<i64: 64, 16>, moving_scale_ap = #id, moving_scale_par_dims = 1 : i32, moving_scale_tile = array<i64: 36, 32>} : (memref<128x128xf32, #nisa.mem<"psum">>, memref<64x64xi32, #nisa.mem<"sbuf">>, memref<64x64xi32, #nisa.mem<"sbuf">>, memref<64x64xi8, #nisa.mem<"sbuf">>, memref<64x64xi8, #nisa.mem<"sbuf">>, index) -> ()
    // CHECK: nisa.quantize_mx(dst<64| 16>={{.*}}, dst_scale<64| 16>={{.*}}, src<64| 64>={{.*}}, format=f8E5M2) engine=vector
    "nisa.quantize_mx"(%x4, %e8, %half) {engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0>, format = "f8E5M2", dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 64, 16>, dst_scale_ap = #id, dst_scale_par_dims = 1 : i32, dst_scale_tile = array<i64: 64, 16>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 64, 64>} : (memref<64x64xi32, #nisa.mem<"sbuf">>, memref<64x64xi8, #nisa.mem<"sbuf">>, memref<64x64xbf16, #nisa.mem<"sbuf">>) -> ()
    // An operand that may be either, and one that may be left out.
    // CHECK: nisa.tensor_scalar_arith(dst<128| 128>={{.*}}, src<128| 128>={{.*}}, operand0<128| 1>={{.*}} %sbuf[d0, 0], op0=subtract, reverse_operands=none) engine=vector
    "nisa.tensor_scalar_arith"(%s, %s, %s) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "vector", op0 = "subtract", operand0_ap = #part, operand0_par_dims = 1 : i32, operand0_tile = array<i64: 128, 1>, operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 0, 0>, reverse_operands = "none", src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK-NEXT: nisa.tensor_scalar_arith({{.*}}, operand0=f32 %cst, operand1=f32 %cst, op0=add, op1=multiply, reverse_operands=both) engine=vector
    "nisa.tensor_scalar_arith"(%s, %s, %f, %f) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "vector", op0 = "add", op1 = "multiply", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0>, reverse_operands = "both", src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, f32, f32) -> ()
    // CHECK-NEXT: nisa.tensor_reduce_arith({{.*}}, op=add, negated=false, num_r_dim=1) engine=vector
    "nisa.tensor_reduce_arith"(%s, %s) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 1>, engine = "vector", negated = false, num_r_dim = 1 : i64, op = "add", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // An integer of another type says so.
    // CHECK-NEXT: nisa.cross_lane_reduce_arith({{.*}}, reduce_op=max, num_r_dim=0 : i32) engine=gpsimd
    "nisa.cross_lane_reduce_arith"(%s, %s) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 128>, engine = "gpsimd", num_r_dim = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 1, 0>, reduce_op = "max", src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK-NEXT: nisa.activation(dst<128| 128>={{.*}}, reduce_res<128| 1>={{.*}} %sbuf[d0, 0], src<128| 128>={{.*}}, bias=f32 %cst, scale=f32 %cst, op=exp) engine=scalar
    "nisa.activation"(%s, %s, %s, %f, %f) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "scalar", op = "exp", operandSegmentSizes = array<i32: 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0>, reduce_res_ap = #part, reduce_res_par_dims = 1 : i32, reduce_res_tile = array<i64: 128, 1>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>, f32, f32) -> ()
    // CHECK-NEXT: nisa.reciprocal(dst<128| 128>={{.*}}, src<128| 128>={{.*}}) engine=vector
    "nisa.reciprocal"(%s, %s) {dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 128>, engine = "vector", operandSegmentSizes = array<i32: 1, 0, 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 128, 128>} : (memref<128x256xf32, #nisa.mem<"sbuf">>, memref<128x256xf32, #nisa.mem<"sbuf">>) -> ()
    // CHECK-NEXT: nisa.iota(dst<128| 1>=memref<128x1xi32, #nisa.mem<sbuf>> %sbuf_1[d0, d1], offset=index %arg1, coefficients=[1, -2]) engine=gpsimd
    "nisa.iota"(%i, %n) {coefficients = array<i64: 1, -2>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 128, 1>, engine = "gpsimd", operandSegmentSizes = array<i32: 1, 0, 1, 0>} : (memref<128x1xi32, #nisa.mem<"sbuf">>, index) -> ()
    // CHECK-NEXT: %reg = nisa.register_load(src<1| 1>=memref<128x1xi32, #nisa.mem<sbuf>> %sbuf_1[d0, d1]) engine=sync : i32
    %l = "nisa.register_load"(%i) {engine = "sync", operandSegmentSizes = array<i32: 1, 0>, src_ap = #id, src_par_dims = 1 : i32, src_tile = array<i64: 1, 1>} : (memref<128x1xi32, #nisa.mem<"sbuf">>) -> i32
    // CHECK-NEXT: nisa.register_store(dst<1| 1>=memref<128x1xi32, #nisa.mem<sbuf>> %sbuf_1[d0, d1], value=i32 %reg) engine=sync
    "nisa.register_store"(%i, %l) {engine = "sync", operandSegmentSizes = array<i32: 1, 0, 1, 0>, dst_ap = #id, dst_par_dims = 1 : i32, dst_tile = array<i64: 1, 1>} : (memref<128x1xi32, #nisa.mem<"sbuf">>, i32) -> ()
    // CHECK-NEXT: arith.index_cast %reg : i32 to index
    %li = arith.index_cast %l : i32 to index
    // CHECK-NEXT: nisa.release %psum : memref<128x128xf32, #nisa.mem<psum>>
    "nisa.release"(%p) : (memref<128x128xf32, #nisa.mem<"psum">>) -> ()
    // CHECK-NEXT: return %hbm : memref<256x256xf32, #nisa.mem<shared_hbm>>
    return %r : memref<256x256xf32, #nisa.mem<"shared_hbm">>
  }
}
