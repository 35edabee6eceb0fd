/* test_hlo_pipeline: the passes around the simplifier, each on the smallest module that it changes and on one that it
 * must leave alone.  Modules are HLO text: what XLA makes of the same, test_hlo_passes.py asks. */
#include "hlo_test.h"

#include "hlo/read.h"

static struct hlo_module *read_module(struct test *t, const char *text) {
  struct hlo_module *m = hlo_read_text(&t->a, text, strlen(text), "m.hlo", &t->ds);
  if (!m)
    fail_msg("%s", t->ds.v[0].message);
  return m;
}

/* Reads, runs one pass, verifies. */
static struct hlo_module *after(struct test *t, hlo_pass *pass, const char *text, bool changes) {
  struct hlo_module *m = read_module(t, text);
  struct hlo_pass_result r = {.ds = &t->ds};
  hlo_stage_mark(m);
  pass(m, &r);
  if (hlo_verify(m, &t->ds))
    fail_msg("%s", t->ds.v[t->ds.n - 1].message);
  assert_int_equal(r.changed, changes);
  return m;
}

static int count_in(const struct hlo_computation *c, enum hlo_op op) {
  int n = 0;
  hlo_for_each(i, c) n += i->op == op;
  return n;
}

static int count(const struct hlo_module *m, enum hlo_op op) {
  int n = 0;
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    n += count_in(c, op);
  return n;
}

static struct hlo_instr *find(const struct hlo_module *m, enum hlo_op op) {
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) if (i->op == op) return i;
  fail_msg("no %s", hlo_op_name(op));
  return NULL;
}

/* ---- convert-legalization ---------------------------------------------------------------------------- */

static void sixty_four_bits_become_thirty_two_with_one_warning_per_type(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_convert_legalization,
                               "HloModule m\n"
                               "ENTRY e {\n"
                               "  x = s64[3] parameter(0)\n"
                               "  y = f64[3] parameter(1)\n"
                               "  c = s64[3] constant({1, -9223372036854775808, 4294967296})\n"
                               "  d = f64[] constant(1e300)\n"
                               "  b = f64[3] broadcast(d), dimensions={}\n"
                               "  a = s64[3] add(x, c)\n"
                               "  z = f64[3] convert(a)\n"
                               "  w = f64[3] add(z, b)\n"
                               "  v = f64[3] add(w, y)\n"
                               "  ROOT r = (s64[3], f64[3]) tuple(a, v)\n"
                               "}\n",
                               true);
  assert_shape(t, m->entry->root, "(s32[3], f32[3])");
  assert_shape(t, m->entry->params[0], "s32[3]");
  const int32_t want[] = {1, INT32_MIN, INT32_MAX};
  assert_memory_equal(find(m, HLO_CONSTANT)->attrs->literal->data, want, sizeof want);
  int narrowed = 0, misfits = 0;
  for (int k = 0; k < t->ds.n; k++) {
    assert_int_equal(t->ds.v[k].code, DG_DTYPE_NARROWED);
    assert_int_equal(t->ds.v[k].severity, DS_WARNING);
    narrowed += strstr(t->ds.v[k].message, "is computed in") != NULL;
    misfits += strstr(t->ds.v[k].message, "do not fit") != NULL;
  }
  assert_int_equal(narrowed, 2); /* s64 and f64 */
  assert_int_equal(misfits, 2);  /* c and d */
}

static void a_module_that_looks_at_64_bits_stays(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_convert_legalization,
                               "HloModule m\n"
                               "ENTRY e {\n"
                               "  x = u64[3] parameter(0)\n"
                               "  ROOT r = u64[3] count-leading-zeros(x)\n"
                               "}\n",
                               false);
  assert_shape(t, m->entry->root, "u64[3]");
  assert_int_equal(t->ds.n, 1);
  assert_non_null(strstr(t->ds.v[0].message, "keeps its 64-bit types"));
}

static void thirty_two_bits_are_left_in_peace(void **state) {
  struct test *t = *state;
  after(t, hlo_convert_legalization,
        "HloModule m\nENTRY e {\n  x = u32[3] parameter(0)\n  ROOT r = u32[3] count-leading-zeros(x)\n}\n", false);
  assert_int_equal(t->ds.n, 0);
}

/* ---- call-inliner ------------------------------------------------------------------------------------ */

#define CALLS \
  "HloModule m\n" \
  "f {\n" \
  "  p = f32[4] parameter(0)\n" \
  "  ROOT e = f32[4] exponential(p)\n" \
  "}\n" \
  "g {\n" \
  "  q = f32[4] parameter(0)\n" \
  "  ROOT c = f32[4] call(q), to_apply=f\n" \
  "}\n" \
  "ENTRY e {\n" \
  "  x = f32[4] parameter(0)\n" \
  "  a = f32[4] call(x), to_apply=g\n" \
  "  b = f32[4] call(a), to_apply=g\n" \
  "  ROOT r = f32[4] negate(b)\n" \
  "}\n"

static void calls_of_calls_become_their_instructions(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_call_inliner, CALLS, true);
  assert_int_equal(count_in(m->entry, HLO_CALL), 0);
  assert_int_equal(count_in(m->entry, HLO_EXP), 2);
  const struct hlo_instr *e = m->entry->root->operands[0];
  assert_int_equal(e->op, HLO_EXP);
  assert_int_equal(e->operands[0]->op, HLO_EXP);
  assert_ptr_equal(e->operands[0]->operands[0], m->entry->params[0]);
  assert_true(e->n_from >= 2); /* the callee's instruction, and the call */
}

static void a_name_wanted_a_thousand_times_costs_linear_time(void **state) {
  struct test *t = *state;
  enum { COUNT = 60000 };
  for (int k = 0; k < COUNT; k++)
    hlo_append(t->b.computation, HLO_CONSTANT, "c", (struct hlo_shape){.dtype = DT_F32}, 0, NULL);
  assert_string_equal(t->b.computation->last->name, "c.59999");
}

/* ---- zero-sized-hlo-elimination, constant-folding ---------------------------------------------------- */

static void what_has_no_elements_is_an_empty_constant(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_zero_sized_elimination,
                               "HloModule m\n"
                               "ENTRY e {\n"
                               "  x = f32[0,4] parameter(0)\n"
                               "  y = f32[2,4] parameter(1)\n"
                               "  s = f32[0,4] sine(x)\n"
                               "  c = f32[2,4] concatenate(s, y), dimensions={0}\n"
                               "  ROOT r = f32[2,4] negate(c)\n"
                               "}\n",
                               true);
  assert_int_equal(count(m, HLO_SIN), 0);
  const struct hlo_instr *empty = m->entry->root->operands[0]->operands[0];
  assert_int_equal(empty->op, HLO_CONSTANT);
  assert_int_equal(empty->attrs->literal->size, 0);
}

static void constants_are_folded_where_every_machine_agrees(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_constant_folding,
                               "HloModule m\n"
                               "ENTRY e {\n"
                               "  x = f32[2] parameter(0)\n"
                               "  a = f32[2] constant({1, 2})\n"
                               "  b = f32[2] constant({3, 5})\n"
                               "  p = f32[2] multiply(a, b)\n"
                               "  h = bf16[2] convert(p)\n"
                               "  l = pred[2] compare(a, b), direction=GT\n"
                               "  s = f32[2] select(l, x, p)\n"
                               "  e = f32[2] exponential(a)\n"
                               "  ROOT r = (f32[2], bf16[2], f32[2]) tuple(s, h, e)\n"
                               "}\n",
                               true);
  const struct hlo_instr *root = m->entry->root, *product = root->operands[0]->operands[2];
  assert_int_equal(product->op, HLO_CONSTANT);
  assert_memory_equal(product->attrs->literal->data, ((float[]){3, 10}), 8);
  assert_int_equal(root->operands[1]->op, HLO_CONSTANT);
  assert_memory_equal(root->operands[1]->attrs->literal->data, ((uint16_t[]){0x4040, 0x4120}), 4);
  assert_memory_equal(root->operands[0]->operands[0]->attrs->literal->data, "\0\0", 2);
  assert_int_equal(root->operands[2]->op, HLO_EXP); /* machines differ */
  assert_true(product->n_from >= 1);
}

static void integer_division_and_conversion_out_of_range_stay(void **state) {
  struct test *t = *state;
  after(t, hlo_constant_folding,
        "HloModule m\n"
        "ENTRY e {\n"
        "  a = s32[] constant(7)\n"
        "  b = s32[] constant(0)\n"
        "  f = f32[] constant(3e10)\n"
        "  q = s32[] divide(a, b)\n"
        "  i = s32[] convert(f)\n"
        "  ROOT r = s32[] add(q, i)\n"
        "}\n",
        false);
}

/* ---- simplify-conditional ---------------------------------------------------------------------------- */

#define BRANCHES \
  "HloModule m\n" \
  "f {\n" \
  "  p = f32[4] parameter(0)\n" \
  "  s = f32[4] sine(p)\n" \
  "  c = f32[4] cosine(p)\n" \
  "  ROOT t = (f32[4], f32[4]) tuple(s, c)\n" \
  "}\n" \
  "g {\n" \
  "  p = f32[4] parameter(0)\n" \
  "  n = f32[4] negate(p)\n" \
  "  ROOT t = (f32[4], f32[4]) tuple(n, p)\n" \
  "}\n"

static void a_known_predicate_chooses(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_conditional_simplifier,
                               BRANCHES "ENTRY e {\n"
                                        "  x = f32[4] parameter(0)\n"
                                        "  p = pred[] constant(false)\n"
                                        "  c = (f32[4], f32[4]) conditional(p, x, x), true_computation=f, "
                                        "false_computation=g\n"
                                        "  ROOT r = f32[4] get-tuple-element(c), index=0\n"
                                        "}\n",
                               true);
  assert_int_equal(count_in(m->entry, HLO_CONDITIONAL), 0);
  assert_int_equal(count_in(m->entry, HLO_NEGATE), 1);
}

static void branches_that_are_the_same_need_no_choice(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_conditional_simplifier,
                               "HloModule m\n"
                               "f {\n"
                               "  p = f32[4] parameter(0)\n"
                               "  ROOT s = f32[4] sine(p)\n"
                               "}\n"
                               "ENTRY e {\n"
                               "  x = f32[4] parameter(0)\n"
                               "  k = s32[] parameter(1)\n"
                               "  ROOT c = f32[4] conditional(k, x, x), branch_computations={f, f}\n"
                               "}\n",
                               true);
  assert_int_equal(m->entry->root->op, HLO_SIN);
}

static void branches_give_only_what_is_read(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_conditional_simplifier,
                               BRANCHES "ENTRY e {\n"
                                        "  x = f32[4] parameter(0)\n"
                                        "  p = pred[] parameter(1)\n"
                                        "  c = (f32[4], f32[4]) conditional(p, x, x), true_computation=f, "
                                        "false_computation=g\n"
                                        "  ROOT r = f32[4] get-tuple-element(c), index=1\n"
                                        "}\n",
                               true);
  assert_shape(t, find(m, HLO_CONDITIONAL), "(f32[4])");
  assert_int_equal(m->entry->root->attrs->tuple_index, 0);
  assert_int_equal(m->computations->root->operands[0]->op, HLO_COS);
}

static void an_open_choice_that_is_read_whole_stays(void **state) {
  struct test *t = *state;
  after(t, hlo_conditional_simplifier,
        BRANCHES "ENTRY e {\n"
                 "  x = f32[4] parameter(0)\n"
                 "  p = pred[] parameter(1)\n"
                 "  ROOT c = (f32[4], f32[4]) conditional(p, x, x), true_computation=f, false_computation=g\n"
                 "}\n",
        false);
}

/* ---- simplify-while-loops ---------------------------------------------------------------------------- */

/* i, n (the limit, unchanged), x (doubled), y (sums up, for nobody), z (unchanged) */
#define LOOP(limit, result) \
  "HloModule m\n" \
  "body {\n" \
  "  p = (s32[], s32[], f32[4], f32[4], f32[4]) parameter(0)\n" \
  "  i = s32[] get-tuple-element(p), index=0\n" \
  "  n = s32[] get-tuple-element(p), index=1\n" \
  "  x = f32[4] get-tuple-element(p), index=2\n" \
  "  y = f32[4] get-tuple-element(p), index=3\n" \
  "  z = f32[4] get-tuple-element(p), index=4\n" \
  "  one = s32[] constant(1)\n" \
  "  next = s32[] add(i, one)\n" \
  "  twice = f32[4] add(x, z)\n" \
  "  sum = f32[4] add(y, x)\n" \
  "  ROOT t = (s32[], s32[], f32[4], f32[4], f32[4]) tuple(next, n, twice, sum, z)\n" \
  "}\n" \
  "condition {\n" \
  "  p = (s32[], s32[], f32[4], f32[4], f32[4]) parameter(0)\n" \
  "  i = s32[] get-tuple-element(p), index=0\n" \
  "  n = s32[] get-tuple-element(p), index=1\n" \
  "  ROOT c = pred[] compare(i, n), direction=LT\n" \
  "}\n" \
  "ENTRY e {\n" \
  "  x = f32[4] parameter(0)\n" \
  "  z = f32[4] parameter(1)\n" \
  "  zero = s32[] constant(0)\n" \
  "  limit = s32[] " limit "\n" \
  "  t = (s32[], s32[], f32[4], f32[4], f32[4]) tuple(zero, limit, x, x, z)\n" \
  "  w = (s32[], s32[], f32[4], f32[4], f32[4]) while(t), condition=condition, body=body\n" \
  "  a = f32[4] get-tuple-element(w), index=2\n" \
  "  b = f32[4] get-tuple-element(w), index=4\n" \
  "  ROOT r = f32[4] " result "\n" \
  "}\n"

static void a_loop_carries_what_is_needed_and_knows_its_limit(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_while_loop_simplifier, LOOP("constant(8)", "subtract(a, b)"), true);
  const struct hlo_instr *w = find(m, HLO_WHILE);
  assert_shape(t, w, "(s32[], f32[4], f32[4])"); /* i, x, z */
  const struct hlo_instr *limit = w->called[1]->root->operands[1];
  assert_int_equal(limit->op, HLO_CONSTANT);
  assert_int_equal(*(const int32_t *)limit->attrs->literal->data, 8);
  assert_int_equal(count_in(w->called[0], HLO_ADD), 2); /* nobody adds up y */
  assert_ptr_equal(m->entry->root->operands[1], m->entry->params[1]);
}

static void a_limit_that_is_not_known_is_carried(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_while_loop_simplifier, LOOP("parameter(2)", "subtract(a, b)"), true);
  assert_shape(t, find(m, HLO_WHILE), "(s32[], s32[], f32[4], f32[4])");
}

static void a_loop_of_one_trip_is_its_body(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_while_loop_simplifier, LOOP("constant(1)", "subtract(a, b)"), true);
  assert_int_equal(count_in(m->entry, HLO_WHILE), 0);
  assert_int_equal(count_in(m->entry, HLO_ADD), 2);
}

static void a_loop_of_no_trip_is_gone(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_while_loop_simplifier, LOOP("constant(-3)", "subtract(a, b)"), true);
  assert_int_equal(count_in(m->entry, HLO_WHILE) + count_in(m->entry, HLO_ADD), 0);
}

static void a_loop_whose_result_is_taken_whole_carries_everything(void **state) {
  struct test *t = *state;
  struct hlo_module *m =
      after(t, hlo_while_loop_simplifier,
            LOOP("constant(8)",
                 "call(w), to_apply=second") "second {\n  q = (s32[], s32[], f32[4], f32[4], f32[4]) parameter(0)\n"
                                             "  ROOT g = f32[4] get-tuple-element(q), index=2\n}\n",
            true);
  assert_int_equal(find(m, HLO_WHILE)->shape.n_elems, 5);
}

static void computations_with_two_callers_are_not_touched(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_while_loop_simplifier,
                               "HloModule m\n"
                               "body {\n"
                               "  p = (f32[], f32[]) parameter(0)\n"
                               "  a = f32[] get-tuple-element(p), index=0\n"
                               "  b = f32[] get-tuple-element(p), index=1\n"
                               "  s = f32[] add(a, a)\n"
                               "  ROOT t = (f32[], f32[]) tuple(s, b)\n"
                               "}\n"
                               "condition {\n"
                               "  p = (f32[], f32[]) parameter(0)\n"
                               "  a = f32[] get-tuple-element(p), index=0\n"
                               "  c = f32[] constant(9)\n"
                               "  ROOT l = pred[] compare(a, c), direction=LT\n"
                               "}\n"
                               "ENTRY e {\n"
                               "  x = f32[] parameter(0)\n"
                               "  t = (f32[], f32[]) tuple(x, x)\n"
                               "  v = (f32[], f32[]) while(t), condition=condition, body=body\n"
                               "  w = (f32[], f32[]) while(v), condition=condition, body=body\n"
                               "  a = f32[] get-tuple-element(w), index=0\n"
                               "  ROOT r = f32[] negate(a)\n"
                               "}\n",
                               false);
  assert_shape(t, find(m, HLO_WHILE), "(f32[], f32[])");
}

/* ---- broadcast-canonicalizer, dot-decomposer --------------------------------------------------------- */

static void a_broadcast_out_of_order_is_transposed_afterwards(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_broadcast_canonicalizer,
                               "HloModule m\n"
                               "ENTRY e {\n"
                               "  x = f32[2,3,4] parameter(0)\n"
                               "  ROOT b = f32[4,5,2,3] broadcast(x), dimensions={2,3,0}\n"
                               "}\n",
                               true);
  assert_int_equal(m->entry->root->op, HLO_TRANSPOSE);
  const struct hlo_instr *b = m->entry->root->operands[0];
  assert_shape(t, b, "f32[2,5,3,4]");
  assert_memory_equal(b->attrs->dimensions.v, DIMS(0, 2, 3), 3 * sizeof(int64_t));
  assert_memory_equal(m->entry->root->attrs->dimensions.v, DIMS(3, 1, 0, 2), 4 * sizeof(int64_t));
}

static void a_dot_of_heads_gets_its_batch_first(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_dot_decomposer,
                               "HloModule m\n"
                               "ENTRY e {\n"
                               "  q = f32[2,5,3,8] parameter(0)\n"
                               "  k = f32[2,7,3,8] parameter(1)\n"
                               "  ROOT d = f32[2,3,5,7] dot(q, k), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, "
                               "lhs_contracting_dims={3}, rhs_contracting_dims={3}\n"
                               "}\n",
                               true);
  const struct hlo_instr *d = m->entry->root;
  assert_int_equal(d->op, HLO_DOT);
  assert_shape(t, d->operands[0], "f32[2,3,5,8]");
  assert_shape(t, d->operands[1], "f32[2,3,8,7]");
  assert_memory_equal(d->attrs->dot->lhs_batch.v, DIMS(0, 1), 2 * sizeof(int64_t));
  assert_int_equal(count(m, HLO_RESHAPE), 0);
}

static void several_rows_and_sums_become_one_each(void **state) {
  struct test *t = *state;
  struct hlo_module *m =
      after(t, hlo_dot_decomposer,
            "HloModule m\n"
            "ENTRY e {\n"
            "  x = f32[2,3,4,5] parameter(0)\n"
            "  y = f32[5,6,4] parameter(1)\n"
            "  ROOT d = f32[2,3,6] dot(x, y), lhs_contracting_dims={2,3}, rhs_contracting_dims={2,0}\n"
            "}\n",
            true);
  assert_int_equal(m->entry->root->op, HLO_RESHAPE);
  const struct hlo_instr *d = m->entry->root->operands[0];
  assert_shape(t, d, "f32[6,6]");
  assert_shape(t, d->operands[0], "f32[6,20]");
  assert_shape(t, d->operands[1], "f32[20,6]");
  assert_int_equal(count(m, HLO_TRANSPOSE), 1); /* of y: x is in order */
}

static void canonical_dots_and_dots_over_nothing_stay(void **state) {
  struct test *t = *state;
  after(t, hlo_dot_decomposer,
        "HloModule m\n"
        "ENTRY e {\n"
        "  x = f32[2,4,3] parameter(0)\n"
        "  y = f32[2,4] parameter(1)\n"
        "  n = f32[2,0,4,2] parameter(2)\n"
        "  d = f32[2,3] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
        "rhs_contracting_dims={1}\n"
        "  f = f32[4,2,4,2] dot(n, n), lhs_batch_dims={}, rhs_batch_dims={}, lhs_contracting_dims={0,1}, "
        "rhs_contracting_dims={0,1}\n"
        "  ROOT r = (f32[2,3], f32[4,2,4,2]) tuple(d, f)\n"
        "}\n",
        false);
}

/* ---- transpose-folding, reshape-mover ---------------------------------------------------------------- */

static void rows_and_columns_change_places_inside_the_dot(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_transpose_folding,
                               "HloModule m\n"
                               "ENTRY e {\n"
                               "  x = f32[2,4,3] parameter(0)\n"
                               "  y = f32[4,2,5] parameter(1)\n"
                               "  s = f32[2,3,4] transpose(x), dimensions={0,2,1}\n"
                               "  u = f32[2,4,5] transpose(y), dimensions={1,0,2}\n"
                               "  ROOT d = f32[2,3,5] dot(s, u), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                               "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"
                               "}\n",
                               true);
  const struct hlo_instr *d = m->entry->root;
  assert_ptr_equal(d->operands[0], m->entry->params[0]);
  assert_int_equal(d->attrs->dot->lhs_contracting.v[0], 1);
  assert_int_equal(d->operands[1]->op, HLO_TRANSPOSE); /* it moves the batch */
}

static void a_chain_moves_in_front_of_its_reshape(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_reshape_mover,
                               "HloModule m\n"
                               "ENTRY e {\n"
                               "  x = f32[6,4] parameter(0)\n"
                               "  y = f32[6,4] parameter(1)\n"
                               "  two = f32[] constant(2)\n"
                               "  b = f32[24] broadcast(two), dimensions={}\n"
                               "  p = f32[24] reshape(x)\n"
                               "  q = f32[24] reshape(y)\n"
                               "  s = f32[24] add(p, q)\n"
                               "  m = f32[24] multiply(s, b)\n"
                               "  l = pred[24] compare(m, b), direction=LT\n"
                               "  ROOT r = pred[6,4] reshape(l)\n"
                               "}\n",
                               true);
  const struct hlo_instr *down = m->entry->root->operands[0];
  assert_int_equal(down->op, HLO_RESHAPE);
  assert_shape(t, down->operands[0], "pred[6,4]");
  assert_int_equal(down->operands[0]->op, HLO_COMPARE);
  assert_shape(t, down->operands[0]->operands[0], "f32[6,4]");
  assert_int_equal(down->operands[0]->operands[0]->op, HLO_MULTIPLY);
}

static void transposes_move_when_they_agree(void **state) {
  struct test *t = *state;
  struct hlo_module *m = after(t, hlo_reshape_mover,
                               "HloModule m\n"
                               "ENTRY e {\n"
                               "  x = f32[6,4,2] parameter(0)\n"
                               "  p = f32[2,6,4] transpose(x), dimensions={2,0,1}\n"
                               "  s = f32[2,6,4] multiply(p, p)\n"
                               "  ROOT r = f32[2,6,4] negate(s)\n"
                               "}\n",
                               true);
  assert_int_equal(m->entry->root->operands[0]->op, HLO_TRANSPOSE);
  assert_shape(t, m->entry->root->operands[0]->operands[0], "f32[6,4,2]");
}

static void reshapes_that_differ_or_are_needed_elsewhere_stay(void **state) {
  struct test *t = *state;
  after(t, hlo_reshape_mover,
        "HloModule m\n"
        "ENTRY e {\n"
        "  x = f32[6,4] parameter(0)\n"
        "  y = f32[4,6] parameter(1)\n"
        "  p = f32[24] reshape(x)\n"
        "  q = f32[24] reshape(y)\n"
        "  s = f32[24] add(p, q)\n"
        "  n = f32[24] negate(p)\n"
        "  ROOT r = (f32[24], f32[24]) tuple(s, n)\n"
        "}\n",
        false);
}

static void what_carries_a_knob_keeps_its_shape(void **state) {
  struct test *t = *state;
  struct hlo_pass_result r = {0};
  hlo_val x = PARAM(t, "x", DT_F32, 6, 4), e = hlo_unary(&t->b, HLO_EXP, hlo_reshape(&t->b, x, 1, DIMS(24)));
  struct hlo_knob *k = arena_new(&t->a, struct hlo_knob);
  k->loop_tile = INTS(8);
  k->partition_dim = -1;
  e->knob = k;
  assert_int_equal(hlo_finish(&t->b, 1, &e, (const char *[]){"o"}), ST_OK);
  hlo_reshape_mover(t->b.module, &r);
  assert_false(r.changed);
}

/* ---- all of them ------------------------------------------------------------------------------------- */

static void every_stage_has_a_pass_by_its_name(void **state) {
  (void)state;
  for (int k = 0; k < hlo_n_passes; k++)
    assert_ptr_equal(hlo_pass_find(hlo_passes[k].name), hlo_passes[k].fn);
  assert_null(hlo_pass_find("no-such-pass"));
}

static void a_second_round_finds_nothing_to_do(void **state) {
  struct test *t = *state;
  struct hlo_module *m = read_module(t, LOOP("constant(8)", "subtract(a, b)"));
  for (int round = 0; round < 3; round++)
    for (int k = 0; k < hlo_n_passes; k++) {
      struct hlo_pass_result r = {.ds = &t->ds};
      hlo_stage_mark(m);
      hlo_passes[k].fn(m, &r);
      assert_int_equal(hlo_verify(m, &t->ds), ST_OK);
      if (round == 2 && r.changed)
        fail_msg("%s", hlo_passes[k].name);
    }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, test_setup, test_teardown)
  const struct CMUnitTest tests[] = {
      T(sixty_four_bits_become_thirty_two_with_one_warning_per_type),
      T(a_module_that_looks_at_64_bits_stays),
      T(thirty_two_bits_are_left_in_peace),
      T(calls_of_calls_become_their_instructions),
      T(a_name_wanted_a_thousand_times_costs_linear_time),
      T(what_has_no_elements_is_an_empty_constant),
      T(constants_are_folded_where_every_machine_agrees),
      T(integer_division_and_conversion_out_of_range_stay),
      T(a_known_predicate_chooses),
      T(branches_that_are_the_same_need_no_choice),
      T(branches_give_only_what_is_read),
      T(an_open_choice_that_is_read_whole_stays),
      T(a_loop_carries_what_is_needed_and_knows_its_limit),
      T(a_limit_that_is_not_known_is_carried),
      T(a_loop_of_one_trip_is_its_body),
      T(a_loop_of_no_trip_is_gone),
      T(a_loop_whose_result_is_taken_whole_carries_everything),
      T(computations_with_two_callers_are_not_touched),
      T(a_broadcast_out_of_order_is_transposed_afterwards),
      T(a_dot_of_heads_gets_its_batch_first),
      T(several_rows_and_sums_become_one_each),
      T(canonical_dots_and_dots_over_nothing_stay),
      T(rows_and_columns_change_places_inside_the_dot),
      T(a_chain_moves_in_front_of_its_reshape),
      T(transposes_move_when_they_agree),
      T(reshapes_that_differ_or_are_needed_elsewhere_stay),
      T(what_carries_a_knob_keeps_its_shape),
      T(every_stage_has_a_pass_by_its_name),
      T(a_second_round_finds_nothing_to_do),
  };
#undef T
  return cmocka_run_group_tests(tests, NULL, NULL);
}
