/* Lowering and meaning of reduce and dot, and where knobs go. */
#include "linalg_support.h"

#define N(a) (int)(sizeof(a) / sizeof(a)[0])
static const enum dtype ALL[] = {DT_F32, DT_F64, DT_F16, DT_BF16, DT_F8E4M3FN, DT_I8, DT_I16,
                                 DT_I32, DT_I64, DT_U8,  DT_U16,  DT_U32,      DT_U64};

static hlo_val reduce(struct program *p, enum hlo_op op, hlo_val x, int n, const int64_t *dims) {
  const enum dtype t = x->shape.dtype;
  hlo_val init = op == HLO_ADD || op == HLO_OR         ? hlo_scalar(&p->b, t, 0)
                 : op == HLO_MULTIPLY || op == HLO_AND ? hlo_scalar(&p->b, t, 1)
                                                       : hlo_extreme(&p->b, t, op == HLO_MAXIMUM);
  return hlo_reduce(&p->b, op, x, init, n, dims);
}

static hlo_val keepdims(struct program *p, hlo_val x, hlo_val reduced, int n, const int64_t *axes) {
  int64_t dims[HLO_RANK_MAX];
  for (int d = 0; d < x->shape.rank; d++)
    dims[d] = x->shape.dims[d];
  for (int k = 0; k < n; k++)
    dims[axes[k]] = 1;
  return hlo_reshape(&p->b, reduced, x->shape.rank, dims);
}

static void reductions_agree(void **state) {
  static const enum hlo_op ops[] = {HLO_ADD, HLO_MULTIPLY, HLO_MAXIMUM, HLO_MINIMUM};
  (void)state;
  for (int o = 0; o < N(ops); o++)
    for (int t = 0; t < N(ALL); t++) {
      struct program p;
      double low = dtype_kind(ALL[t]) == DK_UNSIGNED ? 0 : -2, high = 2;
      begin(&p);
      hlo_val x = input(&p, ALL[t], low, high, DIMS(3, 4, 5));
      hlo_val out[] = {reduce(&p, ops[o], x, DIMS(2)), reduce(&p, ops[o], x, DIMS(0)),
                       reduce(&p, ops[o], x, DIMS(0, 2)), reduce(&p, ops[o], x, DIMS(0, 1, 2)),
                       reduce(&p, ops[o], x, DIMS(1, 2))};
      check_results(&p, 5, out);
      end(&p);
    }
}

static void odd_shapes_reduce(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val x = input(&p, DT_F32, -1, 1, DIMS(130, 517)), e = input(&p, DT_F32, -1, 1, DIMS(3, 0)),
          y = input(&p, DT_F32, -1, 1, DIMS(2, 1, 3, 2, 2)), one = input(&p, DT_F32, -1, 1, DIMS(1));
  hlo_val out[] = {
      reduce(&p, HLO_ADD, x, DIMS(1)),       reduce(&p, HLO_MAXIMUM, e, DIMS(1)),
      reduce(&p, HLO_ADD, e, DIMS(0)),       reduce(&p, HLO_ADD, y, DIMS(1, 3)),
      reduce(&p, HLO_MINIMUM, one, DIMS(0)), hlo_reduce(&p.b, HLO_ADD, x, hlo_scalar(&p.b, DT_F32, 5), DIMS(0))};
  check_results(&p, 6, out);
  end(&p);
}

static void logical_reductions_agree(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val x = input(&p, DT_BOOL, 0, 1, DIMS(9, 4));
  hlo_val out[] = {reduce(&p, HLO_AND, x, DIMS(1)), reduce(&p, HLO_OR, x, DIMS(0))};
  check_results(&p, 2, out);
  end(&p);
}

static void keepdims_is_computed_in_place(void **state) {
  (void)state;
  for (int axis = 0; axis < 3; axis++) {
    struct program p;
    int64_t axes[] = {axis};
    begin(&p);
    hlo_val x = input(&p, DT_F32, -1, 1, DIMS(3, 4, 5));
    check_result(&p, keepdims(&p, x, reduce(&p, HLO_MAXIMUM, x, 1, axes), 1, axes));
    expect_no_text(&p, "expand_shape");
    expect_text(&p, axis == 0 ? "(d0, d1, d2) -> (0, d1, d2)" : axis == 1 ? "-> (d0, 0, d2)" : "-> (d0, d1, 0)");
    expect_text(&p, axis == 1 ? "iterator_types = [\"parallel\", \"reduction\", \"parallel\"]" : "reduction");
    expect_text(&p, "arith.maximumf %out, %in");
    end(&p);
  }
}

static void softmax_has_the_expected_form(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val x = input(&p, DT_F32, -1, 1, DIMS(8, 6));
  hlo_val m = keepdims(&p, x, reduce(&p, HLO_MAXIMUM, x, DIMS(1)), DIMS(1));
  hlo_val bm = hlo_broadcast(&p.b, hlo_reshape(&p.b, m, DIMS(8)), DIMS(8, 6), INTS(0));
  hlo_val e = hlo_unary(&p.b, HLO_EXP, hlo_binary(&p.b, HLO_SUBTRACT, x, bm));
  hlo_val s = keepdims(&p, e, reduce(&p, HLO_ADD, e, DIMS(1)), DIMS(1));
  hlo_val bs = hlo_broadcast(&p.b, hlo_reshape(&p.b, s, DIMS(8)), DIMS(8, 6), INTS(0));
  check_result(&p, hlo_binary(&p.b, HLO_DIVIDE, e, bs));
  expect_no_text(&p, "_shape"); /* no reshape is left */
  expect_text(&p, "tensor<8x6xf32>, tensor<8x1xf32>");
  end(&p);
}

/* ---- dot ----------------------------------------------------------------------------------------------- */

static hlo_val dot(struct program *p, hlo_val x, hlo_val y, struct hlo_ints lb, struct hlo_ints rb, struct hlo_ints lc,
                   struct hlo_ints rc, enum dtype t) {
  struct hlo_dot_dims d = {lc, rc, lb, rb};
  return hlo_dot(&p->b, x, y, &d, t);
}
static hlo_val matmul(struct program *p, hlo_val x, hlo_val y) {
  return dot(p, x, y, NONE, NONE, LIST(p, 1), LIST(p, 0), x->shape.dtype);
}

static void matmuls_agree(void **state) {
  (void)state;
  for (int t = 0; t < N(ALL); t++) {
    struct program p;
    double low = dtype_kind(ALL[t]) == DK_UNSIGNED ? 0 : -2;
    begin(&p);
    hlo_val x = input(&p, ALL[t], low, 2, DIMS(5, 7)), y = input(&p, ALL[t], low, 2, DIMS(7, 3)),
            bx = input(&p, ALL[t], low, 2, DIMS(2, 5, 7)), by = input(&p, ALL[t], low, 2, DIMS(2, 7, 3));
    hlo_val out[] = {matmul(&p, x, y), dot(&p, bx, by, LIST(&p, 0), LIST(&p, 0), LIST(&p, 2), LIST(&p, 1), ALL[t])};
    check_results(&p, 2, out);
    expect_text(&p, "linalg.matmul ins(");
    expect_text(&p, "linalg.batch_matmul ins(");
    expect_no_text(&p, "_shape");
    end(&p);
  }
}

static void general_dots_agree(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val v = input(&p, DT_F32, -1, 1, DIMS(7)), x = input(&p, DT_F32, -1, 1, DIMS(5, 7)),
          a = input(&p, DT_F32, -1, 1, DIMS(2, 3, 5, 7)), b = input(&p, DT_F32, -1, 1, DIMS(2, 3, 7, 4)),
          c = input(&p, DT_F32, -1, 1, DIMS(7, 5, 2)), e = input(&p, DT_F32, -1, 1, DIMS(5, 0)),
          f = input(&p, DT_F32, -1, 1, DIMS(0, 3));
  hlo_val out[] = {dot(&p, v, v, NONE, NONE, LIST(&p, 0), LIST(&p, 0), DT_F32),
                   dot(&p, x, v, NONE, NONE, LIST(&p, 1), LIST(&p, 0), DT_F32),
                   dot(&p, a, b, LIST(&p, 0, 1), LIST(&p, 0, 1), LIST(&p, 3), LIST(&p, 2), DT_F32),
                   dot(&p, x, c, NONE, NONE, LIST(&p, 0, 1), LIST(&p, 1, 0), DT_F32),
                   dot(&p, c, a, LIST(&p, 2), LIST(&p, 0), LIST(&p, 0), LIST(&p, 3), DT_F32),
                   dot(&p, v, v, NONE, NONE, NONE, NONE, DT_F32),
                   dot(&p, e, f, NONE, NONE, LIST(&p, 1), LIST(&p, 0), DT_F32)};
  check_results(&p, 7, out);
  end(&p);
}

static void mixed_operand_types_agree(void **state) {
  static const enum dtype types[][3] = {
      {DT_F16, DT_F32, DT_F32}, {DT_BF16, DT_F16, DT_F32},     {DT_I32, DT_F32, DT_F32},   {DT_U8, DT_I32, DT_I32},
      {DT_U8, DT_U16, DT_U16},  {DT_F8E5M2, DT_BF16, DT_BF16}, {DT_BOOL, DT_BOOL, DT_BOOL}};
  int built = 0;
  (void)state;
  for (int k = 0; k < N(types); k++) {
    struct program p;
    double high[2];
    begin(&p);
    for (int q = 0; q < 2; q++)
      high[q] = types[k][q] == DT_BOOL ? 1 : types[k][q] == DT_U8 ? 255 : 3;
    hlo_val x = input(&p, types[k][0], 0, high[0], DIMS(5, 7)), y = input(&p, types[k][1], 0, high[1], DIMS(7, 3));
    hlo_val d = dot(&p, x, y, NONE, NONE, LIST(&p, 1), LIST(&p, 0), types[k][2]);
    if (d) { /* HLO's own rules refuse some */
      check_result(&p, d);
      built++;
    }
    end(&p);
  }
  assert_true(built >= 2);
}

static void narrow_floats_accumulate_in_f32(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val x = input(&p, DT_BF16, -1, 1, DIMS(4, 300)), y = input(&p, DT_BF16, -1, 1, DIMS(300, 4));
  hlo_val out[] = {matmul(&p, x, y), reduce(&p, HLO_ADD, x, DIMS(1)), reduce(&p, HLO_MAXIMUM, x, DIMS(1))};
  check_results(&p, 3, out);
  expect_text(&p, "outs(%1 : tensor<4x4xf32>)");
  expect_text(&p, "arith.truncf");
  end(&p);
}

/* ---- knobs --------------------------------------------------------------------------------------------- */

static struct src_loc knob_place = {.range = {"kernel.py", 7, 5, 7, 30}};

static struct hlo_knob *knob(struct program *p, hlo_val x) {
  struct hlo_knob *k = arena_new(&p->arena, struct hlo_knob);
  k->partition_dim = -1;
  k->loc = &knob_place;
  x->knob = k;
  return k;
}

/* Lowers without running; returns the text, or NULL after a refusal. */
static const char *lower_text(struct program *p, hlo_val x) {
  MlirModule m;
  assert_int_equal(hlo_finish(&p->b, 1, &x, (const char *[]){"o"}), ST_OK);
  if (linalg_from_hlo(&ir, p->module, &p->ds, &m))
    return NULL;
  p->text = module_text(p, m);
  mlirModuleDestroy(m);
  return p->text;
}

static void builder_knobs_land_on_the_operation(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val a = input(&p, DT_F32, -1, 1, DIMS(256, 256)), b = input(&p, DT_F32, -1, 1, DIMS(256, 256));
  hlo_val c = matmul(&p, a, b), r = hlo_binary(&p.b, HLO_ADD, c, b);
  struct hlo_knob *k = knob(&p, c);
  k->loop_tile = LIST(&p, 128, 128, 128);
  k->mem_space = MEM_SBUF;
  k = knob(&p, r);
  k->loop_tile = LIST(&p, 128, 128);
  k->layout_tile = LIST(&p, 128, 256);
  k->mem_space = MEM_SHARED_HBM;
  k->partition_dim = 0;
  assert_non_null(lower_text(&p, r));
  expect_text(&p, "\"nkipy.tile_op\"(%2) {loop_tile_size = array<i64: 128, 128, 128>}");
  expect_text(&p, "\"nkipy.layout\"(%2) {mem_space = 3 : i32}");
  expect_text(&p, "\"nkipy.tile_op\"(%4) {loop_tile_size = array<i64: 128, 128>}");
  expect_text(&p,
              "\"nkipy.layout\"(%4) {mem_space = 4 : i32, partition_dim = 0 : i32, tile_size = array<i64: 128, 256>}");
  end(&p);
}

static void knobs_look_through_to_reduce_and_dot(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val x = input(&p, DT_F32, -1, 1, DIMS(256, 512));
  hlo_val m = keepdims(&p, x, reduce(&p, HLO_ADD, x, DIMS(1)), DIMS(1));
  struct hlo_knob *k = knob(&p, m);
  k->loop_tile = LIST(&p, 128, 256);
  k->layout_tile = LIST(&p, 128, 1);
  assert_non_null(lower_text(&p, m));
  expect_text(&p, "loop_tile_size = array<i64: 128, 256>");
  expect_text(&p, "tile_size = array<i64: 128, 1>");
  end(&p);

  begin(&p);
  x = input(&p, DT_BF16, -1, 1, DIMS(2, 3, 64, 64));
  hlo_val d = dot(&p, x, x, LIST(&p, 0, 1), LIST(&p, 0, 1), LIST(&p, 3), LIST(&p, 2), DT_F32);
  hlo_val y = hlo_reshape(&p.b, hlo_convert(&p.b, d, DT_BF16), DIMS(6, 64, 64));
  knob(&p, y)->loop_tile = LIST(&p, 1, 32, 32, 64);
  assert_non_null(lower_text(&p, y));
  expect_text(&p, "{loop_tile_size = array<i64: 1, 32, 32, 64>}");
  end(&p);
}

/* The reduced value is used in both shapes, so the operation gives the one without the axis. */
static void layouts_follow_the_operation_s_shape(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val x = input(&p, DT_F32, -1, 1, DIMS(256, 512)), r = reduce(&p, HLO_ADD, x, DIMS(0));
  hlo_val m = keepdims(&p, x, r, DIMS(0));
  struct hlo_knob *k = knob(&p, m);
  k->layout_tile = LIST(&p, 1, 128);
  k->partition_dim = 1;
  hlo_val both = hlo_binary(&p.b, HLO_ADD, hlo_unary(&p.b, HLO_EXP, r), hlo_reshape(&p.b, m, DIMS(512)));
  assert_non_null(lower_text(&p, both));
  expect_text(&p, "partition_dim = 0 : i32, tile_size = array<i64: 128>");
  end(&p);
}

static void stretched_reductions_keep_their_axes(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val x = input(&p, DT_F32, -1, 1, DIMS(8, 6));
  hlo_val m = reduce(&p, HLO_MAXIMUM, x, DIMS(1)), c = reduce(&p, HLO_ADD, x, DIMS(0));
  hlo_val d = hlo_binary(&p.b, HLO_SUBTRACT, x, hlo_broadcast(&p.b, m, DIMS(8, 6), INTS(0)));
  hlo_val e = hlo_binary(&p.b, HLO_ADD, d, hlo_broadcast(&p.b, c, DIMS(8, 6), INTS(1)));
  hlo_val out[] = {e, hlo_unary(&p.b, HLO_EXP, hlo_broadcast(&p.b, m, DIMS(8, 6), INTS(0)))};
  check_results(&p, 2, out);
  expect_text(&p, "-> tensor<8x1xf32>");
  expect_text(&p, "-> tensor<1x6xf32>");
  expect_no_text(&p, "_shape");
  end(&p);
}

/* What the function form's lists mean, by the kind of loop. */
static void function_form_is_interleaved(void **state) {
  static const struct {
    int axis, n_tile, n_red;
    int64_t tile[3], red[1];
    bool keepdims;
    const char *want; /* NULL: refused */
  } cases[] = {
      {1, 1, 1, {128}, {256}, false, "128, 256"},
      {0, 1, 1, {256}, {64}, false, "64, 256"}, /* the reduced axis leads */
      {1, 2, 1, {128, 1}, {256}, true, "128, 256"},
      {1, 1, 1, {128}, {256}, true, "128, 256"},
      {0, 2, 1, {1, 128}, {64}, true, "64, 128"},
      {1, 1, 0, {128}, {0}, false, "128, 512"}, /* loops about which nothing is said are not tiled */
      {1, 3, 1, {1, 2, 3}, {4}, false, NULL},
      {1, 1, 1, {128}, {1024}, false, NULL},
  };
  (void)state;
  for (int c = 0; c < N(cases); c++) {
    struct program p;
    int64_t axis[] = {cases[c].axis};
    begin(&p);
    hlo_val x = input(&p, DT_F32, -1, 1, DIMS(256, 512)), r = reduce(&p, HLO_ADD, x, 1, axis);
    if (cases[c].keepdims)
      r = keepdims(&p, x, r, 1, axis);
    struct hlo_knob *k = knob(&p, r);
    k->tile_size = list(&p, cases[c].n_tile, cases[c].tile);
    k->reduction_tile = list(&p, cases[c].n_red, cases[c].red);
    const char *text = lower_text(&p, r);
    if (cases[c].want) {
      assert_non_null(text);
      expect_text(&p, arena_printf(&p.arena, "loop_tile_size = array<i64: %s>", cases[c].want));
    } else {
      assert_null(text);
      assert_int_equal(p.ds.v[0].code, DG_BAD_KNOB);
      assert_int_equal(p.ds.v[0].loc->range.line, 7);
    }
    end(&p);
  }
}

static void matmul_function_form(void **state) {
  static const struct {
    int n_tile, n_red;
    int64_t tile[3], red[1];
    const char *want;
  } cases[] = {
      {2, 1, {128, 64}, {32}, "128, 64, 32"},
      {3, 0, {128, 64, 32}, {0}, "128, 64, 32"}, /* [M, N, K] */
      {2, 0, {128, 64}, {0}, "128, 64, 128"},
  };
  (void)state;
  for (int c = 0; c < N(cases); c++) {
    struct program p;
    begin(&p);
    hlo_val a = input(&p, DT_F32, -1, 1, DIMS(256, 256)), m = matmul(&p, a, a);
    struct hlo_knob *k = knob(&p, m);
    k->tile_size = list(&p, cases[c].n_tile, cases[c].tile);
    k->reduction_tile = list(&p, cases[c].n_red, cases[c].red);
    assert_non_null(lower_text(&p, m));
    expect_text(&p, arena_printf(&p.arena, "loop_tile_size = array<i64: %s>", cases[c].want));
    end(&p);
  }
}

static void wrong_builder_tiles_are_refused(void **state) {
  (void)state;
  for (int c = 0; c < 4; c++) {
    struct program p;
    begin(&p);
    hlo_val a = input(&p, DT_F32, -1, 1, DIMS(64, 64)), m = c < 2 ? matmul(&p, a, a) : hlo_unary(&p.b, HLO_EXP, a);
    struct hlo_knob *k = knob(&p, m);
    if (c == 0)
      k->loop_tile = LIST(&p, 64, 64, 128);
    else if (c < 3)
      k->loop_tile = LIST(&p, 64);
    else
      k->layout_tile = LIST(&p, 1, 2, 3);
    assert_null(lower_text(&p, m));
    assert_int_equal(p.ds.v[0].code, DG_BAD_KNOB);
    end(&p);
  }
}

/* min(x, x) is x, and a sum over one row is that row: what the user called [130] is computed as [1, 130]. */
static void a_tile_that_fitted_before_simplification_is_ignored_with_a_warning(void **state) {
  (void)state;
  for (int was_right = 0; was_right < 2; was_right++) {
    struct program p;
    begin(&p);
    hlo_val a = input(&p, DT_F32, -1, 1, DIMS(1, 130)), e = hlo_unary(&p.b, HLO_EXP, a);
    hlo_val then = hlo_reshape(&p.b, e, DIMS(130));
    struct hlo_knob *k = knob(&p, e);
    k->loop_tile = was_right ? LIST(&p, 128) : LIST(&p, 131);
    k->loops = hlo_loops_of(&p.arena, hlo_unary(&p.b, HLO_EXP, then));
    const char *text = lower_text(&p, e);
    assert_int_equal(p.ds.n, 1);
    assert_int_equal(p.ds.v[0].code, was_right ? DG_KNOB_IGNORED : DG_BAD_KNOB);
    assert_int_equal(p.ds.v[0].loc->range.line, 7);
    assert_int_equal(text != NULL, was_right);
    assert_true(!text || !strstr(text, "nkipy.tile_op"));
    end(&p);
  }
}

static void loops_of_a_knob(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val a = input(&p, DT_F32, -1, 1, DIMS(16, 32)), b = input(&p, DT_F32, -1, 1, DIMS(32, 8));
  struct hlo_loops *l = hlo_loops_of(&p.arena, matmul(&p, a, b));
  assert_int_equal(l->n, 3);
  assert_true(l->extents[0] == 16 && l->extents[1] == 8 && l->extents[2] == 32);
  assert_true(!l->reduction[0] && !l->reduction[1] && l->reduction[2]);
  l = hlo_loops_of(&p.arena, keepdims(&p, a, reduce(&p, HLO_ADD, a, DIMS(0)), DIMS(0)));
  assert_int_equal(l->n, 2);
  assert_true(l->extents[0] == 16 && l->reduction[0] && l->extents[1] == 32 && !l->reduction[1]);
  end(&p);
}

static void knobs_on_inputs_are_inert(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val a = input(&p, DT_F32, -1, 1, DIMS(64, 64));
  knob(&p, a)->loop_tile = LIST(&p, 32, 32);
  assert_non_null(lower_text(&p, hlo_unary(&p.b, HLO_EXP, a)));
  expect_no_text(&p, "nkipy");
  assert_int_equal(p.ds.n, 0);
  end(&p);
}

static void fuse_groups_name_the_values(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val a = input(&p, DT_F32, -1, 1, DIMS(64, 64)), x = hlo_unary(&p.b, HLO_EXP, a), y = hlo_unary(&p.b, HLO_LOG, a);
  hlo_val members[] = {x, y};
  struct hlo_fuse f = {.n = 2, .v = members, .loc = &knob_place};
  p.module->fuses = p.module->last_fuse = &f;
  assert_non_null(lower_text(&p, hlo_binary(&p.b, HLO_ADD, x, y)));
  expect_text(&p, "\"nkipy.fuse_op\"(%1, %3)");
  end(&p);
}

/* ---- locations ------------------------------------------------------------------------------------------ */

struct located {
  MlirLocation loc;
  int n;
};
static MlirWalkResult count_located(MlirOperation op, void *user) {
  struct located *l = user;
  l->n += mlirLocationEqual(mlirOperationGetLocation(op), l->loc) && mlirOperationGetNumResults(op);
  return MlirWalkResultAdvance;
}

static void locations_name_their_instructions(void **state) {
  struct program p;
  MlirModule m;
  (void)state;
  begin(&p);
  p.b.locs = src_locs_one(&p.arena, &knob_place);
  hlo_val a = input(&p, DT_F32, -1, 1, DIMS(4, 4)), e = hlo_unary(&p.b, HLO_EXP, a);
  int id = e->id;
  assert_int_equal(hlo_finish(&p.b, 1, &e, (const char *[]){"o"}), ST_OK);
  assert_int_equal(linalg_from_hlo(&ir, p.module, &p.ds, &m), ST_OK);
  MlirLocation want = ir_loc_tagged(ir.ctx, id, p.b.locs);
  struct located count = {want, 0};
  mlirOperationWalk(mlirModuleGetOperation(m), count_located, &count, MlirWalkPreOrder);
  assert_int_equal(count.n, 2); /* tensor.empty and linalg.exp */
  mlirModuleDestroy(m);
  end(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reductions_agree),
      cmocka_unit_test(odd_shapes_reduce),
      cmocka_unit_test(logical_reductions_agree),
      cmocka_unit_test(keepdims_is_computed_in_place),
      cmocka_unit_test(softmax_has_the_expected_form),
      cmocka_unit_test(matmuls_agree),
      cmocka_unit_test(general_dots_agree),
      cmocka_unit_test(mixed_operand_types_agree),
      cmocka_unit_test(narrow_floats_accumulate_in_f32),
      cmocka_unit_test(builder_knobs_land_on_the_operation),
      cmocka_unit_test(knobs_look_through_to_reduce_and_dot),
      cmocka_unit_test(layouts_follow_the_operation_s_shape),
      cmocka_unit_test(stretched_reductions_keep_their_axes),
      cmocka_unit_test(function_form_is_interleaved),
      cmocka_unit_test(matmul_function_form),
      cmocka_unit_test(wrong_builder_tiles_are_refused),
      cmocka_unit_test(a_tile_that_fitted_before_simplification_is_ignored_with_a_warning),
      cmocka_unit_test(loops_of_a_knob),
      cmocka_unit_test(knobs_on_inputs_are_inert),
      cmocka_unit_test(fuse_groups_name_the_values),
      cmocka_unit_test(locations_name_their_instructions),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
