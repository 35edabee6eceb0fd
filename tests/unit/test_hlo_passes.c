/* test_hlo_passes: each rule before and after, with provenance and knobs; cse; dce. */
#include <math.h>

#include "hlo_test.h"

static int count(const struct hlo_module *m, enum hlo_op op) {
  int n = 0;
  hlo_for_each(i, m->entry) n += i->op == op;
  return n;
}

/* Ends the module with `result`, simplifies, verifies, and gives what the root then copies. */
static hlo_val simplified(struct test *t, hlo_val result) {
  struct hlo_pass_result r = {0};
  assert_int_equal(hlo_finish(&t->b, 1, &result, (const char *[]){"o"}), ST_OK);
  hlo_stage_mark(t->b.module);
  hlo_algebraic_simplifier(t->b.module, &r);
  if (hlo_verify(t->b.module, &t->ds))
    fail_msg("%s", t->ds.v[0].message);
  hlo_val now = t->b.module->entry->root->operands[0];
  assert_true(r.changed || now == result);
  return now;
}

static bool comes_from(hlo_val i, int id) {
  for (int k = 0; k < i->n_from; k++)
    if (i->from[k] == id)
      return true;
  return false;
}

static const struct hlo_knob *knob(struct test *t, int64_t tile) {
  struct hlo_knob *k = arena_new(&t->a, struct hlo_knob);
  k->loop_tile = hlo_ints_dup(&t->a, 1, &tile);
  k->partition_dim = -1;
  return k;
}

static void fuse(struct test *t, int n, hlo_val const *v) {
  struct hlo_fuse *f = arena_new(&t->a, struct hlo_fuse);
  f->n = n;
  f->v = arena_dup(&t->a, v, (size_t)n * sizeof *v);
  *(t->b.module->last_fuse ? &t->b.module->last_fuse->next : &t->b.module->fuses) = f;
  t->b.module->last_fuse = f;
}

/* ---- neutral elements -------------------------------------------------------------------------------- */

static void neutral_operands_disappear(void **state) {
  static const struct {
    enum hlo_op op;
    enum dtype t;
    double v;
    bool from_right, from_left;
  } cases[] = {
      {HLO_ADD, DT_F32, 0, true, true},      {HLO_ADD, DT_I32, 0, true, true},
      {HLO_ADD, DT_F32, 1, false, false},    {HLO_SUBTRACT, DT_F32, 0, true, false},
      {HLO_MULTIPLY, DT_F32, 1, true, true}, {HLO_MULTIPLY, DT_F32, 0, false, false},
      {HLO_DIVIDE, DT_F32, 1, true, false},  {HLO_DIVIDE, DT_I32, 1, true, false},
      {HLO_POWER, DT_F32, 1, true, false},   {HLO_POWER, DT_F32, 0.5, false, false},
      {HLO_ADD, DT_F32, NAN, false, false},  {HLO_MAXIMUM, DT_F32, 0, false, false},
  };
  for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
    size_t c = k / 2;
    bool is_right = k % 2;
    test_setup(state);
    struct test *t = *state;
    hlo_val x = PARAM(t, "x", cases[c].t, 2, 3), v = FULL(t, cases[c].t, cases[c].v, 2, 3);
    hlo_val i = is_right ? hlo_binary(&t->b, cases[c].op, x, v) : hlo_binary(&t->b, cases[c].op, v, x);
    bool wanted = is_right ? cases[c].from_right : cases[c].from_left;
    hlo_val now = simplified(t, i);
    if ((now == x) != wanted)
      fail_msg("case %zu: %s with %g on the %s", c, hlo_op_name(cases[c].op), cases[c].v, is_right ? "right" : "left");
    if (wanted)
      assert_true(comes_from(x, i->id));
    test_teardown(state);
  }
}

static void integer_times_zero_is_zero_and_float_is_not(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_I32, 4), z = FULL(t, DT_I32, 0, 4);
  assert_ptr_equal(simplified(t, hlo_binary(&t->b, HLO_MULTIPLY, x, z)), z);
}

static void square_becomes_a_product(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4), p = hlo_binary(&t->b, HLO_POWER, x, FULL(t, DT_F32, 2, 4));
  p->locs = test_loc(t, 5);
  hlo_val now = simplified(t, p);
  assert_int_equal(now->op, HLO_MULTIPLY);
  assert_ptr_equal(now->operands[0], x);
  assert_ptr_equal(now->operands[1], x);
  assert_int_equal(now->locs.v[0]->range.line, 5);
  assert_int_equal(now->n_from, 1);
  assert_int_equal(now->from[0], p->id);
}

static void numpy_scalars_are_seen_through_reshapes(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4, 5), c = hlo_scalar(&t->b, DT_F32, 3);
  hlo_val one = hlo_reshape(&t->b, c, 2, DIMS(1, 1)), back = hlo_reshape(&t->b, one, 0, NULL);
  hlo_val full = hlo_broadcast(&t->b, back, 2, DIMS(4, 5), NULL);
  hlo_val now = simplified(t, hlo_binary(&t->b, HLO_MULTIPLY, x, full));
  assert_int_equal(now->operands[1]->op, HLO_BROADCAST);
  assert_ptr_equal(now->operands[1]->operands[0], c);
  assert_true(comes_from(c, back->id) && comes_from(c, one->id));
}

/* ---- pairs ------------------------------------------------------------------------------------------- */

static void double_negation_disappears(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4), n = hlo_unary(&t->b, HLO_NEGATE, x);
  assert_ptr_equal(simplified(t, hlo_unary(&t->b, HLO_NEGATE, n)), x);
  assert_true(comes_from(x, n->id));
}

static void a_pair_whose_inner_half_has_a_knob_stays(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4), n = hlo_unary(&t->b, HLO_NEGATE, x);
  n->knob = knob(t, 4);
  hlo_val nn = hlo_unary(&t->b, HLO_NEGATE, n);
  assert_ptr_equal(simplified(t, nn), nn);
}

static void converts_merge_only_when_nothing_is_lost(void **state) {
  static const struct {
    enum dtype from, via, to;
    int converts_left;
  } cases[] = {
      {DT_BF16, DT_F32, DT_BF16, 0}, {DT_F32, DT_BF16, DT_F32, 2},        {DT_F16, DT_F32, DT_BF16, 1},
      {DT_I8, DT_I32, DT_F32, 1},    {DT_I32, DT_F32, DT_I32, 2},         {DT_I8, DT_F32, DT_I8, 0},
      {DT_I8, DT_F32, DT_U8, 2},     {DT_U8, DT_I8, DT_I32, 2},           {DT_BOOL, DT_F32, DT_I32, 1},
      {DT_F16, DT_BF16, DT_F32, 2},  {DT_F8E4M3FN, DT_F8E4M3, DT_F32, 2}, {DT_F8E5M2, DT_F16, DT_F32, 1},
      {DT_F32, DT_BOOL, DT_F32, 2},  {DT_U32, DT_I64, DT_F32, 1},         {DT_I16, DT_F16, DT_F32, 2},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    test_setup(state);
    struct test *t = *state;
    hlo_val x = PARAM(t, "x", cases[k].from, 4);
    hlo_val now = simplified(t, hlo_convert(&t->b, hlo_convert(&t->b, x, cases[k].via), cases[k].to));
    int left = 0;
    for (hlo_val i = now; i->op == HLO_CONVERT; i = i->operands[0])
      left++;
    if (left != cases[k].converts_left)
      fail_msg("case %zu: %d converts left", k, left);
    test_teardown(state);
  }
}

static void reshapes_merge(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 6), a = hlo_reshape(&t->b, x, 1, DIMS(12));
  a->locs = test_loc(t, 3);
  hlo_val b = hlo_reshape(&t->b, a, 2, DIMS(3, 4));
  b->locs = test_loc(t, 4);
  hlo_val now = simplified(t, b);
  assert_int_equal(now->op, HLO_RESHAPE);
  assert_ptr_equal(now->operands[0], x);
  assert_true(comes_from(now, a->id) && comes_from(now, b->id));
  assert_int_equal(now->locs.n, 2);
}

static void reshape_there_and_back_disappears(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 6);
  assert_ptr_equal(simplified(t, hlo_reshape(&t->b, hlo_reshape(&t->b, x, 1, DIMS(12)), 2, DIMS(2, 6))), x);
}

static void transposes_compose(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 3, 4);
  hlo_val now = simplified(t, hlo_transpose(&t->b, hlo_transpose(&t->b, x, DIMS(1, 0, 2)), DIMS(2, 0, 1)));
  assert_int_equal(now->op, HLO_TRANSPOSE);
  assert_ptr_equal(now->operands[0], x);
  assert_memory_equal(now->attrs->dimensions.v, DIMS(2, 1, 0), 3 * sizeof(int64_t));
}

static void inverse_transposes_disappear(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 3, 4);
  assert_ptr_equal(simplified(t, hlo_transpose(&t->b, hlo_transpose(&t->b, x, DIMS(1, 2, 0)), DIMS(2, 0, 1))), x);
}

static void broadcasts_compose(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 3), a = hlo_broadcast(&t->b, x, 2, DIMS(2, 3), DIMS(1));
  hlo_val now = simplified(t, hlo_broadcast(&t->b, a, 4, DIMS(5, 2, 6, 3), DIMS(1, 3)));
  assert_int_equal(now->op, HLO_BROADCAST);
  assert_ptr_equal(now->operands[0], x);
  assert_int_equal(now->attrs->dimensions.n, 1);
  assert_int_equal(now->attrs->dimensions.v[0], 3);
}

/* [A,B,C] -> [C,A,B] is the transpose of [A*B,C]; with an inverse in between nothing is left but reshapes. */
static void exchanged_groups_are_a_matrix(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 3, 5);
  hlo_val now = simplified(t, hlo_transpose(&t->b, x, DIMS(2, 0, 1)));
  assert_int_equal(now->op, HLO_RESHAPE);
  hlo_val turned = now->operands[0], flat = turned->operands[0];
  assert_int_equal(turned->op, HLO_TRANSPOSE);
  assert_int_equal(turned->shape.rank, 2);
  assert_int_equal(turned->shape.dims[0], 5);
  assert_int_equal(turned->shape.dims[1], 6);
  assert_int_equal(flat->op, HLO_RESHAPE);
  assert_ptr_equal(flat->operands[0], x);
}

static void identity_broadcast_and_transpose_disappear(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 3, 4), a = hlo_broadcast(&t->b, x, 2, DIMS(3, 4), DIMS(0, 1));
  assert_ptr_equal(simplified(t, hlo_transpose(&t->b, a, DIMS(0, 1))), x);
}

static void reshape_of_a_scalar_broadcast_is_a_broadcast(void **state) {
  struct test *t = *state;
  hlo_val s = SCALAR_PARAM(t, "s", DT_F32), a = hlo_broadcast(&t->b, s, 2, DIMS(3, 4), NULL);
  hlo_val now = simplified(t, hlo_reshape(&t->b, a, 1, DIMS(12)));
  assert_int_equal(now->op, HLO_BROADCAST);
  assert_ptr_equal(now->operands[0], s);
}

static void slices_compose(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 20, 5);
  hlo_val a = hlo_slice(&t->b, x, (struct hlo_slice_dim[]){{2, 18, 3}, {0, 5, 1}});                 /* 2 5 8 11 14 17 */
  hlo_val now = simplified(t, hlo_slice(&t->b, a, (struct hlo_slice_dim[]){{1, 6, 2}, {4, 5, 1}})); /* 5 11 17 */
  assert_int_equal(now->op, HLO_SLICE);
  assert_ptr_equal(now->operands[0], x);
  assert_int_equal(now->attrs->slice[0].start, 5);
  assert_int_equal(now->attrs->slice[0].limit, 18);
  assert_int_equal(now->attrs->slice[0].stride, 6);
  assert_int_equal(now->attrs->slice[1].start, 4);
}

static void whole_slice_zero_pad_and_single_concatenate_disappear(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 3, 4), e = PARAM(t, "e", DT_F32, 0, 4);
  hlo_val v = hlo_slice(&t->b, x, (struct hlo_slice_dim[]){{0, 3, 1}, {0, 4, 1}});
  v = hlo_pad(&t->b, v, hlo_scalar(&t->b, DT_F32, 1), (struct hlo_pad_dim[]){{0, 0, 0}, {0, 0, 0}});
  v = hlo_concatenate(&t->b, 2, (hlo_val[]){v, e}, 0);
  assert_ptr_equal(simplified(t, v), x);
}

static void empty_parts_leave_a_concatenate(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 3), e = PARAM(t, "e", DT_F32, 0), y = PARAM(t, "y", DT_F32, 2);
  hlo_val now = simplified(t, hlo_concatenate(&t->b, 3, (hlo_val[]){x, e, y}, 0));
  assert_int_equal(now->n_operands, 2);
  assert_ptr_equal(now->operands[1], y);
}

/* ---- backwards --------------------------------------------------------------------------------------- */

/* The places of x along the axis, as NumPy's x[:, [2, 1, 0]] is traced. */
static hlo_val taken(struct test *t, hlo_val x, int axis, int64_t n, const int32_t *places) {
  int64_t sizes[HLO_RANK_MAX], offsets[HLO_RANK_MAX];

  for (int d = 0; d < x->shape.rank; d++) {
    sizes[d] = d == axis ? 1 : x->shape.dims[d];
    offsets[d < axis ? d : d - (d > axis)] = d;
  }
  return hlo_gather(&t->b, x, hlo_constant(&t->b, hlo_shape_array(&t->a, DT_I32, 1, &n), places),
                    &(struct hlo_gather_dims){.offset_dims = {x->shape.rank - 1, offsets},
                                              .collapsed_slice_dims = INTS(axis),
                                              .start_index_map = INTS(axis),
                                              .slice_sizes = {x->shape.rank, sizes},
                                              .index_vector_dim = 1});
}

/* x with the axis from the last place to the first one, as NumPy's x[::-1] is traced. */
static hlo_val backwards(struct test *t, hlo_val x, int axis) {
  const int64_t n = x->shape.dims[axis];
  int32_t *places = arena_new_array(&t->a, int32_t, (size_t)n);

  for (int64_t k = 0; k < n; k++)
    places[k] = (int32_t)(n - 1 - k);
  return taken(t, x, axis, n, places);
}

static void short_rows_are_reversed(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 256, 2048), g = backwards(t, x, 1);
  hlo_val now = simplified(t, g);
  assert_int_equal(now->op, HLO_REVERSE);
  assert_ptr_equal(now->operands[0], x);
  assert_true(hlo_ints_equal(now->attrs->dimensions, INTS(1)) && comes_from(now, g->id));
}

static void a_short_axis_is_a_concatenate(void **state) {
  struct test *t = *state;
  hlo_val now = simplified(t, backwards(t, PARAM(t, "x", DT_F32, 256, 3, 16), 1));
  assert_int_equal(now->op, HLO_CONCATENATE);
  assert_int_equal(now->n_operands, 3);
  assert_int_equal(now->operands[0]->attrs->slice[1].start, 2);
}

static void rows_stay_gathered(void **state) {
  struct test *t = *state;
  hlo_val g = backwards(t, PARAM(t, "x", DT_F32, 256, 2048), 0);
  assert_ptr_equal(simplified(t, g), g);
}

/* [1024, 21] is [128, 8, 21]: 8 rows in each partition. */
static void short_rows_lie_together(void **state) {
  struct test *t = *state;
  hlo_val now = simplified(t, backwards(t, PARAM(t, "x", DT_F32, 1024, 21), 1));
  assert_int_equal(now->op, HLO_RESHAPE);
  assert_int_equal(now->operands[0]->op, HLO_REVERSE);
  assert_shape(t, now->operands[0], "f32[128,8,21]");
  assert_true(hlo_ints_equal(now->operands[0]->attrs->dimensions, INTS(2)));
}

/* Rows of 4 images in turn: 15, 14, …, 0, 31, 30, … */
static void long_runs_are_gathered_as_rows(void **state) {
  struct test *t = *state;
  hlo_val now = simplified(t, backwards(t, PARAM(t, "x", DT_F32, 4, 16, 2048), 1));
  assert_int_equal(now->op, HLO_RESHAPE);
  hlo_val g = now->operands[0];
  assert_int_equal(g->op, HLO_GATHER);
  assert_shape(t, g, "f32[64,2048]");
  const int32_t *places = g->operands[1]->attrs->literal->data;
  assert_int_equal(places[0], 15);
  assert_int_equal(places[15], 0);
  assert_int_equal(places[16], 31);
}

/* Whole rows, and what is left in front of them. */
static void a_long_row_is_divided(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 100003), now = simplified(t, backwards(t, x, 0));
  assert_int_equal(now->op, HLO_RESHAPE);
  assert_int_equal(now->operands[0]->op, HLO_CONCATENATE);
  assert_int_equal(count(t->b.module, HLO_REVERSE), 2);
  assert_int_equal(count(t->b.module, HLO_GATHER), 1);
}

static void reversed_twice_is_as_it_was(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 256, 2048);
  assert_ptr_equal(simplified(t, backwards(t, backwards(t, x, 1), 1)), x);
}

/* x[:, ::-1][:, 1:6] reads 5 places before the last one. */
static void only_what_is_read_is_reversed(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 256, 50), g = backwards(t, x, 1);
  hlo_val now = simplified(t, hlo_slice(&t->b, g, (struct hlo_slice_dim[]){{0, 256, 1}, {1, 6, 1}}));
  while (now->op != HLO_SLICE) {
    assert_true(now->op == HLO_REVERSE || now->op == HLO_RESHAPE);
    now = now->operands[0];
  }
  assert_ptr_equal(now->operands[0], x);
  assert_int_equal(now->attrs->slice[1].start, 44);
  assert_int_equal(now->attrs->slice[1].limit, 49);
}

static void a_value_with_a_knob_keeps_its_shape(void **state) {
  struct test *t = *state;
  hlo_val g = backwards(t, PARAM(t, "x", DT_F32, 8, 9, 2048), 1);
  g->knob = knob(t, 8);
  assert_ptr_equal(simplified(t, g), g);
}

/* ---- places in runs ------------------------------------------------------------------------------------ */

#define TAKEN(t, x, axis, ...) \
  taken(t, x, axis, (int64_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), (int32_t[]){__VA_ARGS__})

static void a_run_of_places_is_a_slice(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 256, 50), now = simplified(t, TAKEN(t, x, 1, 7, 10, 13, 16));
  assert_int_equal(now->op, HLO_SLICE);
  assert_ptr_equal(now->operands[0], x);
  assert_int_equal(now->attrs->slice[1].start, 7);
  assert_int_equal(now->attrs->slice[1].limit, 17);
  assert_int_equal(now->attrs->slice[1].stride, 3);
}

/* The first and the last place twice, as padding with the edge makes it. */
static void a_place_that_is_repeated_is_a_slice_of_its_own(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 256, 6), now = simplified(t, TAKEN(t, x, 1, 0, 0, 1, 2, 3, 4, 5, 5));
  assert_int_equal(now->op, HLO_CONCATENATE);
  assert_int_equal(now->n_operands, 3);
  assert_int_equal(now->operands[0]->attrs->slice[1].limit, 1);
  assert_ptr_equal(now->operands[1], x);
  assert_int_equal(now->operands[2]->attrs->slice[1].start, 5);
}

/* 6 to 0 and then the others, as padding by reflection makes it. */
static void a_run_backwards_is_a_reverse(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 256, 8);
  hlo_val now = simplified(t, TAKEN(t, x, 1, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7));
  assert_int_equal(now->op, HLO_CONCATENATE);
  assert_int_equal(now->n_operands, 2);
  assert_int_equal(now->operands[1]->attrs->slice[1].start, 1);
  assert_int_equal(count(t->b.module, HLO_REVERSE), 1);
}

static void a_place_that_is_repeated_often_is_a_broadcast(void **state) {
  struct test *t = *state;
  hlo_val now = simplified(t, TAKEN(t, PARAM(t, "x", DT_F32, 256, 8), 1, 3, 3, 3, 3, 3, 3, 3));
  assert_int_equal(now->op, HLO_BROADCAST);
  assert_true(hlo_ints_equal(now->attrs->dimensions, INTS(0)));
}

static void places_without_runs_stay_gathered(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 256, 50);
  hlo_val g = TAKEN(t, x, 1, 1, 9, 2, 8, 3, 7, 4, 6, 5, 1, 9, 3, 20, 40, 5, 17, 19, 11);
  assert_ptr_equal(simplified(t, g), g);
}

/* Rows of 1 KiB: a list of 7 of them is one transfer. */
static void few_long_rows_stay_gathered(void **state) {
  struct test *t = *state;
  hlo_val g = TAKEN(t, PARAM(t, "x", DT_F32, 50, 256), 0, 0, 1, 2, 3, 4, 5, 9);
  assert_ptr_equal(simplified(t, g), g);
}

static void places_outside_stay_gathered(void **state) {
  struct test *t = *state;
  hlo_val g = TAKEN(t, PARAM(t, "x", DT_F32, 256, 4), 1, 0, 1, 2, 3, 4);
  assert_ptr_equal(simplified(t, g), g);
}

/* ---- select, compare, reduce, dot, copy -------------------------------------------------------------- */

static void select_with_a_known_predicate_is_a_branch(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 3), y = PARAM(t, "y", DT_F32, 3), p = PARAM(t, "p", DT_BOOL, 3);
  hlo_val a = hlo_select(&t->b, FULL(t, DT_BOOL, 1, 3), x, y), b = hlo_select(&t->b, FULL(t, DT_BOOL, 0, 3), a, y);
  hlo_val now = simplified(t, hlo_select(&t->b, p, b, y));
  assert_ptr_equal(now, y);
}

static void compare_of_a_value_with_itself_is_known_for_integers_only(void **state) {
  struct test *t = *state;
  hlo_val i = PARAM(t, "i", DT_I32, 3), f = PARAM(t, "f", DT_F32, 3);
  hlo_val a = hlo_compare(&t->b, HLO_LE, i, i), b = hlo_compare(&t->b, HLO_EQ, f, f);
  hlo_val now = simplified(t, hlo_binary(&t->b, HLO_AND, a, b));
  assert_int_equal(now->operands[0]->op, HLO_BROADCAST);
  assert_int_equal(*(const uint8_t *)now->operands[0]->operands[0]->attrs->literal->data, 1);
  assert_true(comes_from(now->operands[0], a->id) && comes_from(now->operands[0]->operands[0], a->id));
  assert_ptr_equal(now->operands[1], b);
}

static void reduce_over_single_elements_is_a_reshape(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 3, 1, 4), zero = hlo_scalar(&t->b, DT_F32, 0);
  hlo_val a = hlo_reduce(&t->b, HLO_ADD, x, zero, 1, DIMS(1));
  a = hlo_reduce(&t->b, HLO_MAXIMUM, a, hlo_extreme(&t->b, DT_F32, true), 0, NULL);
  hlo_val now = simplified(t, a);
  assert_int_equal(now->op, HLO_RESHAPE);
  assert_ptr_equal(now->operands[0], x);
}

static void reduce_that_starts_elsewhere_stays(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 3, 1), one = hlo_scalar(&t->b, DT_F32, 1);
  hlo_val a = hlo_reduce(&t->b, HLO_ADD, x, one, 1, DIMS(1));
  assert_ptr_equal(simplified(t, a), a);
}

static void dot_over_nothing_is_zero(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 3, 0), y = PARAM(t, "y", DT_F32, 0, 4);
  hlo_val now = simplified(t, hlo_dot(&t->b, x, y, &(struct hlo_dot_dims){INTS(1), INTS(0), {0}, {0}}, DT_F32));
  assert_int_equal(now->op, HLO_BROADCAST);
  assert_shape(t, now, "f32[3,4]");
  assert_true(*(const float *)now->operands[0]->attrs->literal->data == 0);
}

static void maximum_of_a_value_with_itself_is_the_value(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 3);
  assert_ptr_equal(simplified(t, hlo_unary(&t->b, HLO_COPY, hlo_binary(&t->b, HLO_MAXIMUM, x, x))), x);
}

static void a_parameter_is_still_copied_into_a_tuple_of_results(void **state) {
  struct test *t = *state;
  struct hlo_pass_result r = {0};
  hlo_val x = PARAM(t, "x", DT_F32, 3), c = hlo_unary(&t->b, HLO_COPY, x);
  hlo_val e = hlo_unary(&t->b, HLO_COPY, hlo_unary(&t->b, HLO_EXP, x));
  assert_int_equal(hlo_finish(&t->b, 2, (hlo_val[]){c, e}, (const char *[]){"a", "b"}), ST_OK);
  hlo_algebraic_simplifier(t->b.module, &r);
  assert_ptr_equal(t->b.module->entry->root->operands[0], c);
  assert_int_equal(t->b.module->entry->root->operands[1]->op, HLO_EXP);
}

/* An heir without a history begins with a dead one's; what it hears of later is its own. */
static void histories_that_are_shared_stay_apart(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4), dead[4], heir[2];
  for (int k = 0; k < 4; k++)
    dead[k] = hlo_unary(&t->b, HLO_EXP, x);
  for (int k = 0; k < 2; k++)
    heir[k] = hlo_unary(&t->b, HLO_NEGATE, x);
  assert_int_equal(hlo_finish(&t->b, 1, &heir[0], (const char *[]){"o"}), ST_OK);
  hlo_stage_mark(t->b.module);
  heir[0]->n_from = heir[1]->n_from = 0;
  hlo_derive(dead[0], dead[1]);
  for (int k = 0; k < 2; k++) {
    hlo_derive(heir[k], dead[0]);
    hlo_derive(heir[k], dead[2 + k]);
  }
  hlo_derive(dead[0], dead[3]);
  for (int k = 0; k < 2; k++) {
    assert_int_equal(heir[k]->n_from, 3);
    assert_true(comes_from(heir[k], dead[0]->id) && comes_from(heir[k], dead[1]->id));
    assert_true(comes_from(heir[k], dead[2 + k]->id));
  }
  assert_int_equal(dead[0]->n_from, 3);
  assert_true(comes_from(dead[0], dead[3]->id));
}

/* ---- wishes ------------------------------------------------------------------------------------------ */

static void a_knob_moves_to_the_heir(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4), e = hlo_unary(&t->b, HLO_EXP, x);
  hlo_val s = hlo_binary(&t->b, HLO_ADD, e, FULL(t, DT_F32, 0, 4));
  s->knob = knob(t, 2);
  assert_ptr_equal(simplified(t, s), e);
  assert_ptr_equal(e->knob, s->knob);
}

static void a_knob_without_a_home_keeps_its_instruction(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4), e = hlo_unary(&t->b, HLO_EXP, x), zero = FULL(t, DT_F32, 0, 4);
  e->knob = knob(t, 2);
  hlo_val s = hlo_binary(&t->b, HLO_ADD, e, zero);
  s->knob = knob(t, 4); /* e has its own wish */
  hlo_val p = hlo_binary(&t->b, HLO_ADD, x, zero);
  p->knob = knob(t, 4); /* a parameter does no work */
  hlo_val now = simplified(t, hlo_binary(&t->b, HLO_MULTIPLY, s, p));
  assert_ptr_equal(now->operands[0], s);
  assert_ptr_equal(now->operands[1], p);
}

static void a_fuse_group_follows_its_members(void **state) {
  struct test *t = *state;
  struct hlo_pass_result r = {0};
  hlo_val x = PARAM(t, "x", DT_F32, 4), e = hlo_unary(&t->b, HLO_EXP, x);
  hlo_val s = hlo_binary(&t->b, HLO_ADD, e, FULL(t, DT_F32, 0, 4)), l = hlo_unary(&t->b, HLO_LOG, x);
  hlo_val dead = hlo_unary(&t->b, HLO_SIN, x);
  fuse(t, 3, (hlo_val[]){s, l, dead});
  fuse(t, 2, (hlo_val[]){dead, l});
  simplified(t, hlo_binary(&t->b, HLO_MULTIPLY, s, l));
  assert_ptr_equal(t->b.module->fuses->v[0], e);
  hlo_dce(t->b.module, &r);
  assert_int_equal(hlo_verify(t->b.module, &t->ds), ST_OK);
  assert_int_equal(t->b.module->fuses->n, 2);
  assert_ptr_equal(t->b.module->fuses->v[1], l);
  assert_null(t->b.module->fuses->next);
  assert_ptr_equal(t->b.module->last_fuse, t->b.module->fuses);
}

/* ---- cse --------------------------------------------------------------------------------------------- */

static void run_cse(struct test *t, hlo_val result) {
  struct hlo_pass_result r = {0};
  int before = t->b.module->entry->n_instrs + 1;
  assert_int_equal(hlo_finish(&t->b, 1, &result, (const char *[]){"o"}), ST_OK);
  hlo_stage_mark(t->b.module);
  hlo_cse(t->b.module, &r);
  if (hlo_verify(t->b.module, &t->ds))
    fail_msg("%s", t->ds.v[0].message);
  assert_int_equal(r.changed, t->b.module->entry->n_instrs != before);
}

static void equal_instructions_merge_with_their_operands(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4), v[2];
  for (int k = 0; k < 2; k++) {
    t->b.locs = test_loc(t, 10 + k);
    v[k] = hlo_binary(&t->b, HLO_MULTIPLY, hlo_unary(&t->b, HLO_EXP, x), FULL(t, DT_F32, 3, 4));
  }
  run_cse(t, hlo_binary(&t->b, HLO_ADD, v[0], v[1]));
  assert_int_equal(count(t->b.module, HLO_EXP), 1);
  assert_int_equal(count(t->b.module, HLO_CONSTANT), 1);
  assert_int_equal(count(t->b.module, HLO_MULTIPLY), 1);
  assert_true(comes_from(v[0], v[0]->id) && comes_from(v[0], v[1]->id));
  assert_int_equal(v[0]->locs.n, 2);
}

static void different_attributes_shapes_and_constants_stay_apart(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4, 4), y = PARAM(t, "y", DT_F32, 4, 4);
  hlo_val zero = hlo_scalar(&t->b, DT_F32, 0.0), minus_zero = hlo_scalar(&t->b, DT_F32, -0.0);
  hlo_val same_bits = hlo_scalar(&t->b, DT_I32, 0);
  hlo_val results[] = {hlo_transpose(&t->b, x, DIMS(0, 1)),
                       hlo_transpose(&t->b, x, DIMS(1, 0)),
                       hlo_slice(&t->b, x, (struct hlo_slice_dim[]){{0, 2, 1}, {0, 4, 1}}),
                       hlo_slice(&t->b, x, (struct hlo_slice_dim[]){{1, 3, 1}, {0, 4, 1}}),
                       hlo_compare(&t->b, HLO_LT, x, y),
                       hlo_compare(&t->b, HLO_GT, x, y),
                       hlo_binary(&t->b, HLO_SUBTRACT, x, y),
                       hlo_binary(&t->b, HLO_SUBTRACT, y, x),
                       hlo_convert(&t->b, x, DT_BF16),
                       hlo_convert(&t->b, x, DT_F16),
                       hlo_reduce(&t->b, HLO_ADD, x, zero, 1, DIMS(0)),
                       hlo_reduce(&t->b, HLO_MAXIMUM, x, zero, 1, DIMS(0)),
                       hlo_dot(&t->b, x, y, &(struct hlo_dot_dims){INTS(1), INTS(0), {0}, {0}}, DT_F32),
                       hlo_dot(&t->b, x, y, &(struct hlo_dot_dims){INTS(0), INTS(0), {0}, {0}}, DT_F32),
                       zero,
                       minus_zero,
                       same_bits};
  enum { COUNT = sizeof results / sizeof *results };
  const char *names[COUNT];
  struct hlo_pass_result r = {0};
  for (int k = 0; k < COUNT; k++)
    names[k] = "o";
  assert_int_equal(hlo_finish(&t->b, COUNT, results, names), ST_OK);
  hlo_cse(t->b.module, &r);
  assert_false(r.changed);
  for (int k = 0; k < COUNT; k++)
    assert_ptr_equal(t->b.module->entry->root->operands[k], results[k]);
}

static void knobs_decide_about_merging(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4), v[4];
  for (int k = 0; k < 4; k++)
    v[k] = hlo_unary(&t->b, HLO_EXP, x);
  v[1]->knob = knob(t, 2); /* moves to v[0] */
  v[2]->knob = knob(t, 4); /* differs */
  v[3]->knob = knob(t, 4); /* the same as v[2]'s */
  hlo_val a = hlo_binary(&t->b, HLO_ADD, v[0], v[1]), b = hlo_binary(&t->b, HLO_ADD, v[2], v[3]);
  run_cse(t, hlo_binary(&t->b, HLO_MULTIPLY, a, b));
  assert_int_equal(count(t->b.module, HLO_EXP), 2);
  assert_ptr_equal(a->operands[1], v[0]);
  assert_ptr_equal(v[0]->knob, v[1]->knob);
  assert_ptr_equal(b->operands[1], v[2]);
}

static void members_of_a_fuse_group_stay_apart(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4), a = hlo_unary(&t->b, HLO_EXP, x), b = hlo_unary(&t->b, HLO_EXP, x);
  fuse(t, 2, (hlo_val[]){a, b});
  run_cse(t, hlo_binary(&t->b, HLO_ADD, a, b));
  assert_int_equal(t->b.module->fuses->n, 2);
  assert_int_equal(count(t->b.module, HLO_EXP), 2);
}

static void equal_combiners_count_as_one(void **state) {
  struct test *t = *state;
  hlo_val x = PARAM(t, "x", DT_F32, 4), zero = hlo_scalar(&t->b, DT_F32, 0);
  hlo_val a = hlo_reduce(&t->b, HLO_ADD, x, zero, 1, DIMS(0));
  a->called[0]->name = "another_name"; /* so that the second reduce makes its own */
  hlo_val b = hlo_reduce(&t->b, HLO_ADD, x, zero, 1, DIMS(0));
  assert_ptr_not_equal(a->called[0], b->called[0]);
  run_cse(t, hlo_binary(&t->b, HLO_ADD, a, b));
  assert_int_equal(count(t->b.module, HLO_REDUCE), 1);
}

static void many_equal_constants_merge_in_linear_time(void **state) {
  struct test *t = *state;
  enum { COUNT = 50000 };
  hlo_val x = SCALAR_PARAM(t, "x", DT_F32), first = hlo_scalar(&t->b, DT_F32, 7);
  for (int k = 0; k < COUNT; k++) {
    t->b.locs = test_loc(t, k + 1);
    x = hlo_binary(&t->b, HLO_MULTIPLY, x, hlo_scalar(&t->b, DT_F32, 7));
  }
  run_cse(t, x);
  assert_int_equal(count(t->b.module, HLO_CONSTANT), 1);
  assert_int_equal(first->n_from, COUNT + 1);
  assert_int_equal(first->locs.n, SRC_LOCS_MAX);
}

/* ---- dce --------------------------------------------------------------------------------------------- */

static void dead_instructions_and_computations_go_parameters_stay(void **state) {
  struct test *t = *state;
  struct hlo_pass_result r = {0};
  hlo_val x = PARAM(t, "x", DT_F32, 4), unused = PARAM(t, "unused", DT_F32, 4), zero = hlo_scalar(&t->b, DT_F32, 0);
  hlo_reduce(&t->b, HLO_MAXIMUM, unused, zero, 1, DIMS(0));
  hlo_val s = hlo_reduce(&t->b, HLO_ADD, x, zero, 1, DIMS(0));
  assert_int_equal(hlo_finish(&t->b, 1, &s, (const char *[]){"o"}), ST_OK);
  hlo_dce(t->b.module, &r);
  assert_true(r.changed);
  assert_int_equal(hlo_verify(t->b.module, &t->ds), ST_OK);
  assert_int_equal(t->b.module->n_computations, 2);
  assert_int_equal(t->b.module->entry->n_instrs, 5);
  assert_int_equal(count(t->b.module, HLO_PARAMETER), 2);
  r.changed = false;
  hlo_dce(t->b.module, &r);
  assert_false(r.changed);
}

static void without_results_only_parameters_are_left(void **state) {
  struct test *t = *state;
  struct hlo_pass_result r = {0};
  hlo_unary(&t->b, HLO_EXP, PARAM(t, "x", DT_F32, 4));
  assert_int_equal(hlo_finish(&t->b, 0, NULL, NULL), ST_OK);
  hlo_dce(t->b.module, &r);
  assert_int_equal(t->b.module->entry->n_instrs, 1);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, test_setup, test_teardown)
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(neutral_operands_disappear),
      T(integer_times_zero_is_zero_and_float_is_not),
      T(square_becomes_a_product),
      T(numpy_scalars_are_seen_through_reshapes),
      T(double_negation_disappears),
      T(a_pair_whose_inner_half_has_a_knob_stays),
      cmocka_unit_test(converts_merge_only_when_nothing_is_lost),
      T(reshapes_merge),
      T(reshape_there_and_back_disappears),
      T(transposes_compose),
      T(inverse_transposes_disappear),
      T(exchanged_groups_are_a_matrix),
      T(broadcasts_compose),
      T(identity_broadcast_and_transpose_disappear),
      T(reshape_of_a_scalar_broadcast_is_a_broadcast),
      T(slices_compose),
      T(whole_slice_zero_pad_and_single_concatenate_disappear),
      T(empty_parts_leave_a_concatenate),
      T(short_rows_are_reversed),
      T(a_short_axis_is_a_concatenate),
      T(rows_stay_gathered),
      T(short_rows_lie_together),
      T(long_runs_are_gathered_as_rows),
      T(a_long_row_is_divided),
      T(reversed_twice_is_as_it_was),
      T(only_what_is_read_is_reversed),
      T(a_run_of_places_is_a_slice),
      T(a_place_that_is_repeated_is_a_slice_of_its_own),
      T(a_run_backwards_is_a_reverse),
      T(a_place_that_is_repeated_often_is_a_broadcast),
      T(places_without_runs_stay_gathered),
      T(few_long_rows_stay_gathered),
      T(places_outside_stay_gathered),
      T(a_value_with_a_knob_keeps_its_shape),
      T(select_with_a_known_predicate_is_a_branch),
      T(compare_of_a_value_with_itself_is_known_for_integers_only),
      T(reduce_over_single_elements_is_a_reshape),
      T(reduce_that_starts_elsewhere_stays),
      T(dot_over_nothing_is_zero),
      T(maximum_of_a_value_with_itself_is_the_value),
      T(a_parameter_is_still_copied_into_a_tuple_of_results),
      T(histories_that_are_shared_stay_apart),
      T(a_knob_moves_to_the_heir),
      T(a_knob_without_a_home_keeps_its_instruction),
      T(a_fuse_group_follows_its_members),
      T(equal_instructions_merge_with_their_operands),
      T(different_attributes_shapes_and_constants_stay_apart),
      T(knobs_decide_about_merging),
      T(members_of_a_fuse_group_stay_apart),
      T(equal_combiners_count_as_one),
      T(many_equal_constants_merge_in_linear_time),
      T(dead_instructions_and_computations_go_parameters_stay),
      T(without_results_only_parameters_are_left),
  };
#undef T
  return cmocka_run_group_tests(tests, NULL, NULL);
}
