/* Lowering and meaning of call, while and conditional, against values worked out here. */
#include "linalg_support.h"

static struct hlo_builder computation(struct program *p, const char *name) {
  struct hlo_builder c = p->b;
  c.computation = hlo_computation_new(p->module, name);
  return c;
}

/* Lowers, runs, and compares the only output, a f32 tensor of n elements, with want. */
static void expect_values(struct program *p, hlo_val result, int n, const float *want, const char *operation) {
  MlirModule m;
  assert_non_null(result);
  assert_int_equal(hlo_finish(&p->b, 1, &result, (const char *[]){"o0"}), ST_OK);
  p->n_out = 1;
  p->out[0] =
      (struct trace_array){.shape = result->shape, .data = arena_dup(&p->arena, want, (size_t)n * sizeof *want)};
  if (linalg_from_hlo(&ir, p->module, &p->ds, &m)) {
    print_diags(p);
    fail_msg("not lowered");
  }
  p->text = module_text(p, m);
  expect_text(p, operation);
  run_and_compare(p, m, "lowered");
  mlirModuleDestroy(m);
}

static struct hlo_computation *scaled(struct program *p, const char *name, double factor) {
  struct hlo_builder c = computation(p, name);
  hlo_val x = hlo_parameter(&c, "x", hlo_shape_array(&p->arena, DT_F32, 1, INTS(2)));
  c.computation->root = hlo_binary(&c, HLO_MULTIPLY, x, hlo_full(&c, DT_F32, 1, INTS(2), factor));
  return c.computation;
}

static void a_call_is_the_computation_each_time(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val x = input_values(&p, DT_F32, VALUES(1, -2));
  struct hlo_computation *f = scaled(&p, "triple", 3);
  hlo_val y = hlo_call(&p.b, f, 1, &x);
  expect_values(&p, hlo_call(&p.b, f, 1, &y), 2, (float[]){9, -18}, "linalg");
  end(&p);
}

static void the_branch_that_is_chosen_runs(void **state) {
  static const float factors[] = {2, 3, 5};
  (void)state;
  for (int n = 2; n <= 3; n++)
    for (int at = -1; at <= n; at++) {
      struct program p;
      begin(&p);
      hlo_val x = input_values(&p, DT_F32, VALUES(1, -2)), i = input(&p, n == 2 ? DT_BOOL : DT_I32, 0, 0, SCALAR);
      hlo_literal_store(n == 2 ? DT_BOOL : DT_I32, n == 2 ? at == 0 : at, p.in[1].data);
      struct hlo_computation *f[] = {scaled(&p, "a", 2), scaled(&p, "b", 3), scaled(&p, "c", 5)};
      const float want = factors[at >= 0 && at < n ? at : n - 1];
      expect_values(&p, hlo_conditional(&p.b, i, n, f, (hlo_val[]){x, x, x}), 2, (float[]){want, -2 * want}, "scf.if");
      end(&p);
    }
}

static void a_while_on_data_runs_as_long_as_it_says(void **state) {
  struct program p;
  (void)state;
  begin(&p);
  hlo_val x = input_values(&p, DT_F32, VALUES(1.5));
  hlo_val start = hlo_reshape(&p.b, x, 0, NULL);
  struct hlo_builder c = computation(&p, "body");
  hlo_val v = hlo_parameter(&c, "v", start->shape);
  struct hlo_computation *body = c.computation;
  body->root = hlo_binary(&c, HLO_ADD, v, v);
  c = computation(&p, "condition");
  v = hlo_parameter(&c, "v", start->shape);
  c.computation->root = hlo_compare(&c, HLO_LT, v, hlo_scalar(&c, DT_F32, 100));
  expect_values(&p, hlo_while(&p.b, c.computation, body, start), 1, (float[]){192}, "scf.while");
  end(&p);
}

/* for (i = first; i <direction> limit; i += step) v += i */
static void counted(int first, enum hlo_direction d, int limit, int step, float want) {
  struct program p;
  begin(&p);
  hlo_val x = hlo_reshape(&p.b, input_values(&p, DT_F32, VALUES(0.5)), 0, NULL);
  hlo_val init = hlo_tuple(&p.b, 2, (hlo_val[]){hlo_scalar(&p.b, DT_I32, first), x});
  struct hlo_builder c = computation(&p, "body");
  hlo_val s = hlo_parameter(&c, "s", init->shape), i = hlo_tuple_element(&c, s, 0);
  struct hlo_computation *body = c.computation;
  hlo_val v = hlo_binary(&c, HLO_ADD, hlo_tuple_element(&c, s, 1), hlo_convert(&c, i, DT_F32));
  body->root = hlo_tuple(&c, 2, (hlo_val[]){hlo_binary(&c, HLO_ADD, i, hlo_scalar(&c, DT_I32, step)), v});
  c = computation(&p, "condition");
  i = hlo_tuple_element(&c, hlo_parameter(&c, "s", init->shape), 0);
  c.computation->root = hlo_compare(&c, d, i, hlo_scalar(&c, DT_I32, limit));
  hlo_val w = hlo_while(&p.b, c.computation, body, init);
  hlo_val end_of_i = hlo_convert(&p.b, hlo_tuple_element(&p.b, w, 0), DT_F32);
  expect_values(&p, hlo_binary(&p.b, HLO_ADD, hlo_tuple_element(&p.b, w, 1), end_of_i), 1, &want, "scf.for");
  expect_no_text(&p, "scf.while");
  end(&p);
}

static void a_while_that_counts_is_a_for(void **state) {
  (void)state;
  counted(0, HLO_LT, 4, 1, 0.5F + 6 + 4);
  counted(1, HLO_LE, 7, 3, 0.5F + 12 + 10);
  counted(5, HLO_GT, 0, -2, 0.5F + 9 - 1);
  counted(5, HLO_GE, 1, -2, 0.5F + 9 - 1);
  counted(2, HLO_NE, 8, 2, 0.5F + 12 + 8);
  counted(3, HLO_LT, 3, 1, 0.5F + 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_call_is_the_computation_each_time),
      cmocka_unit_test(the_branch_that_is_chosen_runs),
      cmocka_unit_test(a_while_on_data_runs_as_long_as_it_says),
      cmocka_unit_test(a_while_that_counts_is_a_for),
  };
  return cmocka_run_group_tests(tests, start_mlir, stop_mlir);
}
