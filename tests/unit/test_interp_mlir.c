/* The interpreter on tensors.  Each program also runs as machine code, which upstream's bufferization has prepared. */
#include "check_support.h"
#include "interp/interp.h"

/* Runs the text on inputs that count up from 0 and from 100; output k has the k-th shape. */
static void tensors_agree(const char *text, int n_in, int rank, const int64_t *dims, int n_out, int out_rank,
                          const int64_t *out_dims) {
  struct job j;
  const char *unknown = NULL;
  job_begin(&j, text);
  assert_non_null(interp_read(mlirModuleGetOperation(j.m), "k", &j.arena, &unknown)); /* not after bufferization only */
  for (int k = 0; k < n_in; k++)
    count_up(&j, (float)(100 * k), rank, dims);
  for (int k = 0; k < n_out; k++)
    result(&j, out_rank, out_dims);
  run_ok(&j);
  for (int k = 0; k < n_in; k++)
    assert_true(((const float *)j.in[k].data)[0] == (float)(100 * k));
  job_end(&j);
}

static void a_tensor_keeps_its_elements_when_a_slice_is_inserted(void **state) {
  (void)state;
  tensors_agree("func.func @k(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {\n"
                "  %s = tensor.extract_slice %b[1, 0] [2, 3] [1, 2] : tensor<4x6xf32> to tensor<2x3xf32>\n"
                "  %c = tensor.insert_slice %s into %a[0, 1] [2, 3] [2, 1] : tensor<2x3xf32> into tensor<4x6xf32>\n"
                "  %t = tensor.extract_slice %c[0, 0] [2, 3] [1, 1] : tensor<4x6xf32> to tensor<2x3xf32>\n"
                "  %d = tensor.insert_slice %t into %c[2, 3] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x6xf32>\n"
                "  return %c, %d : tensor<4x6xf32>, tensor<4x6xf32>\n}\n",
                2, DIMS(4, 6), 2, DIMS(4, 6));
}

static void a_slice_of_a_tensor_is_not_changed_with_it(void **state) {
  (void)state;
  tensors_agree("func.func @k(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\n"
                "  %e = tensor.empty() : tensor<4xf32>\n"
                "  %n = linalg.negf ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>\n"
                "  %s = tensor.extract_slice %n[0] [2] [1] : tensor<4xf32> to tensor<2xf32>\n"
                "  %m = tensor.insert_slice %s into %n[2] [2] [1] : tensor<2xf32> into tensor<4xf32>\n"
                "  %p = linalg.exp ins(%a : tensor<4xf32>) outs(%m : tensor<4xf32>) -> tensor<4xf32>\n"
                "  %q = tensor.insert_slice %s into %a[1] [2] [1] : tensor<2xf32> into tensor<4xf32>\n"
                "  return %p, %q : tensor<4xf32>, tensor<4xf32>\n}\n",
                1, DIMS(4), 2, DIMS(4));
}

static void nested_loops_hand_tensors_on(void **state) {
  (void)state;
  tensors_agree(
      "func.func @k(%a: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {\n"
      "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : index\n"
      "  %c4 = arith.constant 4 : index\n  %c6 = arith.constant 6 : index\n"
      "  %e = tensor.empty() : tensor<4x6xf32>\n"
      "  %z = tensor.empty() : tensor<1x2xf32>\n"
      "  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %e, %y = %a) -> (tensor<4x6xf32>, tensor<4x6xf32>) {\n"
      "    %q = scf.for %k = %c0 to %c6 step %c2 iter_args(%w = %x) -> (tensor<4x6xf32>) {\n"
      "      %s = tensor.extract_slice %y[%i, %k] [1, 2] [1, 1] : tensor<4x6xf32> to tensor<1x2xf32>\n"
      "      %n = linalg.negf ins(%s : tensor<1x2xf32>) outs(%z : tensor<1x2xf32>) -> tensor<1x2xf32>\n"
      "      %v = tensor.insert_slice %n into %w[%i, %k] [1, 2] [1, 1] : tensor<1x2xf32> into tensor<4x6xf32>\n"
      "      scf.yield %v : tensor<4x6xf32>\n    }\n"
      "    %f = tensor.extract %q[%i, %c2] : tensor<4x6xf32>\n"
      "    %u = tensor.insert %f into %y[%c2, %i] : tensor<4x6xf32>\n"
      "    scf.yield %q, %u : tensor<4x6xf32>, tensor<4x6xf32>\n  }\n"
      "  return %r#0, %r#1 : tensor<4x6xf32>, tensor<4x6xf32>\n}\n",
      1, DIMS(4, 6), 2, DIMS(4, 6));
}

/* Tiling leaves such bodies: the place in the whole value from the loop's and that in the tile. */
static void a_body_computes_its_place(void **state) {
  (void)state;
  tensors_agree(
      "func.func @k(%a: tensor<8xf32>) -> tensor<8xf32> {\n"
      "  %c0 = arith.constant 0 : index\n  %c4 = arith.constant 4 : index\n  %c8 = arith.constant 8 : index\n"
      "  %r = scf.for %i = %c0 to %c8 step %c4 iter_args(%x = %a) -> (tensor<8xf32>) {\n"
      "    %s = tensor.extract_slice %x[%i] [4] [1] : tensor<8xf32> to tensor<4xf32>\n"
      "    %t = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = [\"parallel\"]}\n"
      "        outs(%s : tensor<4xf32>) {\n    ^bb0(%out: f32):\n      %n = linalg.index 0 : index\n"
      "      %p = affine.apply affine_map<(d0, d1)[s0] -> ((d0 + d1) * 3 mod s0)>(%n, %i)[%c8]\n"
      "      %v = tensor.extract %a[%p] : tensor<8xf32>\n      linalg.yield %v : f32\n    } -> tensor<4xf32>\n"
      "    %w = tensor.insert_slice %t into %x[%i] [4] [1] : tensor<4xf32> into tensor<8xf32>\n"
      "    scf.yield %w : tensor<8xf32>\n  }\n"
      "  return %r : tensor<8xf32>\n}\n",
      1, DIMS(8), 1, DIMS(8));
}

static void branches_and_swapped_tensors_agree(void **state) {
  (void)state;
  tensors_agree(
      "func.func @k(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\n"
      "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c3 = arith.constant 3 : index\n"
      "  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a, %y = %b) -> (tensor<4xf32>, tensor<4xf32>) {\n"
      "    %is = arith.cmpi eq, %i, %c1 : index\n"
      "    %v = scf.if %is -> (tensor<4xf32>) {\n"
      "      %f = tensor.extract %y[%i] : tensor<4xf32>\n"
      "      %t = tensor.insert %f into %x[%c0] : tensor<4xf32>\n"
      "      scf.yield %t : tensor<4xf32>\n"
      "    } else {\n      scf.yield %x : tensor<4xf32>\n    }\n"
      "    %w = linalg.add ins(%v, %y : tensor<4xf32>, tensor<4xf32>) outs(%v : tensor<4xf32>) -> tensor<4xf32>\n"
      "    scf.yield %y, %w : tensor<4xf32>, tensor<4xf32>\n  }\n"
      "  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>\n}\n",
      2, DIMS(4), 2, DIMS(4));
}

static void a_while_loop_hands_tensors_on(void **state) {
  (void)state;
  tensors_agree("func.func @k(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c3 = arith.constant 3 : index\n"
                "  %r:2 = scf.while (%i = %c0, %x = %a) : (index, tensor<4xf32>) -> (index, tensor<4xf32>) {\n"
                "    %is = arith.cmpi slt, %i, %c3 : index\n"
                "    scf.condition(%is) %i, %x : index, tensor<4xf32>\n"
                "  } do {\n  ^bb0(%i: index, %x: tensor<4xf32>):\n"
                "    %w = linalg.add ins(%x, %a : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>)\n"
                "         -> tensor<4xf32>\n"
                "    %n = arith.addi %i, %c1 : index\n"
                "    scf.yield %n, %w : index, tensor<4xf32>\n  }\n"
                "  return %r#1 : tensor<4xf32>\n}\n",
                1, DIMS(4), 1, DIMS(4));
}

static void slices_and_constants_take_other_shapes(void **state) {
  (void)state;
  tensors_agree(
      "func.func @k(%a: tensor<4x6xf32>) -> (tensor<8xf32>, tensor<8xf32>) {\n"
      "  %s = tensor.extract_slice %a[0, 2] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>\n"
      "  %f = tensor.collapse_shape %s [[0, 1]] : tensor<4x2xf32> into tensor<8xf32>\n"
      "  %c = arith.constant dense<2.0> : tensor<2x2x2xf32>\n"
      "  %d = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>\n"
      "  %g = tensor.collapse_shape %c [[0, 1, 2]] : tensor<2x2x2xf32> into tensor<8xf32>\n"
      "  %h = tensor.expand_shape %f [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>\n"
      "  %e = tensor.empty() : tensor<2x4xf32>\n"
      "  %i = linalg.sub ins(%h, %d : tensor<2x4xf32>, tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>\n"
      "  %o = tensor.collapse_shape %i [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>\n"
      "  %p = linalg.mul ins(%f, %g : tensor<8xf32>, tensor<8xf32>) outs(%f : tensor<8xf32>) -> tensor<8xf32>\n"
      "  return %o, %p : tensor<8xf32>, tensor<8xf32>\n}\n",
      1, DIMS(4, 6), 2, DIMS(8));
}

static void accumulators_and_calls_agree(void **state) {
  (void)state;
  tensors_agree("func.func private @add(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
                "  %p = linalg.matmul ins(%x, %y : tensor<4x4xf32>, tensor<4x4xf32>) outs(%x : tensor<4x4xf32>)\n"
                "       -> tensor<4x4xf32>\n"
                "  return %p : tensor<4x4xf32>\n}\n"
                "func.func @k(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
                "  %e = tensor.empty() : tensor<4x4xf32>\n"
                "  %p = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>)\n"
                "       -> tensor<4x4xf32>\n"
                "  %q = call @add(%p, %p) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n"
                "  %r = call @add(%q, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>\n"
                "  return %r : tensor<4x4xf32>\n}\n",
                1, DIMS(4, 4), 1, DIMS(4, 4));
}

/* A released buffer is found although another one of the same size was allocated after it. */
static void a_use_of_a_released_buffer_is_found(void **state) {
  struct job j;
  (void)state;
  job_begin(&j, "func.func @k(%a: memref<4xf32>) -> memref<4xf32> {\n"
                "  %x = memref.alloc() : memref<4xf32>\n"
                "  memref.copy %a, %x : memref<4xf32> to memref<4xf32>\n"
                "  memref.dealloc %x : memref<4xf32>\n"
                "  %y = memref.alloc() : memref<4xf32>\n"
                "  memref.copy %a, %y : memref<4xf32> to memref<4xf32>\n"
                "  memref.copy %x, %y : memref<4xf32> to memref<4xf32>\n"
                "  return %y : memref<4xf32>\n}\n");
  count_up(&j, 0, DIMS(4));
  result(&j, DIMS(4));
  assert_int_equal(check_execute(&ir, j.m, "k", j.n_in, j.in, j.n_out, j.out, &j.arena, &j.ds), ST_INPUT);
  assert_non_null(strstr(j.ds.v[0].message, "released"));
  job_end(&j);
}

/* What nothing has written is a NaN also if the memory was used before. */
static void unwritten_memory_is_not_a_number(void **state) {
  struct job j;
  (void)state;
  job_begin(&j, "func.func @k(%a: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>) {\n"
                "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : index\n"
                "  %r = memref.alloc() : memref<4xf32>\n"
                "  scf.for %i = %c0 to %c2 step %c1 {\n"
                "    %x = memref.alloc() : memref<4xf32>\n"
                "    %v = memref.load %a[%i] : memref<4xf32>\n"
                "    memref.store %v, %x[%i] : memref<4xf32>\n"
                "    memref.copy %x, %r : memref<4xf32> to memref<4xf32>\n  }\n"
                "  %n = memref.alloc() : memref<4xf32>\n"
                "  return %r, %n : memref<4xf32>, memref<4xf32>\n}\n");
  count_up(&j, 0, DIMS(4));
  result(&j, DIMS(4));
  result(&j, DIMS(4));
  assert_int_equal(check_execute(&ir, j.m, "k", j.n_in, j.in, j.n_out, j.out, &j.arena, &j.ds), ST_OK);
  assert_true(isnan(at(&j, 0, 0)) && at(&j, 0, 1) == 1 && isnan(at(&j, 0, 2)) && isnan(at(&j, 1, 3)));
  job_end(&j);
}

/* Runs the program of j several times with the results that the runs before it have kept, and compares the first output
 * with what it gives without them. */
static void kept_results_agree(struct job *j) {
  struct check_program *p;
  struct interp_products *products = interp_products_new(64 << 20);
  struct trace_array plain = j->out[0];
  assert_int_equal(check_load(&ir, j->m, "k", &j->arena, &j->ds, &p), ST_OK);
  assert_int_equal(check_run(p, j->n_in, j->in, 1, &plain, &j->arena, &j->ds), ST_OK);
  check_use_products(p, products);
  for (int run = 0; run < 3; run++) {
    struct trace_array kept = j->out[0];
    assert_int_equal(check_run(p, j->n_in, j->in, 1, &kept, &j->arena, &j->ds), ST_OK);
    assert_memory_equal(kept.data, plain.data, (size_t)hlo_shape_elements(&plain.shape) * sizeof(float));
  }
  check_unload(p);
  interp_products_free(products);
}

/* A loop that ran before is not run again; the half of %p that it has not written still counts as zero in a product. */
static void products_into_parts_of_a_buffer_are_kept(void **state) {
  struct job j;
  (void)state;
  job_begin(&j, "func.func @k(%a: memref<128x128xf32>) -> memref<256x128xf32> {\n"
                "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
                "  %p = memref.alloc() : memref<256x128xf32>\n"
                "  %r = memref.alloc() : memref<256x128xf32>\n"
                "  scf.for %i = %c0 to %c1 step %c1 {\n"
                "    %t = memref.alloc() : memref<128x128xf32>\n"
                "    memref.copy %a, %t : memref<128x128xf32> to memref<128x128xf32>\n"
                "    %v = memref.subview %p[0, 0] [128, 128] [1, 1] : memref<256x128xf32> to\n"
                "         memref<128x128xf32, strided<[128, 1]>>\n"
                "    linalg.matmul ins(%t, %a : memref<128x128xf32>, memref<128x128xf32>)\n"
                "                  outs(%v : memref<128x128xf32, strided<[128, 1]>>)\n  }\n"
                "    %w = memref.subview %p[128, 0] [128, 128] [1, 1] : memref<256x128xf32> to\n"
                "         memref<128x128xf32, strided<[128, 1], offset: 16384>>\n"
                "    linalg.matmul ins(%a, %a : memref<128x128xf32>, memref<128x128xf32>)\n"
                "                  outs(%w : memref<128x128xf32, strided<[128, 1], offset: 16384>>)\n"
                "  linalg.exp ins(%p : memref<256x128xf32>) outs(%r : memref<256x128xf32>)\n"
                "  memref.copy %p, %r : memref<256x128xf32> to memref<256x128xf32>\n"
                "  return %r : memref<256x128xf32>\n}\n");
  count_up(&j, -8000, DIMS(128, 128));
  result(&j, DIMS(256, 128));
  kept_results_agree(&j);
  job_end(&j);
}

/* A tile that was copied from an argument is read there, also a part of it, until something writes the tile. */
static void copies_that_are_put_off_agree(void **state) {
  struct job j;
  (void)state;
  job_begin(&j,
            "func.func @k(%a: memref<128x128xf32>) -> memref<128x128xf32> {\n"
            "  %c5 = arith.constant 5 : index\n  %v = arith.constant 7.0 : f32\n"
            "  %t = memref.alloc() : memref<128x256xf32>\n"
            "  %r = memref.alloc() : memref<128x128xf32>\n"
            "  %x = memref.subview %t[0, 0] [128, 128] [1, 1] : memref<128x256xf32> to\n"
            "       memref<128x128xf32, strided<[256, 1]>>\n"
            "  %y = memref.subview %t[0, 128] [128, 128] [1, 1] : memref<128x256xf32> to\n"
            "       memref<128x128xf32, strided<[256, 1], offset: 128>>\n"
            "  memref.copy %a, %x : memref<128x128xf32> to memref<128x128xf32, strided<[256, 1]>>\n"
            "  memref.copy %a, %y : memref<128x128xf32> to memref<128x128xf32, strided<[256, 1], offset: 128>>\n"
            "  linalg.matmul ins(%x, %y : memref<128x128xf32, strided<[256, 1]>>,\n"
            "                    memref<128x128xf32, strided<[256, 1], offset: 128>>) outs(%r : memref<128x128xf32>)\n"
            "  memref.store %v, %t[%c5, %c5] : memref<128x256xf32>\n"
            "  linalg.matmul ins(%x, %y : memref<128x128xf32, strided<[256, 1]>>,\n"
            "                    memref<128x128xf32, strided<[256, 1], offset: 128>>) outs(%r : memref<128x128xf32>)\n"
            "  return %r : memref<128x128xf32>\n}\n");
  count_up(&j, -8000, DIMS(128, 128));
  result(&j, DIMS(128, 128));
  kept_results_agree(&j);
  job_end(&j);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_tensor_keeps_its_elements_when_a_slice_is_inserted),
      cmocka_unit_test(a_slice_of_a_tensor_is_not_changed_with_it),
      cmocka_unit_test(nested_loops_hand_tensors_on),
      cmocka_unit_test(a_body_computes_its_place),
      cmocka_unit_test(branches_and_swapped_tensors_agree),
      cmocka_unit_test(a_while_loop_hands_tensors_on),
      cmocka_unit_test(slices_and_constants_take_other_shapes),
      cmocka_unit_test(accumulators_and_calls_agree),
      cmocka_unit_test(a_use_of_a_released_buffer_is_found),
      cmocka_unit_test(unwritten_memory_is_not_a_number),
      cmocka_unit_test(products_into_parts_of_a_buffer_are_kept),
      cmocka_unit_test(copies_that_are_put_off_agree),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
