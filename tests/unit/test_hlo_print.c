/* test_hlo_print: the text itself, lines, elision, metadata. */
#include <math.h>

#include "hlo_test.h"

static const char *print(struct test *t, struct hlo_print_options opt, struct hlo_lines *lines) {
  struct buf out;
  buf_init(&out, 1 << 20);
  assert_int_equal(hlo_print(t->b.module, &opt, &out, &t->a, lines), ST_OK);
  char *text = arena_strdup(&t->a, buf_text(&out));
  buf_clear(&out);
  return text;
}

static void a_module_reads_as_xla_writes_it(void **state) {
  struct test *t = *state;
  struct hlo_lines lines;
  hlo_val x = PARAM(t, "x", DT_F32, 2, 3), y = PARAM(t, "y", DT_F32, 2);
  hlo_val s = hlo_reduce(&t->b, HLO_ADD, x, hlo_scalar(&t->b, DT_F32, 0), 1, DIMS(1));
  hlo_val r[] = {s, hlo_binary(&t->b, HLO_MULTIPLY, s, y)};
  assert_int_equal(hlo_finish(&t->b, 2, r, (const char *[]){"output0", "y"}), ST_OK);
  struct hlo_alias alias = {1, 1, "y", false};
  t->b.module->n_aliases = 1;
  t->b.module->aliases = &alias;
  const char *wanted = "HloModule kernel, input_output_alias={ {1}: (1, {}, must-alias) }, "
                       "entry_computation_layout={(f32[2,3]{1,0}, f32[2]{0})->(f32[2]{0}, f32[2]{0})}\n"
                       "\n"
                       "%add_float32_computation (add_float32_lhs: f32[], add_float32_rhs: f32[]) -> f32[] {\n"
                       "  %add_float32_lhs = f32[] parameter(0)\n"
                       "  %add_float32_rhs = f32[] parameter(1)\n"
                       "  ROOT %add_float32_result = f32[] add(%add_float32_lhs, %add_float32_rhs)\n"
                       "}\n"
                       "\n"
                       "ENTRY %main (x: f32[2,3], y.must_alias_input: f32[2]) -> (f32[2], f32[2]) {\n"
                       "  %x = f32[2,3]{1,0} parameter(0), frontend_attributes={neff_input_names=\"x\"}\n"
                       "  %y.must_alias_input = f32[2]{0} parameter(1), "
                       "frontend_attributes={neff_input_names=\"y.must_alias_input\"}\n"
                       "  %op2 = f32[] constant(0)\n"
                       "  %op6 = f32[2]{0} reduce(%x, %op2), dimensions={1}, to_apply=%add_float32_computation\n"
                       "  %op7 = f32[2]{0} multiply(%op6, %y.must_alias_input)\n"
                       "  ROOT %result = (f32[2]{0}, f32[2]{0}) tuple(%op6, %op7), "
                       "frontend_attributes={neff_output_names=\"output0,y\"}\n"
                       "}\n";
  assert_string_equal(print(t, (struct hlo_print_options){0}, &lines), wanted);
  assert_int_equal(lines.n, 9);
  assert_int_equal(lines.v[0].line, 4);
  assert_ptr_equal(lines.v[3].instr, x);
  assert_int_equal(lines.v[3].line, 10);
  assert_int_equal(lines.v[8].line, 15);
}

static void metadata_gives_ranges_and_the_call_chain(void **state) {
  struct test *t = *state;
  struct src_loc outer = {.range = {"k.py", 9, 5, 9, 12}, .func = "kernel"},
                 inner = {.range = {"k.py", 2, 3, 4, 8}, .func = "helper", .caller = &outer};
  hlo_val x = PARAM(t, "x", DT_F32, 2);
  t->b.locs = src_locs_one(&t->a, &inner);
  hlo_val e = hlo_unary(&t->b, HLO_EXP, x);
  t->b.locs = (struct src_locs){0};
  assert_int_equal(hlo_finish(&t->b, 1, &e, (const char *[]){"o"}), ST_OK);
  const char *text = print(t, (struct hlo_print_options){.metadata = true}, NULL);
  assert_non_null(strstr(text, "metadata={op_type=\"NKIPy_Op\" op_name=\"hlo__exponential\" source_file=\"k.py\" "
                               "source_line=2 source_end_line=4 source_column=3 source_end_column=8 "
                               "stack_frame_id=2}\n"));
  assert_non_null(strstr(text, "1 {file_name_id=1 function_name_id=1 line=9 end_line=9 column=5 end_column=12}\n"
                               "2 {file_name_id=1 function_name_id=2 line=2 end_line=4 column=3 end_column=8}\n"));
  assert_non_null(strstr(text, "1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 parent_frame_id=2}\n"));
  assert_null(strstr(print(t, (struct hlo_print_options){0}, NULL), "k.py"));
}

static void constants_nest_and_large_ones_can_be_elided(void **state) {
  struct test *t = *state;
  const float v[] = {1, 0.1f, -0.0f, INFINITY, NAN, 16777216};
  hlo_val c = hlo_constant(&t->b, hlo_shape_array(&t->a, DT_F32, 3, DIMS(2, 1, 3)), v);
  assert_int_equal(hlo_finish(&t->b, 1, &c, (const char *[]){"o"}), ST_OK);
  assert_non_null(strstr(print(t, (struct hlo_print_options){0}, NULL),
                         "constant({ { {1, 0.1, -0.0} }, { {inf, nan, 16777216} } })"));
  assert_non_null(strstr(print(t, (struct hlo_print_options){.elide_above = 6}, NULL), "0.1"));
  assert_non_null(strstr(print(t, (struct hlo_print_options){.elide_above = 5}, NULL), "constant({...})"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, test_setup, test_teardown)
  const struct CMUnitTest tests[] = {
      T(a_module_reads_as_xla_writes_it),
      T(metadata_gives_ranges_and_the_call_chain),
      T(constants_nest_and_large_ones_can_be_elided),
  };
#undef T
  return cmocka_run_group_tests(tests, NULL, NULL);
}
