/* test_hlo_build: shape rules of the builders, what they refuse and in which words. */
#include <math.h>

#include "hlo/literal.h"
#include "hlo_test.h"

/* The builder refused with exactly this sentence; forget it. */
#define assert_refused(t, v, sentence) \
  do { \
    assert_null(v); \
    assert_int_equal((t)->b.err.code, ST_INPUT); \
    assert_string_equal((t)->b.err.text, sentence); \
    (t)->b.err = (struct error){0}; \
  } while (0)

static void elementwise_operands_must_be_alike(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 3), y = PARAM(t, "y", DT_F32, 3), z = PARAM(t, "z", DT_I32, 2, 3);
  assert_shape(t, hlo_binary(&t->b, HLO_ADD, x, x), "f32[2,3]");
  assert_refused(t, hlo_binary(&t->b, HLO_ADD, x, y),
                 "add: operands f32[2,3] and f32[3] must have the same shape and data type");
  assert_refused(t, hlo_binary(&t->b, HLO_MULTIPLY, x, z),
                 "multiply: operands f32[2,3] and s32[2,3] must have the same shape and data type");
  assert_refused(t, hlo_binary(&t->b, HLO_AND, x, x), "and: operands f32[2,3] must be boolean or integer");
  assert_refused(t, hlo_unary(&t->b, HLO_EXP, z), "exponential: operand s32[2,3] must be floating-point");
  assert_refused(t, hlo_unary(&t->b, HLO_ADD, z), "add: is not unary");
  assert_refused(t, hlo_compare(&t->b, HLO_LT, x, y),
                 "compare: operands f32[2,3] and f32[3] must have the same shape and data type");
  assert_shape(t, hlo_compare(&t->b, HLO_LT, x, x), "pred[2,3]");
}

static void the_first_error_stays_and_null_operands_give_null(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2), y = PARAM(t, "y", DT_F32, 3);
  hlo_val bad = hlo_binary(&t->b, HLO_ADD, x, y);
  int before = t->b.module->entry->n_instrs;
  assert_null(hlo_unary(&t->b, HLO_EXP, bad));
  assert_null(hlo_reshape(&t->b, bad, 0, NULL));
  assert_null(hlo_reduce(&t->b, HLO_ADD, bad, bad, 0, NULL));
  assert_null(hlo_unary(&t->b, HLO_EXP, x));
  assert_int_equal(t->b.module->entry->n_instrs, before);
  assert_string_equal(t->b.err.text, "add: operands f32[2] and f32[3] must have the same shape and data type");
  assert_int_equal(hlo_finish(&t->b, 1, &x, (const char *[]){"o"}), ST_INPUT);
}

static void select_wants_a_predicate_of_the_full_shape(void **state) {
  struct test *t = *state;
  hlo_val p = PARAM(t, "p", DT_BOOL, 2), x = PARAM(t, "x", DT_F32, 2), y = PARAM(t, "y", DT_F32, 3);
  assert_shape(t, hlo_select(&t->b, p, x, x), "f32[2]");
  assert_refused(t, hlo_select(&t->b, x, x, x), "select: predicate f32[2] must be boolean");
  assert_refused(t, hlo_select(&t->b, p, y, y),
                 "select: predicate pred[2] must have the dimensions of the branches f32[3]");
}

static void broadcast_names_the_result_dimension_of_each_dimension(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 3), one = PARAM(t, "one", DT_F32, 1, 3);
  assert_shape(t, hlo_broadcast(&t->b, x, 3, DIMS(2, 5, 3), DIMS(0, 2)), "f32[2,5,3]");
  assert_refused(t, hlo_broadcast(&t->b, x, 3, DIMS(2, 5, 3), DIMS(0, 0)),
                 "broadcast: dimensions {0,0} of f32[2,3] must differ and exist in the result f32[2,5,3]");
  assert_shape(t, hlo_broadcast(&t->b, x, 3, DIMS(3, 5, 2), DIMS(2, 0)), "f32[3,5,2]");
  assert_refused(t, hlo_broadcast(&t->b, one, 2, DIMS(4, 3), DIMS(0, 1)),
                 "broadcast: dimension 0 of f32[1,3] does not have the size of dimension 0 of the result f32[4,3]");
}

static void reshape_keeps_the_number_of_elements(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 3), e = PARAM(t, "e", DT_F32, 0, 3);
  assert_shape(t, hlo_reshape(&t->b, x, 1, DIMS(6)), "f32[6]");
  assert_shape(t, hlo_reshape(&t->b, e, 3, DIMS(7, 0, 2)), "f32[7,0,2]");
  assert_ptr_equal(hlo_reshape(&t->b, x, 2, DIMS(2, 3)), x);
  assert_refused(t, hlo_reshape(&t->b, x, 1, DIMS(5)), "reshape: f32[2,3] has 6 elements, f32[5] has 5");
  assert_refused(t, hlo_reshape(&t->b, x, 2, DIMS(-2, -3)), "reshape: f32[-2,-3] has a negative dimension");
}

static void transpose_wants_a_permutation(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 3, 4);
  assert_shape(t, hlo_transpose(&t->b, x, DIMS(2, 0, 1)), "f32[4,2,3]");
  assert_refused(t, hlo_transpose(&t->b, x, DIMS(0, 0, 1)),
                 "transpose: {0,0,1} is not a permutation of the dimensions of f32[2,3,4]");
}

static void slice_and_pad_compute_sizes(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 10), v = hlo_scalar(&t->b, DT_F32, 0);
  assert_shape(t, hlo_slice(&t->b, x, (struct hlo_slice_dim[]){{1, 10, 4}}), "f32[3]");
  assert_shape(t, hlo_slice(&t->b, x, (struct hlo_slice_dim[]){{3, 3, 1}}), "f32[0]");
  assert_refused(t, hlo_slice(&t->b, x, (struct hlo_slice_dim[]){{0, 11, 1}}),
                 "slice: range [0:11:1] does not fit dimension 0 of f32[10]");
  assert_shape(t, hlo_pad(&t->b, x, v, (struct hlo_pad_dim[]){{1, -2, 2}}), "f32[27]");
  assert_refused(t, hlo_pad(&t->b, x, v, (struct hlo_pad_dim[]){{-6, -5, 0}}),
                 "pad: padding -6_-5_0 does not fit dimension 0 of f32[10]");
  assert_refused(t, hlo_pad(&t->b, x, x, (struct hlo_pad_dim[]){{0, 0, 0}}),
                 "pad: the padding value f32[10] must be f32[]");
}

static void concatenate_adds_up_one_dimension(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 3), y = PARAM(t, "y", DT_F32, 2, 5), z = PARAM(t, "z", DT_F32, 1, 5);
  assert_shape(t, hlo_concatenate(&t->b, 3, (hlo_val[]){x, y, x}, 1), "f32[2,11]");
  assert_refused(t, hlo_concatenate(&t->b, 2, (hlo_val[]){x, z}, 1),
                 "concatenate: operands f32[2,3] and f32[1,5] must be alike in all but dimension 1");
  assert_refused(t, hlo_concatenate(&t->b, 2, (hlo_val[]){x, y}, 2),
                 "concatenate: dimension {2} of f32[2,3] does not exist");
}

static void reduce_drops_dimensions_and_shares_its_combiner(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 3, 4), zero = hlo_scalar(&t->b, DT_F32, 0);
  hlo_val r = hlo_reduce(&t->b, HLO_ADD, x, zero, 2, DIMS(2, 0));
  assert_shape(t, r, "f32[3]");
  assert_string_equal(r->called[0]->name, "add_float32_computation");
  assert_string_equal(r->called[0]->params[0]->name, "add_float32_lhs");
  assert_string_equal(r->called[0]->params[1]->name, "add_float32_rhs");
  assert_string_equal(r->called[0]->root->name, "add_float32_result");
  assert_ptr_equal(hlo_reduce(&t->b, HLO_ADD, x, zero, 1, DIMS(1))->called[0], r->called[0]);
  assert_ptr_not_equal(hlo_reduce(&t->b, HLO_MAXIMUM, x, zero, 1, DIMS(1))->called[0], r->called[0]);
  assert_int_equal(t->b.module->n_computations, 3);
  assert_ptr_equal(*t->b.module->entry_link, t->b.module->entry);
  assert_refused(t, hlo_reduce(&t->b, HLO_ADD, x, zero, 2, DIMS(1, 1)),
                 "reduce: dimensions {1,1} are not different dimensions of f32[2,3,4]");
  assert_refused(t, hlo_reduce(&t->b, HLO_SUBTRACT, x, zero, 1, DIMS(1)),
                 "reduce: subtract does not combine f32[2,3,4]");
  assert_refused(t, hlo_reduce(&t->b, HLO_ADD, x, x, 1, DIMS(1)), "reduce: the initial value f32[2,3,4] must be f32[]");
}

static void dot_puts_batch_before_free_dimensions(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_BF16, 7, 2, 3), y = PARAM(t, "y", DT_BF16, 3, 4, 7), z = PARAM(t, "z", DT_F32, 2, 3);
  hlo_val w = PARAM(t, "w", DT_F32, 4, 5);
  hlo_val d = hlo_dot(&t->b, x, y, &(struct hlo_dot_dims){INTS(2), INTS(0), INTS(0), INTS(2)}, DT_F32);
  assert_shape(t, d, "f32[7,2,4]");
  assert_refused(t, hlo_dot(&t->b, z, w, &(struct hlo_dot_dims){INTS(1), INTS(0), {0}, {0}}, DT_F32),
                 "dot: lhs f32[2,3] and rhs f32[4,5] contract dimensions of size 3 and 4");
  assert_refused(t, hlo_dot(&t->b, z, w, &(struct hlo_dot_dims){INTS(1), {0}, {0}, {0}}, DT_F32),
                 "dot: lhs f32[2,3] and rhs f32[4,5] contract 1 and 0 dimensions");
  assert_refused(t, hlo_dot(&t->b, z, z, &(struct hlo_dot_dims){INTS(1), INTS(1), INTS(1), INTS(1)}, DT_F32),
                 "dot: batch {1} and contracting {1} are not different dimensions of lhs f32[2,3]");
  assert_refused(t, hlo_dot(&t->b, z, z, &(struct hlo_dot_dims){INTS(1), INTS(1), {0}, {0}}, DT_BF16),
                 "dot: operands f32[2,3] and f32[2,3] do not add up to bf16");
}

static void gather_follows_its_dimension_numbers(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 6, 4), i = PARAM(t, "i", DT_I32, 5, 3), f = PARAM(t, "f", DT_F32, 5);
  struct hlo_gather_dims g = {.offset_dims = INTS(2),
                              .collapsed_slice_dims = INTS(0),
                              .start_index_map = INTS(0),
                              .slice_sizes = INTS(1, 4),
                              .index_vector_dim = 2};
  assert_shape(t, hlo_gather(&t->b, x, i, &g), "f32[5,3,4]");
  assert_refused(t, hlo_gather(&t->b, x, f, &g), "gather: indices f32[5] must be integers");
  g.slice_sizes = INTS(2, 4);
  assert_refused(t, hlo_gather(&t->b, x, i, &g),
                 "gather: collapsed dimension 0 of f32[6,4] has slice size 2 instead of 1");
  g.slice_sizes = INTS(1, 5);
  assert_refused(t, hlo_gather(&t->b, x, i, &g), "gather: slice sizes {1,5} do not fit f32[6,4]");
  g.slice_sizes = INTS(1, 4);
  g.index_vector_dim = 1;
  assert_refused(t, hlo_gather(&t->b, x, i, &g),
                 "gather: indices s32[5,3] hold vectors of 3, start_index_map {0} has 1 entries");
}

static void scatter_wants_updates_that_fit(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 6, 4), i = PARAM(t, "i", DT_I32, 2, 1), u = PARAM(t, "u", DT_F32, 2, 4),
          v = PARAM(t, "v", DT_F32, 3, 4);
  struct hlo_scatter_dims s = {.update_window_dims = INTS(1),
                               .inserted_window_dims = INTS(0),
                               .scatter_dims_to_operand_dims = INTS(0),
                               .index_vector_dim = 1};
  hlo_val r = hlo_scatter_assign(&t->b, x, i, u, &s);
  assert_shape(t, r, "f32[6,4]");
  assert_string_equal(r->called[0]->name, "scatter_assign_float32_computation");
  assert_ptr_equal(r->called[0]->root->operands[0], r->called[0]->params[1]);
  assert_refused(t, hlo_scatter_assign(&t->b, x, i, v, &s),
                 "scatter: dimension 0 of updates f32[3,4] does not fit f32[6,4] with indices s32[2,1]");
}

static void dynamic_slices_want_one_start_per_dimension(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 6, 4), u = PARAM(t, "u", DT_F32, 7, 1), i = SCALAR_PARAM(t, "i", DT_I32),
          f = SCALAR_PARAM(t, "f", DT_F32);
  assert_shape(t, hlo_dynamic_slice(&t->b, x, (hlo_val[]){i, i}, DIMS(2, 4)), "f32[2,4]");
  assert_refused(t, hlo_dynamic_slice(&t->b, x, (hlo_val[]){i, i}, DIMS(2, 5)),
                 "dynamic-slice: sizes {2,5} do not fit f32[6,4]");
  assert_refused(t, hlo_dynamic_slice(&t->b, x, (hlo_val[]){f, f}, DIMS(2, 4)),
                 "dynamic-slice: start index f32[] must be a 0-d integer like the others");
  assert_refused(t, hlo_dynamic_update_slice(&t->b, x, u, (hlo_val[]){i, i}),
                 "dynamic-update-slice: update f32[7,1] does not fit into f32[6,4]");
}

static void shapes_that_cannot_exist_are_refused(void **state) {
  struct test *t = *state;
  int64_t many[17];
  for (int k = 0; k < 17; k++)
    many[k] = 1;
  assert_refused(t, hlo_iota(&t->b, DT_F32, 17, many, 0), "iota: 17 dimensions; at most 16 are possible");
  assert_refused(t, hlo_full(&t->b, DT_F32, 3, DIMS(1LL << 31, 1LL << 31, 4), 0),
                 "broadcast: f32[2147483648,2147483648,4] has too many elements");
}

static void scalars_round_to_nearest_even(void **state) {
  static const struct {
    enum dtype t;
    double v;
    uint32_t bits;
  } cases[] = {
      {DT_F16, 1, 0x3c00},       {DT_F16, 65504, 0x7bff},     {DT_F16, 65520, 0x7c00},
      {DT_F16, 65519, 0x7bff},   {DT_F16, 0x1p-24, 1},        {DT_F16, 0x1p-25, 0},
      {DT_F16, 0x1.8p-25, 1},    {DT_F16, -0.0, 0x8000},      {DT_BF16, 1, 0x3f80},
      {DT_BF16, 3.0e38, 0x7f62}, {DT_BF16, 1e39, 0x7f80},     {DT_BF16, 1.00390625, 0x3f80},
      {DT_F8E4M3FN, 448, 0x7e},  {DT_F8E4M3FN, 464, 0x7e},    {DT_F8E4M3FN, 465, 0x7f},
      {DT_F8E4M3, 240, 0x77},    {DT_F8E4M3, 248, 0x78},      {DT_F8E5M2, 57344, 0x7b},
      {DT_F8E5M2, 61440, 0x7c},  {DT_F8E5M2, INFINITY, 0x7c}, {DT_F8E4M3FN, INFINITY, 0x7f},
      {DT_I8, 300, 44},          {DT_I8, -1.9, 0xff},         {DT_U8, -1, 0xff},
      {DT_BOOL, 0.5, 1},         {DT_I32, 1e300, 0xffffffff},
  };
  (void)state;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    uint32_t bits = 0;
    char bytes[8] = {0};
    hlo_literal_store(cases[k].t, cases[k].v, bytes);
    memcpy(&bits, bytes, dtype_size(cases[k].t));
    if (bits != cases[k].bits)
      fail_msg("%s(%g): %#x instead of %#x", dtype_numpy_name(cases[k].t), cases[k].v, bits, cases[k].bits);
  }
}

static void narrow_floats_survive_a_round_trip_of_every_bit_pattern(void **state) {
  static const enum dtype types[] = {DT_F16, DT_BF16, DT_F8E4M3, DT_F8E4M3FN, DT_F8E5M2};
  (void)state;
  for (size_t k = 0; k < sizeof types / sizeof *types; k++)
    for (uint32_t bits = 0; bits < 1u << (8 * dtype_size(types[k])); bits++) {
      double v = hlo_literal_decode_float(types[k], bits);
      if (!isnan(v))
        assert_int_equal(hlo_literal_encode_float(types[k], v), bits);
    }
}

static void finish_makes_a_copy_a_tuple_or_nothing(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2);
  assert_int_equal(hlo_finish(&t->b, 1, &x, (const char *[]){"output0"}), ST_OK);
  assert_int_equal(t->b.module->entry->root->op, HLO_COPY);
  assert_string_equal(t->b.module->entry->root->name, "result");
  assert_string_equal(t->b.module->output_names[0], "output0");

  struct hlo_builder b;
  hlo_builder_init(&b, hlo_module_new(&t->a, "two"));
  hlo_val y = hlo_parameter(&b, "y", x->shape);
  assert_int_equal(hlo_finish(&b, 2, (hlo_val[]){y, y}, (const char *[]){"a", "b"}), ST_OK);
  assert_shape(t, b.module->entry->root, "(f32[2], f32[2])");

  hlo_builder_init(&b, hlo_module_new(&t->a, "none"));
  assert_int_equal(hlo_finish(&b, 0, NULL, NULL), ST_OK);
  assert_null(b.module->entry->root);

  hlo_builder_init(&b, hlo_module_new(&t->a, "foreign"));
  assert_int_equal(hlo_finish(&b, 1, &x, (const char *[]){"a"}), ST_INPUT);
}

static void names_are_unique_and_spelled_for_xla(void **state) {
  struct test *t = *state;
  hlo_val p = PARAM(t, "op1", DT_F32, 2), q = hlo_unary(&t->b, HLO_EXP, p);
  assert_string_equal(p->name, "op1");
  assert_string_equal(q->name, "op1.1");
  assert_string_equal(PARAM(t, "gr\u00fcn", DT_F32, 2)->name, "gr__n");
  assert_string_equal(PARAM(t, "f32", DT_F32, 2)->name, "f32_");
  assert_string_equal(PARAM(t, "", DT_F32, 2)->name, "_");
  assert_string_equal(PARAM(t, "1x", DT_F32, 2)->name, "_1x");
  for (int k = 0; k < 1000; k++)
    hlo_unary(&t->b, HLO_EXP, p);
  assert_int_equal(hlo_finish(&t->b, 1, &q, (const char *[]){"o"}), ST_OK);
  assert_int_equal(hlo_verify(t->b.module, &t->ds), ST_OK);
}

static void automatic_names_and_names_like_them_do_not_meet(void **state) {
  struct test *t = *state;
  hlo_val p = PARAM(t, "x", DT_F32, 2), q = hlo_unary(&t->b, HLO_EXP, p);
  assert_string_equal(q->name, "op1");
  assert_string_equal(PARAM(t, "op1", DT_F32, 2)->name, "op1.1"); /* one that was given */
  assert_string_equal(hlo_unary(&t->b, HLO_EXP, p)->name, "op3");
  assert_string_equal(PARAM(t, "op5", DT_F32, 2)->name, "op5"); /* one that will be */
  assert_string_equal(hlo_unary(&t->b, HLO_EXP, p)->name, "op5.1");
  assert_string_equal(hlo_unary(&t->b, HLO_EXP, p)->name, "op6");
  assert_string_equal(PARAM(t, "op6", DT_F32, 2)->name, "op6.1");
  assert_string_equal(PARAM(t, "op007", DT_F32, 2)->name, "op007");
  assert_int_equal(hlo_finish(&t->b, 1, &q, (const char *[]){"o"}), ST_OK);
  assert_int_equal(hlo_verify(t->b.module, &t->ds), ST_OK);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, test_setup, test_teardown)
  const struct CMUnitTest tests[] = {
      T(elementwise_operands_must_be_alike),
      T(the_first_error_stays_and_null_operands_give_null),
      T(select_wants_a_predicate_of_the_full_shape),
      T(broadcast_names_the_result_dimension_of_each_dimension),
      T(reshape_keeps_the_number_of_elements),
      T(transpose_wants_a_permutation),
      T(slice_and_pad_compute_sizes),
      T(concatenate_adds_up_one_dimension),
      T(reduce_drops_dimensions_and_shares_its_combiner),
      T(dot_puts_batch_before_free_dimensions),
      T(gather_follows_its_dimension_numbers),
      T(scatter_wants_updates_that_fit),
      T(dynamic_slices_want_one_start_per_dimension),
      T(shapes_that_cannot_exist_are_refused),
      T(scalars_round_to_nearest_even),
      T(narrow_floats_survive_a_round_trip_of_every_bit_pattern),
      T(finish_makes_a_copy_a_tuple_or_nothing),
      T(names_are_unique_and_spelled_for_xla),
      T(automatic_names_and_names_like_them_do_not_meet),
  };
#undef T
  return cmocka_run_group_tests(tests, NULL, NULL);
}
