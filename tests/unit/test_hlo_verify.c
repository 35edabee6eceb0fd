/* test_hlo_verify: each violation is found, with the instruction and its place. */
#include "hlo_test.h"

/* A small module with everything that can be broken. */
static struct hlo_module *build(struct test *t) {
  hlo_val x = PARAM(t, "x", DT_F32, 3, 4), p = PARAM(t, "p", DT_F32, 3);
  t->b.locs = test_loc(t, 7);
  hlo_val e = hlo_unary(&t->b, HLO_EXP, x);
  hlo_val s = hlo_reduce(&t->b, HLO_ADD, e, hlo_scalar(&t->b, DT_F32, 0), 1, DIMS(1));
  hlo_val y = hlo_binary(&t->b, HLO_ADD, s, p);
  assert_int_equal(hlo_finish(&t->b, 2, (hlo_val[]){s, y}, (const char *[]){"output0", "p"}), ST_OK);
  t->b.module->n_aliases = 1;
  t->b.module->aliases = arena_new(&t->a, struct hlo_alias);
  t->b.module->aliases[0] = (struct hlo_alias){1, 1, "p", false};
  assert_int_equal(hlo_verify(t->b.module, &t->ds), ST_OK);
  return t->b.module;
}

static hlo_val find(const struct hlo_module *m, enum hlo_op op) {
  hlo_for_each(i, m->entry) if (i->op == op) return i;
  return NULL;
}

static void expect(struct test *t, const char *message) {
  assert_int_equal(hlo_verify(t->b.module, &t->ds), ST_INPUT);
  assert_int_equal(t->ds.n, 1);
  assert_int_equal(t->ds.v[0].code, DG_HLO_INVALID);
  assert_string_equal(t->ds.v[0].message, message);
}

static void a_wrong_shape(void **state) {
  struct test *t = *state;
  hlo_val e = find(build(t), HLO_EXP);
  e->shape = hlo_shape_array(&t->a, DT_F32, 2, DIMS(4, 3));
  char message[100];
  snprintf(message, sizeof message, "%%%s: exponential gives f32[3,4], not f32[4,3]", e->name);
  expect(t, message);
  assert_int_equal(t->ds.v[0].loc->range.line, 7);
}

static void an_operand_after_its_user(void **state) {
  struct test *t = *state;
  struct hlo_module *m = build(t);
  hlo_val y = find(m, HLO_ADD), e = find(m, HLO_EXP);
  e->operands[0] = y;
  char message[100];
  snprintf(message, sizeof message, "%%%s: operand 0 does not precede it", e->name);
  expect(t, message);
}

static void an_operand_from_another_computation(void **state) {
  struct test *t = *state;
  struct hlo_module *m = build(t);
  hlo_val e = find(m, HLO_EXP);
  e->operands[0] = m->computations->params[0];
  char message[100];
  snprintf(message, sizeof message, "%%%s: operand 0 does not precede it", e->name);
  expect(t, message);
}

static void a_wrong_attribute(void **state) {
  struct test *t = *state;
  hlo_val r = find(build(t), HLO_REDUCE);
  hlo_set_attrs(r, &(struct hlo_attrs){.dimensions = INTS(2)});
  char message[100];
  snprintf(message, sizeof message, "%%%s: reduce: dimensions {2} are not different dimensions of f32[3,4]", r->name);
  expect(t, message);
}

static void a_combiner_of_the_wrong_type(void **state) {
  struct test *t = *state;
  hlo_val r = find(build(t), HLO_REDUCE);
  struct hlo_shape s = {.dtype = DT_I32};
  r->called[0]->params[0]->shape = r->called[0]->params[1]->shape = r->called[0]->root->shape = s;
  char message[100];
  snprintf(message, sizeof message,
           "%%%s: reduce: the called computation add_float32_computation must take two f32[] and give one", r->name);
  expect(t, message);
}

static void a_missing_called_computation(void **state) {
  struct test *t = *state;
  hlo_val r = find(build(t), HLO_REDUCE);
  r->n_called = 0;
  char message[100];
  snprintf(message, sizeof message, "%%%s: reduce: needs exactly one called computation", r->name);
  expect(t, message);
}

static void a_call_of_itself(void **state) {
  struct test *t = *state;
  struct hlo_module *m = build(t);
  hlo_val r = find(m, HLO_REDUCE);
  r->called[0] = m->entry;
  char message[100];
  snprintf(message, sizeof message, "%%%s: calls a computation that does not precede it", r->name);
  expect(t, message);
}

static void two_of_the_same_name(void **state) {
  struct test *t = *state;
  find(build(t), HLO_EXP)->name = "x";
  expect(t, "two instructions are called %x");
}

static void a_parameter_number_twice(void **state) {
  struct test *t = *state;
  struct hlo_module *m = build(t);
  hlo_set_attrs(m->entry->params[1], &(struct hlo_attrs){.parameter_number = 0});
  expect(t, "%p: parameter number 0 is not that of this instruction");
}

static void an_alias_of_another_shape(void **state) {
  struct test *t = *state;
  build(t)->aliases[0].param_index = 0;
  expect(t, "%x: has the shape f32[3,4], its alias output 1 has f32[3]");
}

static void an_alias_that_does_not_exist(void **state) {
  struct test *t = *state;
  build(t)->aliases[0].output_index = 2;
  expect(t, "alias of output 2 and parameter 1: one of them does not exist");
}

static void a_parameter_aliased_twice(void **state) {
  struct test *t = *state;
  struct hlo_module *m = build(t);
  m->aliases = (struct hlo_alias[]){{1, 1, "p", false}, {0, 1, "p", false}};
  m->n_aliases = 2;
  expect(t, "alias of output 0 and parameter 1: one of them is aliased twice");
}

static void results_that_do_not_match_their_names(void **state) {
  struct test *t = *state;
  build(t)->n_outputs = 1;
  expect(t, "%result: the root gives 2 results, the module names 1");
}

static void a_computation_without_a_root(void **state) {
  struct test *t = *state;
  build(t)->computations->root = NULL;
  expect(t, "computation add_float32_computation has no root of its own");
}

static void a_fuse_group_with_a_removed_member(void **state) {
  struct test *t = *state;
  struct hlo_module *m = build(t);
  hlo_val stray = hlo_append(m->entry, HLO_COPY, NULL, m->entry->params[0]->shape, 1, m->entry->params);
  struct hlo_fuse f = {.n = 1, .v = &stray};
  m->fuses = m->last_fuse = &f;
  assert_int_equal(hlo_verify(m, &t->ds), ST_OK);
  hlo_remove(stray);
  expect(t, "a fuse group holds a value that is not in the module");
}

static void a_constant_of_the_wrong_size(void **state) {
  struct test *t = *state;
  hlo_val c = find(build(t), HLO_CONSTANT);
  struct hlo_literal l = *c->attrs->literal;
  l.size = 3;
  hlo_set_attrs(c, &(struct hlo_attrs){.literal = &l});
  char message[100];
  snprintf(message, sizeof message, "%%%s: constant: 3 bytes are not the value of f32[]", c->name);
  expect(t, message);
}

static void a_dtype_that_does_not_exist(void **state) {
  struct test *t = *state;
  build(t)->entry->params[0]->shape.dtype = DT_NONE;
  expect(t, "%x: parameter: unknown data type");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, test_setup, test_teardown)
  const struct CMUnitTest tests[] = {
      T(a_wrong_shape),
      T(an_operand_after_its_user),
      T(an_operand_from_another_computation),
      T(a_wrong_attribute),
      T(a_combiner_of_the_wrong_type),
      T(a_missing_called_computation),
      T(a_call_of_itself),
      T(two_of_the_same_name),
      T(a_parameter_number_twice),
      T(an_alias_of_another_shape),
      T(an_alias_that_does_not_exist),
      T(a_parameter_aliased_twice),
      T(results_that_do_not_match_their_names),
      T(a_computation_without_a_root),
      T(a_fuse_group_with_a_removed_member),
      T(a_constant_of_the_wrong_size),
      T(a_dtype_that_does_not_exist),
  };
#undef T
  return cmocka_run_group_tests(tests, NULL, NULL);
}
