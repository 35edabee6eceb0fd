/* Which part of a buffer an operand is, from the text of its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* before cmocka, which has a macro called fail */
#include "driver/watch_part.h"

#include <cmocka.h>

/* The part of operand dst on the second line, which is this one; "none" if there is none. */
static const char *part(const char *line) {
  static char out[400];
  struct arena a;
  char text[1000] = "first\n";
  strcat(text, line);
  strcat(text, "\nthird");
  arena_init(&a);
  const char *s = watch_part(&a, text, strlen(text), 2, "dst");
  strcpy(out, s ? s : "none");
  arena_clear(&a);
  return out;
}

static void numbers_become_ranges(void **state) {
  (void)state;
  assert_string_equal(part("nisa.x(dst<128| 512>=memref<128x2x512xf32, #nisa.mem<sbuf>> %b[d0, 1, d1], src<1| "
                           "1>=memref<1x1xf32> %c[d0, d1])"),
                      "%b[0:128, 1, 0:512]");
  assert_string_equal(part("nisa.x(src<4| 4>=memref<4x4xf32> %c[d0, d1], dst<8| 3>=memref<8x9xf32, strided<[?, ?], "
                           "offset: ?>> %b[d0 + 128, d1 + 2])"),
                      "%b[128:136, 2:5]");
  assert_string_equal(part("nisa.x(dst<4| 8>=memref<9x99xf32> %b[d0, d1*3 + 1])"), "%b[0:4, 1:23:3]");
  assert_string_equal(part("nisa.x(dst<128| 2, 4>=memref<9x99xf32> %b[d1, d0*4 + d2 + 512])"), "%b[0:2, 512:1024]");
}

static void what_a_loop_moves_stays(void **state) {
  (void)state;
  assert_string_equal(part("nisa.x(dst<128| 128>=memref<128x2x128xf32> %b[d0, %i, %0*4 + d1])"),
                      "%b[0:128, %i, %0*4 + d1]");
}

static void other_texts_have_no_part(void **state) {
  (void)state;
  static const char *const lines[] = {"",
                                      "nisa.x(src<4| 4>=memref<4x4xf32> %c[d0, d1])",
                                      "nisa.x(dst=f32 %c)",
                                      "nisa.x(dst<",
                                      "nisa.x(dst<4",
                                      "nisa.x(dst<4>",
                                      "nisa.x(dst<4>=",
                                      "nisa.x(dst<4>=memref<4xf32>",
                                      "nisa.x(dst<4>=memref<4xf32> %b",
                                      "nisa.x(dst<4>=memref<4xf32> %b[d0",
                                      "nisa.x(dst<a>=memref<4xf32> %b[d0]"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    assert_string_equal(part(lines[i]), "none");
  assert_string_equal(part("nisa.x(dst<4>=memref<4xf32> %b[d7]"), "%b[d7]");
  assert_string_equal(part("nisa.x(dst<4>=memref<4xf32> %b[99999999999999999999]"), "%b[99999999999999999999]");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_become_ranges),
      cmocka_unit_test(what_a_loop_moves_stays),
      cmocka_unit_test(other_texts_have_no_part),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
