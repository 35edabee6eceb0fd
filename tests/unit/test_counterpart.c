/* Which lines of two texts of a stage compute the same: whatever their order, names and engines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* before cmocka, which has a macro called fail */
#include "diff/counterpart.h"

#include <cmocka.h>

static struct counterpart_side side(const char *text, const char *const *expressions) {
  int n = 0;
  for (const char *p = text; *p; p++)
    n += *p == '\n';
  return (struct counterpart_side){{text, strlen(text)}, n, expressions};
}

/* "2>5 3>4?": each line of A that computes something with its line of B, "-" for none; "?" for a guess. */
static const char *paired(const char *a, const char *const *of_a, const char *b, const char *const *of_b) {
  static char out[1024];
  const struct counterpart_side sides[2] = {side(a, of_a), side(b, of_b)};
  struct arena arena;
  size_t n = 0;
  arena_init(&arena);
  const struct counterparts c = counterpart_find(&arena, sides);
  out[0] = '\0';
  for (int i = 0; i < sides[0].n_lines; i++)
    if (c.is_step[0][i] && c.to[i])
      n += (size_t)snprintf(out + n, sizeof out - n, "%s%d>%d%s", n ? " " : "", i + 1, c.to[i],
                            c.is_guess[i] ? "?" : "");
    else if (c.is_step[0][i])
      n += (size_t)snprintf(out + n, sizeof out - n, "%s%d>-", n ? " " : "", i + 1);
  arena_clear(&arena);
  return out;
}

#define HEAD "func.func @f(%arg0: memref<256x4xf32>) -> memref<256x4xf32> {\n"
#define ALLOC(name) "  " name " = nisa.alloc alignment=64 : memref<128x4xf32>\n"
#define LOAD(name, from) \
  "  nisa.dma_copy(dst<128| 4>=memref<128x4xf32> " name "[d0, d1], src<128| 4>=memref<256x4xf32> %arg0[d0" from \
  ", d1]) engine=dma\n"
#define EXP(to, from, engine) \
  "  nisa.activation(dst<128| 4>=memref<128x4xf32> " to "[d0, d1], src<128| 4>=memref<128x4xf32> " from \
  "[d0, d1], op=exp) engine=" engine "\n"
#define STORE(to, name) \
  "  nisa.dma_copy(dst<128| 4>=memref<256x4xf32> %hbm[d0" to ", d1], src<128| 4>=memref<128x4xf32> " name \
  "[d0, d1]) engine=dma\n"
#define HBM "  %hbm = nisa.alloc alignment=64 : memref<256x4xf32>\n"
#define TAIL "  return %hbm : memref<256x4xf32>\n}\n"

static const char first[] = HEAD HBM ALLOC("%a") ALLOC("%b") ALLOC("%c") ALLOC("%d") /* 1 to 6 */
    LOAD("%a", "") LOAD("%b", " + 128") EXP("%c", "%a", "scalar") EXP("%d", "%b", "scalar") STORE("", "%c")
        STORE(" + 128", "%d") TAIL;

static void parts_are_found_in_another_order(void **state) {
  (void)state;
  static const char other[] = HEAD HBM ALLOC("%x") ALLOC("%y") ALLOC("%z") ALLOC("%w") /* 1 to 6 */
      LOAD("%x", " + 128") EXP("%y", "%x", "gpsimd") STORE(" + 128", "%y") LOAD("%z", "") EXP("%w", "%z", "scalar")
          STORE("", "%w") TAIL;
  assert_string_equal(paired(first, NULL, first, NULL), "7>7 8>8 9>9 10>10 11>11 12>12");
  assert_string_equal(paired(first, NULL, other, NULL), "7>10 8>7 9>11 10>8 11>12 12>9");
}

static void what_has_no_equal_number_stays_alone(void **state) {
  (void)state;
  static const char one[] = HEAD HBM ALLOC("%x") ALLOC("%y") /* 1 to 4 */
      LOAD("%x", "") EXP("%y", "%x", "scalar") STORE("", "%y") TAIL;
  assert_string_equal(paired(one, NULL, first, NULL), "5>7 6>9 7>11");
  static const char larger[] = "func.func @f(%arg0: memref<256x4xf32>) -> memref<256x4xf32> {\n"
                               "  nisa.activation(dst<128| 2, 4>=memref<128x2x4xf32> %y[d0, d1, d2], src<128| 2, "
                               "4>=memref<128x2x4xf32> %x[d0, d1, d2], op=exp) engine=scalar\n"
                               "}\n";
  assert_string_equal(paired(larger, NULL, first, NULL), "2>-");
}

static void a_changed_attribute_or_expression_is_no_other_operation(void **state) {
  (void)state;
  static const char text[] = "ENTRY %main (x: f32[4]) -> f32[4] {\n"
                             "  %x = f32[4]{0} parameter(0)\n"
                             "  %a = f32[4]{0} exponential(%x)\n"
                             "  %b = f32[4]{0} tanh(%x)\n"
                             "  ROOT %c = f32[4]{0} add(%a, %b)\n"
                             "}\n";
  static const char swapped[] = "ENTRY %main (x: f32[4]) -> f32[4] {\n"
                                "  %x = f32[4]{0} parameter(0)\n"
                                "  %c1 = f32[] constant(2)\n"
                                "  %t = f32[4]{0} tanh(%x)\n"
                                "  %b = f32[4]{0} broadcast(%c1), dimensions={}\n"
                                "  %m = f32[4]{0} multiply(%x, %b)\n"
                                "  %e = f32[4]{0} exponential(%m)\n"
                                "  ROOT %r = f32[4]{0} add(%e, %t)\n"
                                "}\n";
  static const char *const of_text[] = {NULL, NULL, "np.exp(x)", "np.tanh(x)", "np.exp(x) + np.tanh(x)", NULL};
  static const char *const of_swapped[] = {
      NULL, NULL, "2", "np.tanh(x)", "x * 2", "x * 2", "np.exp(x * 2)", "np.exp(x * 2) + np.tanh(x)", NULL};
  assert_string_equal(paired(text, of_text, swapped, of_swapped), "3>7 4>4 5>8");
}

static void an_expression_that_both_have_belongs_to_itself(void **state) {
  (void)state;
  static const char a[] = "  %a = f32[4]{0} exponential(%x)\n";
  static const char *const of_a[] = {"np.exp(x)"}, *const of_b[] = {"np.exp(y)", "np.exp(x)"};
  assert_string_equal(paired(a, of_a, "  %a = f32[4]{0} exponential(%y)\n  %b = f32[4]{0} exponential(%x)\n", of_b),
                      "1>2");
}

static void any_bytes_are_survived(void **state) {
  (void)state;
  static const char letters[] = "%#{}()<>[]:=., \n^ab1\"ROOT return nisa.alloc";
  char text[2][400];
  srand(7);
  for (int round = 0; round < 2000; round++) {
    for (int s = 0; s < 2; s++) {
      const size_t n = (size_t)rand() % (sizeof text[s] - 1);
      for (size_t i = 0; i < n; i++)
        text[s][i] = letters[(size_t)rand() % (sizeof letters - 1)];
      text[s][n] = '\0';
    }
    struct arena arena;
    const struct counterpart_side sides[2] = {side(text[0], NULL), side(text[1], NULL)};
    arena_init(&arena);
    const struct counterparts c = counterpart_find(&arena, sides);
    for (int i = 0; i < sides[0].n_lines; i++)
      assert_in_range(c.to[i], 0, sides[1].n_lines);
    arena_clear(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_are_found_in_another_order),
      cmocka_unit_test(what_has_no_equal_number_stays_alone),
      cmocka_unit_test(a_changed_attribute_or_expression_is_no_other_operation),
      cmocka_unit_test(an_expression_that_both_have_belongs_to_itself),
      cmocka_unit_test(any_bytes_are_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
