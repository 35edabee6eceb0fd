/* Lowering and meaning of HLO that moves data: reshape, transpose, slice, pad, concatenate, gather, scatter, … */
#include "linalg_support.h"

#define N(a) (int)(sizeof(a) / sizeof(a)[0])
static const enum dtype TYPES[] = {DT_F32, DT_BF16, DT_I32, DT_U8, DT_BOOL, DT_F8E5M2};

static void reshape_one(enum dtype t, int from_rank, const int64_t *from, int to_rank, const int64_t *to) {
  struct program p;
  begin(&p);
  hlo_val x = input(&p, t, 0, 1, from_rank, from);
  /* once between computations, once alone */
  hlo_val out[] = {
      hlo_unary(&p.b, HLO_COPY, hlo_reshape(&p.b, x, to_rank, to)),
      hlo_select(&p.b, hlo_compare(&p.b, HLO_EQ, hlo_reshape(&p.b, x, to_rank, to), hlo_reshape(&p.b, x, to_rank, to)),
                 hlo_reshape(&p.b, x, to_rank, to), hlo_reshape(&p.b, x, to_rank, to))};
  check_results(&p, 2, out);
  end(&p);
}

static void reshapes_agree(void **state) {
  static const struct {
    int from_rank;
    int64_t from[5];
    int to_rank;
    int64_t to[5];
  } cases[] = {
      {2, {6, 4}, 1, {24}},
      {1, {24}, 3, {2, 3, 4}},
      {2, {6, 4}, 2, {4, 6}},
      {2, {6, 4}, 2, {24, 1}},
      {3, {2, 3, 4}, 2, {6, 4}},
      {3, {2, 3, 4}, 2, {2, 12}},
      {3, {4, 1, 5}, 2, {4, 5}},
      {2, {4, 5}, 4, {1, 4, 1, 5}},
      {0, {0}, 1, {1}},
      {1, {1}, 0, {0}},
      {0, {0}, 3, {1, 1, 1}},
      {3, {1, 1, 1}, 0, {0}},
      {2, {1, 1}, 1, {1}},
      {2, {1, 1}, 3, {1, 1, 1}},
      {2, {0, 3}, 2, {5, 0}},
      {1, {0}, 3, {0, 4, 2}},
      {5, {2, 3, 1, 2, 2}, 2, {6, 4}},
      {2, {6, 4}, 5, {2, 3, 1, 2, 2}},
      {3, {2, 3, 4}, 3, {4, 3, 2}},
      {2, {130, 517}, 2, {517, 130}},
      {3, {1, 6, 1}, 2, {2, 3}},
      {2, {2, 3}, 3, {1, 6, 1}},
  };
  (void)state;
  for (int k = 0; k < N(cases); k++)
    for (int t = 0; t < (k < 3 ? N(TYPES) : 1); t++)
      reshape_one(TYPES[t], cases[k].from_rank, cases[k].from, cases[k].to_rank, cases[k].to);
}

static void transposes_agree(void **state) {
  (void)state;
  for (int t = 0; t < N(TYPES); t++) {
    struct program p;
    begin(&p);
    hlo_val x = input(&p, TYPES[t], 0, 1, DIMS(3, 5)), y = input(&p, TYPES[t], 0, 1, DIMS(2, 3, 4)),
            z = input(&p, TYPES[t], 0, 1, DIMS(2, 1, 3, 2, 2)), e = input(&p, TYPES[t], 0, 1, DIMS(0, 3));
    hlo_val out[] = {hlo_transpose(&p.b, x, INTS(1, 0)),          hlo_transpose(&p.b, x, INTS(0, 1)),
                     hlo_transpose(&p.b, y, INTS(2, 0, 1)),       hlo_transpose(&p.b, y, INTS(0, 2, 1)),
                     hlo_transpose(&p.b, z, INTS(4, 2, 0, 3, 1)), hlo_transpose(&p.b, e, INTS(1, 0))};
    check_results(&p, 6, out);
    expect_text(&p, "linalg.transpose");
    end(&p);
  }
}

static void slices_agree(void **state) {
  static const struct hlo_slice_dim a[] = {{1, 4, 1}, {0, 7, 2}}, b[] = {{0, 5, 1}, {3, 3, 1}},
                                    c[] = {{4, 5, 1}, {0, 9, 1}}, whole[] = {{0, 5, 1}, {0, 9, 1}};
  (void)state;
  for (int t = 0; t < N(TYPES); t++) {
    struct program p;
    begin(&p);
    hlo_val x = input(&p, TYPES[t], 0, 1, DIMS(5, 9));
    hlo_val out[] = {hlo_slice(&p.b, x, a), hlo_slice(&p.b, x, b), hlo_reshape(&p.b, hlo_slice(&p.b, x, c), DIMS(9)),
                     hlo_slice(&p.b, x, whole), hlo_transpose(&p.b, hlo_slice(&p.b, x, a), INTS(1, 0))};
    check_results(&p, 5, out);
    end(&p);
  }
}

static void pads_agree(void **state) {
  static const struct hlo_pad_dim a[] = {{1, 2, 0}, {0, 1, 0}}, b[] = {{0, 0, 2}, {1, 0, 1}},
                                  c[] = {{-1, 2, 0}, {0, -2, 0}}, d[] = {{-2, -1, 1}, {-1, 3, 2}},
                                  e[] = {{-5, 7, 0}, {0, 0, 0}};
  (void)state;
  for (int t = 0; t < N(TYPES); t++) {
    struct program p;
    begin(&p);
    hlo_val x = input(&p, TYPES[t], 0, 1, DIMS(4, 5)), v = input(&p, TYPES[t], 0, 1, SCALAR);
    hlo_val zero = hlo_scalar(&p.b, TYPES[t], 0);
    hlo_val out[] = {hlo_pad(&p.b, x, zero, a), hlo_pad(&p.b, x, zero, b), hlo_pad(&p.b, x, v, c),
                     hlo_pad(&p.b, x, zero, d), hlo_pad(&p.b, x, v, e)};
    check_results(&p, 5, out);
    end(&p);
  }
}

static void concatenates_agree(void **state) {
  (void)state;
  for (int t = 0; t < N(TYPES); t++) {
    struct program p;
    begin(&p);
    hlo_val x = input(&p, TYPES[t], 0, 1, DIMS(2, 3)), y = input(&p, TYPES[t], 0, 1, DIMS(2, 4)),
            e = input(&p, TYPES[t], 0, 1, DIMS(2, 0));
    hlo_val out[] = {hlo_concatenate(&p.b, 2, (hlo_val[]){x, y}, 1), hlo_concatenate(&p.b, 3, (hlo_val[]){x, e, x}, 1),
                     hlo_concatenate(&p.b, 2, (hlo_val[]){x, x}, 0), hlo_concatenate(&p.b, 1, (hlo_val[]){y}, 0),
                     hlo_concatenate(&p.b, 2, (hlo_val[]){e, e}, 0)};
    check_results(&p, 5, out);
    end(&p);
  }
}

/* ---- gather, scatter ---------------------------------------------------------------------------------- */

static hlo_val take(struct program *p, hlo_val x, hlo_val idx, int axis) {
  int64_t offset[HLO_RANK_MAX], sizes[HLO_RANK_MAX];
  int n = 0, q = idx->shape.rank;
  for (int d = 0; d < x->shape.rank; d++) {
    sizes[d] = d == axis ? 1 : x->shape.dims[d];
    if (d != axis)
      offset[n++] = d < axis ? d : d - 1 + q;
  }
  struct hlo_gather_dims g = {.offset_dims = list(p, n, offset),
                              .collapsed_slice_dims = LIST(p, axis),
                              .start_index_map = LIST(p, axis),
                              .slice_sizes = list(p, x->shape.rank, sizes),
                              .index_vector_dim = q};
  return hlo_gather(&p->b, x, idx, &g);
}

static void takes_agree(void **state) {
  static const enum dtype index_types[] = {DT_I32, DT_I64, DT_U8, DT_U32};
  (void)state;
  for (int t = 0; t < N(TYPES); t++) {
    struct program p;
    begin(&p);
    hlo_val x = input(&p, TYPES[t], 0, 1, DIMS(6, 5)), y = input(&p, TYPES[t], 0, 1, DIMS(3, 4, 5));
    enum dtype it = index_types[t % N(index_types)];
    hlo_val i1 = input(&p, it, 0, 4, DIMS(7)), i2 = input(&p, it, 0, 3, DIMS(2, 3)), i0 = input(&p, it, 0, 2, SCALAR);
    hlo_val out[] = {take(&p, x, i1, 0), take(&p, x, i2, 1), take(&p, y, i2, 1), take(&p, y, i1, 2),
                     take(&p, y, i0, 0)};
    check_results(&p, 5, out);
    expect_text(&p, "tensor.extract");
    end(&p);
  }
}

static void gather_clamps_its_starts(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val x = input(&p, DT_F32, -1, 1, DIMS(6, 5)), i = input_values(&p, DT_I32, VALUES(-3, 0, 5, 6, 99));
  check_result(&p, take(&p, x, i, 0));
  end(&p);
}

static void constant_indices_need_no_clamp(void **state) {
  struct program p;
  const int32_t v[] = {4, 3, 2, 1, 0};
  (void)state;
  begin(&p);
  hlo_val x = input(&p, DT_F32, -1, 1, DIMS(5, 6));
  check_result(&p, take(&p, x, hlo_constant(&p.b, hlo_shape_array(&p.arena, DT_I32, DIMS(5)), v), 0));
  expect_no_text(&p, "arith.minsi");
  end(&p);
}

/* windows, several index components, an index vector in the first dimension */
static void general_gathers_agree(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val x = input(&p, DT_F32, -1, 1, DIMS(6, 7, 3)), i = input(&p, DT_I32, -2, 8, DIMS(4, 2)),
          j = input(&p, DT_I32, 0, 5, DIMS(2, 4, 2));
  struct hlo_gather_dims window = {.offset_dims = LIST(&p, 1, 2, 3),
                                   .start_index_map = LIST(&p, 1, 0),
                                   .slice_sizes = LIST(&p, 2, 3, 3),
                                   .index_vector_dim = 1};
  struct hlo_gather_dims points = {.offset_dims = LIST(&p, 0),
                                   .collapsed_slice_dims = LIST(&p, 0, 1),
                                   .start_index_map = LIST(&p, 0, 1),
                                   .slice_sizes = LIST(&p, 1, 1, 3),
                                   .index_vector_dim = 0};
  hlo_val out[] = {hlo_gather(&p.b, x, i, &window), hlo_gather(&p.b, x, j, &points)};
  check_results(&p, 2, out);
  end(&p);
}

static void scatters_agree(void **state) {
  (void)state;
  for (int t = 0; t < N(TYPES); t++) {
    struct program p;
    begin(&p);
    hlo_val x = input(&p, TYPES[t], 0, 1, DIMS(6, 5)), i = input_values(&p, DT_I32, VALUES(4, 0, 4, 9, -1)),
            u = input(&p, TYPES[t], 0, 1, DIMS(5, 5)), v = input(&p, TYPES[t], 0, 1, DIMS(6, 5)),
            pts = input(&p, DT_I32, 0, 5, DIMS(3, 2)), w = input(&p, TYPES[t], 0, 1, DIMS(3)),
            win = input(&p, TYPES[t], 0, 1, DIMS(3, 2, 2));
    /* rows; columns; points; windows */
    struct hlo_scatter_dims rows = {.update_window_dims = LIST(&p, 1),
                                    .inserted_window_dims = LIST(&p, 0),
                                    .scatter_dims_to_operand_dims = LIST(&p, 0),
                                    .index_vector_dim = 1};
    struct hlo_scatter_dims cols = {.update_window_dims = LIST(&p, 0),
                                    .inserted_window_dims = LIST(&p, 1),
                                    .scatter_dims_to_operand_dims = LIST(&p, 1),
                                    .index_vector_dim = 1};
    struct hlo_scatter_dims points = {
        .inserted_window_dims = LIST(&p, 0, 1), .scatter_dims_to_operand_dims = LIST(&p, 0, 1), .index_vector_dim = 1};
    struct hlo_scatter_dims windows = {
        .update_window_dims = LIST(&p, 1, 2), .scatter_dims_to_operand_dims = LIST(&p, 1, 0), .index_vector_dim = 1};
    hlo_val out[] = {hlo_scatter_assign(&p.b, x, i, u, &rows), hlo_scatter_assign(&p.b, x, i, v, &cols),
                     hlo_scatter_assign(&p.b, x, pts, w, &points), hlo_scatter_assign(&p.b, x, pts, win, &windows), x};
    check_results(&p, 5, out);
    end(&p);
  }
}

/* A window with a dimension of size 1 beside the inserted one. */
static void scatters_of_windows_with_units_agree(void **state) {
  (void)state;
  struct program p;
  begin(&p);
  hlo_val cache = input(&p, DT_F32, 0, 1, DIMS(1, 2, 6, 3)), i = input_values(&p, DT_I32, VALUES(4, 0, 4, 9, -1)),
          kept = input(&p, DT_F32, 0, 1, DIMS(1, 2, 5, 3));
  struct hlo_scatter_dims dims = {.update_window_dims = LIST(&p, 0, 1, 3),
                                  .inserted_window_dims = LIST(&p, 2),
                                  .scatter_dims_to_operand_dims = LIST(&p, 2),
                                  .index_vector_dim = 1};
  check_result(&p, hlo_scatter_assign(&p.b, cache, i, kept, &dims));
  expect_text(&p, "tensor<1x2x1x3xf32> into tensor<1x2x6x3xf32>");
  end(&p);
}

/* ---- dynamic slices ----------------------------------------------------------------------------------- */

static void dynamic_slices_agree(void **state) {
  static const double starts[] = {0, 2, 3, 99, -5};
  (void)state;
  for (int k = 0; k < N(starts); k++) {
    struct program p;
    begin(&p);
    hlo_val x = input(&p, DT_F32, -1, 1, DIMS(6, 5)), u = input(&p, DT_F32, -1, 1, DIMS(2, 3));
    hlo_val s = hlo_reshape(&p.b, input_values(&p, DT_I32, 1, &starts[k]), SCALAR),
            c = hlo_scalar(&p.b, DT_I32, starts[k]);
    hlo_val out[] = {hlo_dynamic_slice(&p.b, x, (hlo_val[]){s, c}, INTS(2, 3)),
                     hlo_dynamic_slice(&p.b, x, (hlo_val[]){c, s}, INTS(1, 5)),
                     hlo_dynamic_update_slice(&p.b, x, u, (hlo_val[]){s, c}),
                     hlo_dynamic_update_slice(&p.b, x, u, (hlo_val[]){c, s}), x};
    check_results(&p, 5, out);
    end(&p);
  }
}

/* Only an aliased parameter may be written in place. */
static void updates_leave_other_inputs_alone(void **state) {
  (void)state;
  for (int aliased = 0; aliased < 2; aliased++) {
    struct program p;
    begin(&p);
    hlo_val x = input(&p, DT_F32, -1, 1, DIMS(6, 5)), u = input(&p, DT_F32, -1, 1, DIMS(2, 5)),
            zero = hlo_scalar(&p.b, DT_I32, 0);
    if (aliased) {
      p.module->n_aliases = 1;
      p.module->aliases = arena_new(&p.arena, struct hlo_alias);
      *p.module->aliases = (struct hlo_alias){0, 0, "p0", true};
    }
    check_result(&p, hlo_dynamic_update_slice(&p.b, x, u, (hlo_val[]){zero, zero}));
    if (aliased) {
      expect_text(&p, "nkipy.alias = 0 : i64");
      expect_no_text(&p, "linalg.copy");
    } else {
      expect_text(&p, "linalg.copy");
    }
    end(&p);
  }
}

static void inputs_returned_unchanged_are_copied(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  check_result(&p, input(&p, DT_F32, -1, 1, DIMS(3, 4)));
  expect_text(&p, "linalg.copy");
  end(&p);
}

static void no_results_and_many_results_work(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  input(&p, DT_F32, -1, 1, DIMS(3, 4));
  check_results(&p, 0, NULL);
  end(&p);
  begin(&p);
  hlo_val x = input(&p, DT_F32, -1, 1, DIMS(3, 4)), y = hlo_unary(&p.b, HLO_EXP, x);
  hlo_val out[] = {y, y, x, hlo_reshape(&p.b, y, DIMS(12)), hlo_scalar(&p.b, DT_I8, 3)};
  check_results(&p, 5, out);
  end(&p);
}

static void custom_calls_become_calls(void **state) {
  struct program p;
  MlirModule m;
  (void)state;
  begin(&p);
  hlo_val x = input(&p, DT_F32, -1, 1, DIMS(3, 4));
  const struct hlo_custom seven = {"Opaque", "7", 0, NULL, false};
  const struct hlo_operand_alias alias = {{0, NULL}, 0};
  const struct hlo_custom eight = {"Opaque", "8", 1, &alias, true};
  hlo_val c = hlo_custom_call(&p.b, &seven, x->shape, 1, &x);
  hlo_val again = hlo_custom_call(&p.b, &seven, x->shape, 1, &c);
  hlo_val other = hlo_custom_call(&p.b, &eight, x->shape, 1, &again);
  assert_int_equal(hlo_finish(&p.b, 1, &other, (const char *[]){"o"}), ST_OK);
  assert_int_equal(linalg_from_hlo(&ir, p.module, &p.ds, &m), ST_OK);
  struct buf b;
  buf_init(&b, 1 << 20);
  mlirOperationPrint(mlirModuleGetOperation(m), append_text, &b);
  const char *first = strstr(buf_text(&b), "call @Opaque(");
  assert_non_null(first);
  assert_non_null(strstr(first + 1, "call @Opaque("));
  const char *declared = strstr(buf_text(&b), "func.func private @Opaque(tensor<3x4xf32>) -> tensor<3x4xf32>");
  assert_non_null(declared);
  assert_non_null(strstr(declared, "{nkipy.custom_call = {backend_config = \"7\"}}"));
  assert_non_null(strstr(buf_text(&b), "call @Opaque_1("));
  assert_non_null(strstr(buf_text(&b), "{nkipy.custom_call = {aliases = dense<0> : tensor<1x2xi64>, "
                                       "backend_config = \"8\", has_collectives}}"));
  buf_clear(&b);
  mlirModuleDestroy(m);
  end(&p);
}

/* One declaration for each meaning, beside a kernel that has the name itself. */
static void collectives_become_calls(void **state) {
  static const char *const texts[] = {
      "call @all_reduce(",
      "call @all_reduce_1(",
      "func.func private @all_reduce(tensor<3x4xi8>) -> tensor<3x4xi8>",
      "{kind = \"all_reduce\", op = \"max\", replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, unsigned}",
      "{kind = \"all_reduce\", op = \"min\", replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, unsigned}",
      "{dim = 1 : i64, kind = \"all_gather\", replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}",
      "func.func private @all_gather_1(tensor<3x4xi8>) -> tensor<3x8xi8>",
  };
  struct program p;
  MlirModule m;
  (void)state;
  begin(&p);
  const struct hlo_ints pairs[] = {LIST(&p, 0, 1), LIST(&p, 2, 3)};
  const struct hlo_groups groups = {2, pairs};
  p.module->name = "all_gather";
  hlo_val x = input(&p, DT_U8, 0, 1, DIMS(3, 4));
  hlo_val a = hlo_collective(&p.b, HLO_ALL_REDUCE, x, &groups, HLO_MAXIMUM, 0);
  a = hlo_collective(&p.b, HLO_ALL_REDUCE, a, &groups, HLO_MAXIMUM, 0);
  a = hlo_collective(&p.b, HLO_ALL_REDUCE, a, &groups, HLO_MINIMUM, 0);
  a = hlo_collective(&p.b, HLO_ALL_GATHER, a, &groups, HLO_ADD, 1);
  assert_int_equal(hlo_finish(&p.b, 1, &a, (const char *[]){"o"}), ST_OK);
  assert_int_equal(linalg_from_hlo(&ir, p.module, &p.ds, &m), ST_OK);
  struct buf b;
  buf_init(&b, 1 << 20);
  mlirOperationPrint(mlirModuleGetOperation(m), append_text, &b);
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
    if (!strstr(buf_text(&b), texts[k]))
      fail_msg("no %s in\n%s", texts[k], buf_text(&b));
  assert_null(strstr(buf_text(&b), "@all_reduce_2"));
  buf_clear(&b);
  mlirModuleDestroy(m);
  end(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reshapes_agree),
      cmocka_unit_test(transposes_agree),
      cmocka_unit_test(slices_agree),
      cmocka_unit_test(pads_agree),
      cmocka_unit_test(concatenates_agree),
      cmocka_unit_test(takes_agree),
      cmocka_unit_test(gather_clamps_its_starts),
      cmocka_unit_test(constant_indices_need_no_clamp),
      cmocka_unit_test(general_gathers_agree),
      cmocka_unit_test(scatters_agree),
      cmocka_unit_test(scatters_of_windows_with_units_agree),
      cmocka_unit_test(dynamic_slices_agree),
      cmocka_unit_test(updates_leave_other_inputs_alone),
      cmocka_unit_test(inputs_returned_unchanged_are_copied),
      cmocka_unit_test(no_results_and_many_results_work),
      cmocka_unit_test(custom_calls_become_calls),
      cmocka_unit_test(collectives_become_calls),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
